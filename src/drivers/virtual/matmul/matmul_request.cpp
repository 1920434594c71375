#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "corelane/tensor/convert.h"
#include "drivers/virtual/common/request_errors.h"
#include "drivers/virtual/engine/engine_runtime.h"
#include "drivers/virtual/matmul/matmul_kernels.h"
#include "drivers/virtual/matmul/matmul_pack.h"
#include "drivers/virtual/matmul/matmul_program.h"
#include "drivers/virtual/matmul/matmul_threads.h"

namespace corelane::drivers::virtual_npu {
namespace {

using device::MatmulDesc;
using device::MatmulQuantB;

/// Elements that make another thread worth its start outside the product itself: where the CPUs are
/// busy, each call waits a scheduler's turn for it.
constexpr std::size_t kLeastElementsOfA = std::size_t{1} << 21;
constexpr std::size_t kLeastElementsOfC = std::size_t{1} << 17;
/// Integers of A that are made plain at a time.
constexpr std::size_t kChunk = 1024;

bool all_zero(const std::vector<std::int32_t>& values) {
  return std::all_of(values.begin(), values.end(), [](std::int32_t v) { return v == 0; });
}

bool scaled(const MatmulDesc& desc) { return desc.c != DType::kI32 && desc.c != DType::kI16; }

/// f32 to the type of C; `in` and `out` do not overlap. False where there is no memory for it:
/// nothing may be thrown out of a part.
bool narrow(DType type, const float* in, std::size_t count, std::byte* out) noexcept {
  try {
    const Shape shape{static_cast<std::int64_t>(count)};
    const TensorView from{in, count * sizeof(float), DType::kF32, shape, {}, {}};
    const MutableTensorView to{out, dtype_bytes(type, count), type, shape, {}, {}};
    return convert(from, to).ok();
  } catch (...) {
    return false;
  }
}

/// A run makes A plain (rows of i8 or f32), multiplies, and makes C of the sums. An A or C that has
/// the product's form already is used in place.
class MatmulRequest final : public device::LaneRequest {
 public:
  explicit MatmulRequest(std::shared_ptr<MatmulProgram> program)
      : program_(std::move(program)),
        desc_(program_->desc()),
        m_(static_cast<std::size_t>(desc_.m)),
        k_(static_cast<std::size_t>(desc_.k)),
        n_(static_cast<std::size_t>(desc_.n)),
        c_width_(dtype_bits(desc_.c) / 8),
        integer_(sums_integers(program_->form())),
        a_direct_(integer_ && desc_.a == DType::kI8 && desc_.a_block == 0),
        c_direct_(desc_.c_block == 0 && c_width_ == 4),
        c_finished_(c_direct_ && (desc_.c == DType::kI32
                                      ? desc_.a_zero_point == 0 && all_zero(desc_.b_zero_points)
                                      : !integer_ && desc_.a_scale == 1.0F)) {
    if (integer_ && !all_zero(desc_.b_zero_points)) {
      zeros_ = desc_.b_zero_points;
      if (desc_.b_quant == MatmulQuantB::kLayer) zeros_.assign(n_, zeros_[0]);
      zeros_.resize(n_ + kFinishSlack);
      column_zero_ = zeros_.data();
    }
    if (scaled(desc_)) make_factors();
  }

  ~MatmulRequest() override { program_->scratch_bytes -= scratch_.bytes; }

  Status set_input(std::size_t index, const device::TensorRef& tensor) override {
    if (index == 0) {
      a_ = tensor;
      return {};
    }
    b_ = tensor;
    shared_b_.reset();
    if (tensor.data != nullptr) shared_b_ = program_->shared_b(tensor);
    return {};
  }

  Status set_output(std::size_t /*index*/, const device::TensorRef& tensor) override {
    c_ = tensor;
    return {};
  }

  /// The threads follow the cores of the job, which may change from run to run: then the scratch
  /// memory is made again. Nothing may throw inside a parallel part, so all of it is allocated
  /// before.
  Status run(std::uint64_t core_bits) override {
    CORELANE_TRY(check_bound());
    const std::size_t threads = matmul_threads(static_cast<std::size_t>(std::popcount(core_bits)));
    const TimePoint start = program_->profiled() ? real_clock()->now() : TimePoint{};
    CORELANE_ASSIGN(const std::shared_ptr<const PackedB> packed, shared_b_->get([&] {
      return pack_b(desc_, program_->form(),
                    {static_cast<const std::byte*>(b_.data), program_->b_bytes()}, threads);
    }));
    try {
      const ThreadScope scope(threads);
      if (!gemm_ || gemm_->threads() != threads) make_scratch(threads);
      multiply(packed);
    } catch (...) {
      return engine_failure(desc_.to_string(), Code::kEngineFailed);
    }
    if (program_->profiled()) last_run_ = real_clock()->now() - start;
    ran_ = true;
    return {};
  }

