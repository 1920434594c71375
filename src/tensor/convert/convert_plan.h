/// A checked conversion: what convert() hands to its implementations.
#pragma once

#include <cstdint>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/tensor/convert.h"

namespace corelane::detail {

/// Quantization of one side, resolved. The element at place i in shape order takes entry
/// (i / inner) % count of the lists.
struct QuantPlan {
  bool active = false;  ///< False: scale 1 and zero point 0, no arithmetic.
  std::vector<float> scales{1.0F};
  std::vector<std::int32_t> zero_points{0};
  bool wide_dfp = false;  ///< kDfp whose scale no normal f32 holds: the scale is 2^-fl.
  std::int32_t fl = 0;
  std::size_t inner = 1;
  std::size_t count = 1;  ///< 0 with an empty axis.
  std::size_t index(std::size_t place) const noexcept {
    return count <= 1 ? 0 : place / inner % count;
  }
};

/// Memory of one side in elements. The offset of element (n, c, h, w) is
/// n*sn + (c / c2)*sc1 + (c % c2)*sc + h*sh + w*sw.
struct Addressing {
  std::size_t sn = 0, sc1 = 0, sc = 0, sh = 0, sw = 0;
  std::size_t c2 = 1;        ///< Channels per block; at least C where channels are not blocked.
  std::size_t stored_c = 0;  ///< Channels in memory, the tail of the last block included.
  std::size_t stored_w = 0;  ///< Pixels of a row in memory.
  std::size_t total = 0;     ///< Elements in memory.
  std::size_t offset(std::size_t n, std::size_t c, std::size_t h, std::size_t w) const noexcept {
    return n * sn + (c / c2) * sc1 + (c % c2) * sc + h * sh + w * sw;
  }
};

/// In which arithmetic an element is converted.
enum class Arithmetic : std::uint8_t {
  kMoveBits,      ///< Equal types and quantizations.
  kExactInteger,  ///< i32, u32, i64, u64 without quantization: exact, saturating.
  kF32,           ///< Reals are f32.
  kF64,           ///< Reals are f64: a side that f32 cannot hold.
};

struct ConvertPlan {
  std::size_t n = 1, c = 1, h = 1, w = 1;
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  DType src_type = DType::kUndefined;
  DType dst_type = DType::kUndefined;
  Layout src_layout, dst_layout;
  Addressing from, to;
  QuantPlan dequant, quant;
  bool normalise = false;
  std::vector<float> mean{0.0F};  ///< One, or one per channel.
  std::vector<float> std{1.0F};
  Arithmetic arithmetic = Arithmetic::kF32;
  /// Tensors that together are larger fit no cache for sure; tests set it to 0.
  std::size_t cache_bytes = std::size_t{32} << 20;
  std::size_t elements() const noexcept { return n * c * h * w; }
  /// Place of an element in shape order.
  std::size_t place(std::size_t in, std::size_t ic, std::size_t ih, std::size_t iw) const noexcept {
    return ((in * c + ic) * h + ih) * (w == 0 ? 1 : w) + iw;
  }
};

/// Makes all the checks that convert() documents.
Result<ConvertPlan> make_convert_plan(const TensorView& src, const MutableTensorView& dst,
                                      const ConvertOptions& options);

/// The plain implementation: one element at a time, any types, layouts and quantizations.
void convert_reference(const ConvertPlan& plan);

/// The fast implementation; false, with nothing written, when it has no kernel for the plan.
bool convert_fast(const ConvertPlan& plan);

/// Stores a zero point, saturated to the integer type, as element i.
void store_zero_point(DType type, std::byte* base, std::size_t i, std::int32_t zero_point);

/// Sets the destination's padding (tail of the last channel block, pixels beyond the width) to its
/// zero: for integers the zero point of the nearest element along the quantization axis.
void fill_padding(const ConvertPlan& plan);

}  // namespace corelane::detail
