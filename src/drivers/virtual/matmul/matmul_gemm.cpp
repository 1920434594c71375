#include "drivers/virtual/matmul/matmul_gemm.h"

#include "base/leaked.h"
#include "drivers/virtual/matmul/matmul_kernels.h"
#include "drivers/virtual/matmul/matmul_threads.h"

namespace corelane::drivers::virtual_npu {
namespace {

using Type = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;

/// The M that the layout of B is asked for with. For 140 pairs of K and N, 8 values of M from 1 to
/// 3000 and 1 to 4 threads the engine chose the same kernel for this layout as for its own choice,
/// which differed in one N of the ten, on 4 threads.
constexpr std::int64_t kLayoutM = 128;

/// Rows up to which the time of 8-bit integers goes into reading B.
constexpr std::int64_t kFewRows = 4;

struct GemmTypes {
  Type ab;
  Type c;
};

GemmTypes types_of(GemmForm form) {
  if (form == GemmForm::kF32) return {Type::f32, Type::f32};
  return {Type::s8, Type::s32};
}

dnnl::matmul::primitive_desc describe(GemmForm form, std::int64_t m, std::int64_t n, std::int64_t k,
                                      const dnnl::memory::desc& b) {
  const GemmTypes types = types_of(form);
  dnnl::primitive_attr attributes;
  // The engine's own scratch belongs to the thread that made the primitive.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  // The environment may set another default.
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return {{dnnl::memory::desc({m, k}, types.ab, Tag::ab), b,
           dnnl::memory::desc({m, n}, types.c, Tag::ab)},
          attributes,
          gemm_engine()};
}

/// Whether a copy of B in oneDNN's layout is what multiply_quads() reads.
bool lies_in_quads(const dnnl::memory::desc& b, std::int64_t k) {
  const auto& layout = b.data.format_desc.blocking;
  const auto panel =
      static_cast<dnnl_dim_t>(quads_of(static_cast<std::size_t>(k)) * 4 * kQuadColumns);
  return b.data.format_kind == dnnl_blocked && layout.inner_nblks == 3 &&
         layout.inner_blks[0] == 16 && layout.inner_idxs[0] == 0 && layout.inner_blks[1] == 64 &&
         layout.inner_idxs[1] == 1 && layout.inner_blks[2] == 4 && layout.inner_idxs[2] == 0 &&
         layout.strides[0] == dnnl_dim_t{64} * 64 && layout.strides[1] == panel;
}

}  // namespace

dnnl::engine& gemm_engine() {
  // Packed copies may outlast any static.
  static Leaked<dnnl::engine> engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

/// Asked for with one thread: packed B must fit the products of every M and number of threads.
dnnl::memory::desc packed_layout(GemmForm form, std::int64_t k, std::int64_t n) {
  const ThreadScope one(1);
  const dnnl::memory::desc any({k, n}, types_of(form).ab, Tag::any);
  return describe(form, kLayoutM, n, k, any).weights_desc();
}

/// By the name of the kernel that oneDNN would choose, since it does not say whether sums saturate.
GemmForm integer_form(std::int64_t k, std::int64_t n) {
  constexpr auto kNeeded = static_cast<unsigned>(dnnl_cpu_isa_avx512_core_vnni);
  const auto isa = static_cast<unsigned>(dnnl_get_effective_cpu_isa());
  if ((isa & kNeeded) != kNeeded) return GemmForm::kPanels;
  try {
    const ThreadScope one(1);
    const dnnl::memory::desc any({k, n}, Type::s8, Tag::any);
    const auto product = describe(GemmForm::kI8, kLayoutM, n, k, any);
    // Others, "gemm" and "ref", are slower than kPanels or not known to be exact.
    if (std::string_view(product.impl_info_str()).starts_with("brg")) return GemmForm::kI8;
  } catch (const dnnl::error&) {
    // Not supported there.
  }
  return GemmForm::kPanels;
}

Gemm::Gemm(GemmForm form, std::int64_t m, std::int64_t k, std::int64_t n, std::size_t threads)
    : form_(form),
      m_(static_cast<std::size_t>(m)),
      k_(static_cast<std::size_t>(k)),
      n_(static_cast<std::size_t>(n)),
      threads_(threads) {
  if (form == GemmForm::kPanels) {
    kernel_ = "corelane:i8_panels";
    packed_a_.resize(m_ * ((k_ + 1) / 2));
    scratch_bytes_ = packed_a_.size() * sizeof(std::int32_t);
    return;
  }
  if (form == GemmForm::kLean) {
    kernel_ = "corelane:f32_lean";
    return;
  }
  const dnnl::memory::desc layout = packed_layout(form, k, n);
  const auto made = describe(form, m, n, k, layout);
  kernel_ = made.impl_info_str();
  // oneDNN's kernels for tiles ("AMX") take as long for one row as for sixteen, and leave N up to
  // 16, and N up to 32 with few rows, to its reference.
  const bool slow = m <= kFewRows || std::string_view(kernel_).starts_with("ref");
  if (form == GemmForm::kI8 && slow && can_multiply_quads() && lies_in_quads(layout, k)) {
    quads_ = true;
    kernel_ = "corelane:i8_quads";
    packed_a_.resize(m_ * quads_of(k_));
    scratch_bytes_ = packed_a_.size() * sizeof(std::int32_t);
    return;
  }
  scratch_bytes_ = made.scratchpad_desc().get_size();
  product_ = dnnl::matmul(made);
  stream_ = dnnl::stream(gemm_engine());
  // The memory objects are made once; a run changes their addresses only.
  a_ = dnnl::memory(made.src_desc(), gemm_engine(), DNNL_MEMORY_NONE);
  c_ = dnnl::memory(made.dst_desc(), gemm_engine(), DNNL_MEMORY_NONE);
  arguments_ = {{DNNL_ARG_SRC, a_},
                {DNNL_ARG_WEIGHTS, {}},
                {DNNL_ARG_DST, c_},
                {DNNL_ARG_SCRATCHPAD, dnnl::memory(made.scratchpad_desc(), gemm_engine())}};
}

void Gemm::run(const void* a, const PackedB& b, void* c) {
  if (form_ == GemmForm::kPanels)
    return run_panels(static_cast<const std::int8_t*>(a), b, static_cast<std::int32_t*>(c));
  if (quads_)
    return run_quads(static_cast<const std::int8_t*>(a), b, static_cast<std::int32_t*>(c));
  if (form_ == GemmForm::kLean)
    return run_lean(static_cast<const float*>(a), b, static_cast<float*>(c));
  a_.set_data_handle(const_cast<void*>(a));
  c_.set_data_handle(c);
  arguments_[DNNL_ARG_WEIGHTS] = b.weights;
  product_.execute(stream_, arguments_);
  stream_.wait();
}

/// Rows of A are paired first, so that each panel of B is multiplied with i16 pairs.
void Gemm::run_panels(const std::int8_t* a, const PackedB& b, std::int32_t* c) {
  const std::size_t pairs = (k_ + 1) / 2;
  for_ranges(threads_, m_, 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row)
      pair_i8(a + row * k_, k_, packed_a_.data() + row * pairs);
  });
  const MultiplyI8 product{
      packed_a_.data(), reinterpret_cast<const std::int8_t*>(b.block.get()), c, m_, k_, n_};
  for_ranges(threads_, panels_of(n_), 1,
             [&](std::size_t first, std::size_t last) { multiply_i8(product, first, last); });
}