  Result<device::TensorRef> output(std::size_t /*index*/) override {
    device::TensorRef result = c_;
    result.shape = program_->outputs()[0].shape;
    result.size = dtype_bytes(desc_.c, result.shape.elements().value_or(0));
    return result;
  }

  Result<std::vector<device::LayerTime>> layer_times() const override {
    if (!program_->profiled()) return error(not_profiled());
    if (!ran_ || !gemm_) return error(Code::kWrongState, "no layer times before the first run");
    device::LayerTime time;
    time.name = "matmul";
    time.type = "MatMul";
    time.kernel = gemm_->kernel();
    time.dtype = integer_ ? DType::kI8 : DType::kF32;
    time.duration = last_run_;
    time.executed = true;
    return std::vector<device::LayerTime>{time};
  }

 private:
  /// From sums to C.
  struct Scale {
    std::vector<double> of_channel;  ///< Empty: `of_all` serves every channel.
    std::vector<float> floats;       ///< The same in f32.
    double of_all = 1;
  };
  /// Sized for one number of threads.
  struct Scratch {
    std::vector<std::byte> a_rows;  ///< A made plain.
    std::vector<std::byte> sums;    ///< Where they do not lie in C.
    std::vector<std::byte> c_rows;  ///< One for each thread, before it is cut into blocks.
    std::size_t bytes = 0;          ///< With the product's own, as the program counts them.
  };

  /// The bindings have checked sizes and shapes; alignment matters to the kernels alone.
  Status check_bound() const {
    const auto one = [](const TensorDesc& desc, const device::TensorRef& tensor) -> Status {
      if (tensor.data == nullptr)
        return error(Code::kWrongState, "no memory is bound to '{}' {}", desc.name,
                     desc.shape.to_string());
      const std::size_t width = std::max<std::size_t>(1, dtype_bits(desc.dtype) / 8);
      if (std::bit_cast<std::uintptr_t>(tensor.data) % width != 0)
        return error(Code::kInvalidArgument,
                     "the memory of '{}' at {} is not aligned to {} bytes, "
                     "as {} asks for",
                     desc.name, tensor.data, width, dtype_name(desc.dtype));
      return {};
    };
    CORELANE_TRY(one(program_->inputs()[0], a_));
    CORELANE_TRY(one(program_->inputs()[1], b_));
    return one(program_->outputs()[0], c_);
  }

  /// Each part is computed in f64 once, so that every element takes one multiplication.
  void make_factors() {
    const auto a = static_cast<double>(desc_.a_scale);
    const double c = desc_.c == DType::kI8 ? static_cast<double>(desc_.c_scale) : 1.0;
    // What f32 does not hold would be infinity, and NaN for a sum of 0.
    const double most = desc_.c == DType::kI8
                            ? std::numeric_limits<double>::max()
                            : static_cast<double>(std::numeric_limits<float>::max());
    const auto factor = [&](float b) { return std::min(a * static_cast<double>(b) / c, most); };
    scale_.of_all = factor(1);
    if (!integer_ || desc_.b_scales.empty()) return;  // Packed B has its scale already.
    scale_.of_all = factor(desc_.b_scales[0]);
    if (desc_.b_quant != MatmulQuantB::kChannel) return;
    scale_.of_channel.resize(n_ + kFinishSlack);
    for (std::size_t n = 0; n < n_; ++n) scale_.of_channel[n] = factor(desc_.b_scales[n]);
    scale_.floats.assign(scale_.of_channel.begin(), scale_.of_channel.end());
  }

