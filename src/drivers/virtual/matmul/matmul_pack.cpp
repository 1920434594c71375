#include "drivers/virtual/matmul/matmul_pack.h"

#include <algorithm>
#include <cstring>

#include "drivers/virtual/engine/engine_runtime.h"
#include "drivers/virtual/matmul/matmul_kernels.h"
#include "drivers/virtual/matmul/matmul_memory.h"
#include "drivers/virtual/matmul/matmul_threads.h"

namespace corelane::drivers::virtual_npu {
namespace {

using device::MatmulDesc;
using device::MatmulLayoutB;
using device::MatmulQuantB;

/// Rows that are worth a thread.
constexpr std::size_t kLeastRows = 16;

/// B as rows of plain elements: rows of N ("k rows"), or rows of K ("n rows").
struct PlainB {
  const void* data = nullptr;  ///< The caller's bytes, or `owned`.
  bool k_rows = true;
  Block owned;
};

/// One packing of B, in two steps: read() undoes the layout and the nibbles, then one of the
/// pack_*() functions writes what a kernel reads. Blocks are freed as soon as the next one exists,
/// so that at most two copies of B live beside the caller's.
class Packer {
 public:
  Packer(const MatmulDesc& desc, GemmForm form, ByteSpan bytes, std::size_t threads)
      : desc_(desc),
        form_(form),
        bytes_(bytes),
        threads_(threads),
        k_(static_cast<std::size_t>(desc.k)),
        n_(static_cast<std::size_t>(desc.n)) {}

  /// Sums of columns are of the plain integers, so they are made while those are there.
  std::shared_ptr<const PackedB> pack() {
    PlainB plain = read();
    if (form_ == GemmForm::kF32) plain = to_f32(std::move(plain));
    auto packed = std::make_shared<PackedB>();
    packed->form = form_;
    if (form_ == GemmForm::kLean)
      pack_lean(plain, *packed);
    else if (form_ == GemmForm::kPanels)
      pack_panels(plain, *packed);
    else
      reorder(plain, *packed);
    if (sums_integers(form_)) packed->column_sums = sum_columns(plain);
    packed->bytes += packed->column_sums.size() * sizeof(std::int32_t) +
                     packed->scales.size() * sizeof(float) +
                     packed->zeros.size() * sizeof(std::int32_t);
    return packed;
  }

 private:
  std::size_t rows(const PlainB& plain) const { return plain.k_rows ? k_ : n_; }
  std::size_t columns(const PlainB& plain) const { return plain.k_rows ? n_ : k_; }

  /// i8 (from i4 too) or f16, without blocks.
  PlainB read() {
    PlainB plain;
    plain.data = bytes_.data();
    plain.k_rows = desc_.b_layout == MatmulLayoutB::kNormal;
    if (desc_.b == DType::kI4) {
      const std::size_t count = elements();
      auto whole = allocate_block(count);
      const auto* nibbles = reinterpret_cast<const std::uint8_t*>(bytes_.data());
      auto* out = reinterpret_cast<std::int8_t*>(whole.get());
      for_ranges(threads_, count, 65536, [&](std::size_t begin, std::size_t end) {
        unpack_i4(nibbles, begin, end - begin, out + begin);
      });
      plain.owned = std::move(whole);
      plain.data = plain.owned.get();
    }
    if (desc_.b_layout == MatmulLayoutB::kNative) gather(plain);
    return plain;
  }

  /// Elements of B as it was given, padding of the native layout included.
  std::size_t elements() const {
    if (desc_.b_layout != MatmulLayoutB::kNative) return k_ * n_;
    const std::size_t nb = desc_.b_block_n;
    const std::size_t kb = desc_.b_block_k;
    return (n_ + nb - 1) / nb * nb * ((k_ + kb - 1) / kb * kb);
  }

  /// From blocks to rows of K.
  void gather(PlainB& plain) {
    const std::size_t width = desc_.b == DType::kF16 ? 2 : 1;
    auto whole = allocate_block(k_ * n_ * width);
    const auto* from = static_cast<const std::byte*>(plain.data);
    const std::size_t kb = desc_.b_block_k;
    for_ranges(threads_, n_, kLeastRows, [&](std::size_t begin, std::size_t end) {
      for (std::size_t n = begin; n < end; ++n)
        for (std::size_t k = 0; k < k_; k += kb) {
          const std::size_t at =
              device::b_index(desc_, static_cast<std::int64_t>(k), static_cast<std::int64_t>(n));
          std::memcpy(whole.get() + (n * k_ + k) * width, from + at * width,
                      std::min(kb, k_ - k) * width);
        }
    });
    plain.owned = std::move(whole);
    plain.data = plain.owned.get();
    plain.k_rows = false;
  }