/// Split by panels of columns; by rows where there are fewer panels than threads.
void Gemm::run_quads(const std::int8_t* a, const PackedB& b, std::int32_t* c) {
  const std::size_t quads = quads_of(k_);
  for (std::size_t row = 0; row < m_; ++row)
    quads_i8(a + row * k_, k_, packed_a_.data() + row * quads);
  const MultiplyQuads product{packed_a_.data(),
                              reinterpret_cast<const std::int8_t*>(b.block.get()),
                              b.column_sums.data(),
                              c,
                              m_,
                              k_,
                              n_};
  const std::size_t panels = (n_ + kQuadColumns - 1) / kQuadColumns;
  if (panels >= threads_) {
    for_ranges(threads_, panels, 1,
               [&](std::size_t first, std::size_t last) { multiply_quads(product, first, last); });
    return;
  }
  for_ranges(threads_, m_, 16, [&](std::size_t begin, std::size_t end) {
    MultiplyQuads part = product;
    part.quads += begin * quads;
    part.c += begin * n_;
    part.rows = end - begin;
    multiply_quads(part, 0, panels);
  });
}

/// Split by columns: with few rows all threads read A, and each reads its own part of B.
void Gemm::run_lean(const float* a, const PackedB& b, float* c) const {
  MultiplyLean product;
  product.a = a;
  product.panels = b.block.get();
  product.c = c;
  product.rows = m_;
  product.k = k_;
  product.n = n_;
  product.halves = b.halves;
  product.group = b.group;
  product.scales = b.scales.empty() ? nullptr : b.scales.data();
  product.zeros = b.zeros.empty() ? nullptr : b.zeros.data();
  for_ranges(threads_, lean_columns(n_) / kLeanColumns, 1,
             [&](std::size_t first, std::size_t last) { multiply_lean(product, first, last); });
}

}  // namespace corelane::drivers::virtual_npu