  void make_scratch(std::size_t threads) {
    gemm_.reset();
    if (!a_direct_) scratch_.a_rows.resize(m_ * k_ * (integer_ ? 1 : sizeof(float)));
    if (!c_direct_) scratch_.sums.resize(m_ * n_ * sizeof(std::int32_t));
    if (desc_.c_block != 0) scratch_.c_rows.resize(threads * n_ * c_width_);
    // Last: a product that exists has all its scratch memory.
    gemm_.emplace(program_->form(), desc_.m, desc_.k, desc_.n, threads);
    const std::size_t bytes = gemm_->scratch_bytes() + scratch_.a_rows.size() +
                              scratch_.sums.size() + scratch_.c_rows.size();
    program_->scratch_bytes += bytes - scratch_.bytes;
    scratch_.bytes = bytes;
  }

  void multiply(const std::shared_ptr<const PackedB>& b) {
    make_corrections(b);
    const void* const a = plain_a();
    gemm_->run(a, *b, c_direct_ ? c_.data : scratch_.sums.data());
    if (!c_finished_) make_c(a);
  }

  /// sum((a - za) * (b - zb)) = sum(a * b) - za * sum(b) + K * za * zb - zb * sum(a): all but the
  /// last term belong to the column. Each fits in i32 as K is at most 32768.
  void make_corrections(const std::shared_ptr<const PackedB>& b) {
    if (!integer_ || desc_.a_zero_point == 0 || corrected_.lock() == b) return;
    column_add_.resize(n_ + kFinishSlack);
    const std::int32_t za = desc_.a_zero_point;
    for (std::size_t n = 0; n < n_; ++n) {
      const std::int32_t zb = column_zero_ == nullptr ? 0 : column_zero_[n];
      column_add_[n] = static_cast<std::int32_t>(k_) * za * zb - za * b->column_sums[n];
    }
    corrected_ = b;
  }

  /// Row by row on the pool of this thread; a row is read once.
  const void* plain_a() {
    if (a_direct_) return a_.data;
    const std::size_t bytes = k_ * (integer_ ? 1 : sizeof(float));
    const std::size_t least = std::max<std::size_t>(1, kLeastElementsOfA / k_);
    for_ranges(gemm_->threads(), m_, least, [&](std::size_t begin, std::size_t end) {
      for (std::size_t row = begin; row < end; ++row)
        make_a_row(row, scratch_.a_rows.data() + row * bytes);
    });
    return scratch_.a_rows.data();
  }

  void make_a_row(std::size_t row, std::byte* out) const {
    const std::size_t run = desc_.a_block == 0 ? k_ : desc_.a_block;
    const std::size_t step = desc_.a == DType::kF16 ? run : std::min(run, kChunk);
    std::array<std::int8_t, kChunk> unpacked;
    for (std::size_t first = 0; first < k_; first += step) {
      // Steps do not cross a block: a block is at most kChunk.
      const std::size_t count = std::min(step, k_ - first);
      const std::size_t at =
          device::a_index(desc_, static_cast<std::int64_t>(row), static_cast<std::int64_t>(first));
      if (desc_.a == DType::kF16) {
        widen_f16(static_cast<const std::uint16_t*>(a_.data) + at, count,
                  reinterpret_cast<float*>(out) + first);
        continue;
      }
      const std::int8_t* values = unpacked.data();
      if (desc_.a == DType::kI4)
        unpack_i4(static_cast<const std::uint8_t*>(a_.data), at, count, unpacked.data());
      else
        values = static_cast<const std::int8_t*>(a_.data) + at;
      if (integer_) {
        std::memcpy(out + first, values, count);
        continue;
      }
      auto* floats = reinterpret_cast<float*>(out) + first;
      for (std::size_t i = 0; i < count; ++i)
        floats[i] = static_cast<float>(values[i] - desc_.a_zero_point);
    }
  }

  /// In parts of whole rows, one for each thread, since a part needs a row of its own where C has
  /// blocks.
  void make_c(const void* a) {
    const std::size_t most = std::max<std::size_t>(1, m_ * n_ / kLeastElementsOfC);
    const std::size_t parts = std::min({gemm_->threads(), m_, most});
    const std::size_t step = (m_ + parts - 1) / parts;
    const std::size_t row_bytes = n_ * c_width_;
    for_parts(gemm_->threads(), parts, [&](std::size_t part) {
      auto* const c = static_cast<std::byte*>(c_.data);
      const std::size_t end = std::min(m_, (part + 1) * step);
      for (std::size_t row = part * step; row < end; ++row) {
        if (desc_.c_block == 0) {
          finish_row(row, a, c + row * row_bytes);
          continue;
        }
        std::byte* const plain = scratch_.c_rows.data() + part * row_bytes;
        finish_row(row, a, plain);
        scatter_row(row, plain);
      }
    });
    // There is no memory for a conversion: reported here, outside of the parallel part.
    if (narrow_failed_.exchange(false)) throw std::bad_alloc();
  }