  /// With scales and zero points applied, since sums of floats cannot take them afterwards.
  PlainB to_f32(PlainB from) {
    PlainB to;
    to.k_rows = from.k_rows;
    to.owned = allocate_block(k_ * n_ * sizeof(float));
    to.data = to.owned.get();
    auto* out = reinterpret_cast<float*>(to.owned.get());
    const std::size_t width = columns(from);
    for_ranges(threads_, rows(from), kLeastRows, [&](std::size_t begin, std::size_t end) {
      for (std::size_t row = begin; row < end; ++row) {
        float* target = out + row * width;
        if (desc_.b == DType::kF16)
          widen_f16(static_cast<const std::uint16_t*>(from.data) + row * width, width, target);
        else if (from.k_rows)
          dequantize_k_row(static_cast<const std::int8_t*>(from.data) + row * width, row, target);
        else
          dequantize_n_row(static_cast<const std::int8_t*>(from.data) + row * width, row, target);
      }
    });
    return to;
  }

  float scale(std::size_t i) const { return desc_.b_scales.empty() ? 1.0F : desc_.b_scales[i]; }
  std::int32_t zero(std::size_t i) const {
    return desc_.b_zero_points.empty() ? 0 : desc_.b_zero_points[i];
  }

  /// A row of one k: its elements have a scale each, of their channel or of their group's channel.
  void dequantize_k_row(const std::int8_t* in, std::size_t k, float* out) const {
    if (desc_.b_quant == MatmulQuantB::kLayer) return dequantize(in, n_, 0, out);
    const std::size_t first = desc_.b_quant == MatmulQuantB::kGroup ? k / desc_.group_size * n_ : 0;
    const float* scales = desc_.b_scales.data() + first;
    if (desc_.b_zero_points.empty()) {
      for (std::size_t n = 0; n < n_; ++n) out[n] = static_cast<float>(in[n]) * scales[n];
      return;
    }
    const std::int32_t* zeros = desc_.b_zero_points.data() + first;
    for (std::size_t n = 0; n < n_; ++n) out[n] = static_cast<float>(in[n] - zeros[n]) * scales[n];
  }

  /// A row of one n: one scale for all of it, or one for each group of k.
  void dequantize_n_row(const std::int8_t* in, std::size_t n, float* out) const {
    if (desc_.b_quant == MatmulQuantB::kLayer) return dequantize(in, k_, 0, out);
    if (desc_.b_quant == MatmulQuantB::kChannel) return dequantize(in, k_, n, out);
    const std::size_t group = desc_.group_size;
    for (std::size_t k = 0; k < k_; k += group)
      dequantize(in + k, std::min(group, k_ - k), k / group * n_ + n, out + k);
  }

  void dequantize(const std::int8_t* in, std::size_t count, std::size_t which, float* out) const {
    const float s = scale(which);
    const std::int32_t z = zero(which);
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i] - z) * s;
  }

