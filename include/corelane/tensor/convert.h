/// Conversion of a tensor between layouts, element types and quantizations in one pass.
#pragma once

#include <string_view>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"

namespace corelane {

/// Which implementation runs. kAuto takes the fast kernel where one fits, else the reference.
enum class ConvertPath : std::uint8_t { kAuto, kReference, kFast };

struct ConvertOptions {
  /// Per channel (4-D: axis 1; other ranks not allowed), applied to real values of the source:
  /// x = (x - mean) / std. Empty: none. Length 1 (all channels) or C; std != 0.
  std::vector<float> mean;
  std::vector<float> std;
  ConvertPath path = ConvertPath::kAuto;
};

/// Writes `src` to `dst`: both must have the same static shape; dtype, layout and quantization may
/// differ. Each element becomes a real by the source's quantization, is normalised, and is written
/// by the destination's: integers round half to even and saturate (NaN becomes the zero point),
/// f16/bf16 round to nearest even, bool is x != 0. Equal types and quantizations move the bits.
/// i64, u64 and i32/u32 without quantization convert among themselves exactly, saturating.
/// Padding of the destination (C2 tail, row stride) is set to its zero (the zero point).
///
/// Errors: kShapeMismatch; kInvalidArgument (layout, mean/std, null data); kOutOfRange (`size` too
/// small, with given and needed bytes); kUnsupported (string, and f8, f4, i2 and u2 to or from
/// another type). kFast with no fitting kernel is kUnsupported. The memories must not overlap
/// unless they are identical and only bits are moved. Any thread.
CORELANE_API Status convert(const TensorView& src, const MutableTensorView& dst,
                            const ConvertOptions& options = {});

/// The name of the instruction set the fast kernels use on this CPU ("AVX3_ZEN4", "NEON", ...).
CORELANE_API std::string_view convert_isa() noexcept;

/// Scalar conversions, for tests and single values. Round to nearest even.
CORELANE_API std::uint16_t f32_to_f16(float x) noexcept;
/// The f32 of a binary16 number; exact. Any thread.
CORELANE_API float f16_to_f32(std::uint16_t h) noexcept;
/// The nearest bfloat16, ties to even; NaN stays NaN. Any thread.
CORELANE_API std::uint16_t f32_to_bf16(float x) noexcept;
/// The f32 of a bfloat16; exact. Any thread.
CORELANE_API float bf16_to_f32(std::uint16_t b) noexcept;

}  // namespace corelane