  /// One row of sums to C's type. The vector kernels may read kFinishSlack factors beyond N.
  void finish_row(std::size_t row, const void* a, std::byte* out) {
    FinishRow finish;
    // Sums of 4 bytes each, which may be overwritten.
    std::byte* const sums =
        (c_direct_ ? static_cast<std::byte*>(c_.data) : scratch_.sums.data()) + row * n_ * 4;
    finish.sums = sums;
    finish.count = n_;
    finish.add = column_add_.empty() ? nullptr : column_add_.data();
    finish.zero = column_zero_;
    if (column_zero_ != nullptr)
      finish.row_sum = sum_i8(static_cast<const std::int8_t*>(a) + row * k_, k_);
    finish.factors = scale_.of_channel.empty() ? nullptr : scale_.of_channel.data();
    finish.float_factors = scale_.floats.empty() ? nullptr : scale_.floats.data();
    finish.factor = scale_.of_all;
    finish.zero_point = desc_.c_zero_point;
    const auto to_f32 = integer_ ? finish_f32 : scale_f32;
    switch (desc_.c) {
      case DType::kI32:
        return finish_i32(finish, reinterpret_cast<std::int32_t*>(out));
      case DType::kI16:
        return finish_i16(finish, reinterpret_cast<std::int16_t*>(out));
      case DType::kI8:
        return (integer_ ? finish_i8 : scale_f32_to_i8)(finish,
                                                        reinterpret_cast<std::int8_t*>(out));
      case DType::kF32:
        return to_f32(finish, reinterpret_cast<float*>(out));
      default:
        if (integer_ || scale_.of_all != 1) to_f32(finish, reinterpret_cast<float*>(sums));
        if (!narrow(desc_.c, reinterpret_cast<const float*>(sums), n_, out)) narrow_failed_ = true;
    }
  }

  /// A plain row of C into blocks of columns; the padding of the last block is zeroed.
  void scatter_row(std::size_t row, const std::byte* values) const {
    auto* const c = static_cast<std::byte*>(c_.data);
    const std::size_t block = desc_.c_block;
    for (std::size_t first = 0; first < n_; first += block) {
      const std::size_t count = std::min(block, n_ - first);
      std::byte* const to = c + device::c_index(desc_, static_cast<std::int64_t>(row),
                                                static_cast<std::int64_t>(first)) *
                                    c_width_;
      std::memcpy(to, values + first * c_width_, count * c_width_);
      std::memset(to + count * c_width_, 0, (block - count) * c_width_);
    }
  }

  const std::shared_ptr<MatmulProgram> program_;
  const device::MatmulDesc& desc_;
  const std::size_t m_;
  const std::size_t k_;
  const std::size_t n_;
  const std::size_t c_width_;  ///< Bytes of an element of C.
  const bool integer_;         ///< Sums are i32, else f32.
  const bool a_direct_;        ///< The product reads the bound A in place.
  const bool c_direct_;        ///< It writes its sums into the bound C.
  const bool c_finished_;      ///< The sums are C already.
  device::TensorRef a_;
  device::TensorRef b_;
  device::TensorRef c_;
  std::shared_ptr<SharedB> shared_b_;

  std::optional<Gemm> gemm_;
  std::weak_ptr<const PackedB> corrected_;  ///< The B that `column_add_` belongs to.
  std::vector<std::int32_t> column_add_;    ///< What zero points add to each column; may be empty.
  const std::int32_t* column_zero_ = nullptr;  ///< B's zero points, where A's rows matter.
  std::vector<std::int32_t> zeros_;            ///< For `column_zero_`.
  Scale scale_;
  Scratch scratch_;
  std::atomic<bool> narrow_failed_{false};  ///< In a part of this run.
  Duration last_run_{};
  bool ran_ = false;
};

}  // namespace

/// Requests are alike for all cores and widths: threads are chosen at the run.
Result<std::unique_ptr<device::LaneRequest>> MatmulProgram::new_request(std::size_t, std::size_t) {
  return std::make_unique<MatmulRequest>(shared_from_this());
}

}  // namespace corelane::drivers::virtual_npu