  /// oneDNN moves B into the layout of its kernel. The layout does not depend on M or on threads,
  /// so one packed copy serves all products with this B.
  void reorder(const PlainB& plain, PackedB& packed) {
    const dnnl::memory::desc layout = packed_layout(form_, desc_.k, desc_.n);
    packed.bytes = layout.get_size();
    packed.block = allocate_block(packed.bytes);
    packed.weights = dnnl::memory(layout, gemm_engine(), packed.block.get());
    const auto type =
        form_ == GemmForm::kF32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::s8;
    const auto tag = plain.k_rows ? dnnl::memory::format_tag::ab : dnnl::memory::format_tag::ba;
    dnnl::memory source(dnnl::memory::desc({desc_.k, desc_.n}, type, tag), gemm_engine(),
                        const_cast<void*>(plain.data));
    dnnl::stream stream(gemm_engine());
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::reorder::primitive_desc move(source, packed.weights, attributes);
    dnnl::memory scratch(move.scratchpad_desc(), gemm_engine());
    dnnl::reorder(move).execute(
        stream,
        {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, packed.weights}, {DNNL_ARG_SCRATCHPAD, scratch}});
    stream.wait();
  }

  /// Zeros beyond K and N, so that the kernel needs no borders.
  void pack_panels(const PlainB& plain, PackedB& packed) {
    const std::size_t panels = panels_of(n_);
    packed.bytes = panels * panel_bytes(k_);
    packed.block = allocate_block(packed.bytes);
    std::fill_n(packed.block.get(), packed.bytes, std::byte{0});
    const auto* from = static_cast<const std::int8_t*>(plain.data);
    const std::size_t k_step = plain.k_rows ? n_ : 1;
    const std::size_t n_step = plain.k_rows ? 1 : k_;
    for_ranges(threads_, panels, 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t panel = begin; panel < end; ++panel) {
        auto* to = reinterpret_cast<std::int8_t*>(packed.block.get()) + panel * panel_bytes(k_);
        const std::size_t first = panel * kPanelColumns;
        const std::size_t columns = std::min(kPanelColumns, n_ - first);
        for (std::size_t k = 0; k < k_; ++k)
          for (std::size_t c = 0; c < columns; ++c)
            to[(k / 2 * kPanelColumns + c) * 2 + k % 2] = from[k * k_step + (first + c) * n_step];
      }
    });
  }

  /// B keeps the width of its elements; the scales go along and are applied to the sums of a group.
  void pack_lean(const PlainB& plain, PackedB& packed) {
    packed.halves = desc_.b == DType::kF16;
    packed.bytes = lean_columns(n_) * k_ * (packed.halves ? 2 : 1);
    packed.block = allocate_block(packed.bytes);
    if (packed.halves)
      pack_lean_panels<std::uint16_t>(plain, packed);
    else
      pack_lean_panels<std::int8_t>(plain, packed);
    if (packed.halves) return;
    const bool by_group = desc_.b_quant == MatmulQuantB::kGroup;
    const bool by_layer = desc_.b_quant == MatmulQuantB::kLayer;
    packed.group = by_group ? desc_.group_size : k_;
    const std::size_t groups = (k_ + packed.group - 1) / packed.group;
    packed.scales.resize(groups * lean_columns(n_));
    if (!desc_.b_zero_points.empty()) packed.zeros.resize(packed.scales.size());
    for (std::size_t g = 0; g < groups; ++g)
      for (std::size_t n = 0; n < n_; ++n) {
        const std::size_t which = by_layer ? 0 : g * n_ + n;
        packed.scales[g * lean_columns(n_) + n] = scale(which);
        if (!packed.zeros.empty()) packed.zeros[g * lean_columns(n_) + n] = zero(which);
      }
  }

  template <class T>
  void pack_lean_panels(const PlainB& plain, PackedB& packed) {
    const auto* from = static_cast<const T*>(plain.data);
    const std::size_t k_step = plain.k_rows ? n_ : 1;
    const std::size_t n_step = plain.k_rows ? 1 : k_;
    const std::size_t panels = lean_columns(n_) / kLeanColumns;
    for_ranges(threads_, panels, 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t panel = begin; panel < end; ++panel) {
        T* const to = reinterpret_cast<T*>(packed.block.get()) + panel * k_ * kLeanColumns;
        const std::size_t first = panel * kLeanColumns;
        const std::size_t columns = std::min(kLeanColumns, n_ - first);
        // Full panels are written whole; only the last one may have columns to clear.
        std::fill(to, to + (columns == kLeanColumns ? 0 : k_ * kLeanColumns), T{0});
        for (std::size_t k = 0; k < k_; ++k)
          for (std::size_t c = 0; c < columns; ++c)
            to[k * kLeanColumns + c] = from[k * k_step + (first + c) * n_step];
      }
    });
  }

  /// For the zero point of A, whose part in a column is za * sum(b).
  std::vector<std::int32_t> sum_columns(const PlainB& plain) const {
    std::vector<std::int32_t> sums(n_);
    const auto* from = static_cast<const std::int8_t*>(plain.data);
    for_ranges(threads_, n_, 64, [&](std::size_t begin, std::size_t end) {
      if (plain.k_rows)
        for (std::size_t k = 0; k < k_; ++k)
          add_i8(from + k * n_ + begin, end - begin, sums.data() + begin);
      else
        for (std::size_t n = begin; n < end; ++n) sums[n] = sum_i8(from + n * k_, k_);
    });
    return sums;
  }

  const MatmulDesc& desc_;
  const GemmForm form_;
  const ByteSpan bytes_;
  const std::size_t threads_;
  const std::size_t k_;
  const std::size_t n_;
};

}  // namespace

/// Scales of groups differ along K: sums over all of K cannot take them afterwards.
GemmForm form_of(const MatmulDesc& desc) {
  if (!is_integer(desc.a) || desc.b_quant == MatmulQuantB::kGroup)
    return desc.m <= kLeanRows ? GemmForm::kLean : GemmForm::kF32;
  return integer_form(desc.k, desc.n);
}

Result<std::shared_ptr<const PackedB>> pack_b(const MatmulDesc& desc, GemmForm form, ByteSpan bytes,
                                              std::size_t threads) {
  using Packed = Result<std::shared_ptr<const PackedB>>;
  return engine_call("packing B of " + desc.to_string(), Code::kEngineFailed, [&]() -> Packed {
    const ThreadScope scope(threads);
    return Packer(desc, form, bytes, threads).pack();
  });
}

}  // namespace corelane::drivers::virtual_npu
