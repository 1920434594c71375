/// Quantization parameters: x = (q - zero_point) * scale per tensor or per channel (ONNX
/// QuantizeLinear, RKNN "asymmetric affine"), or x = q * 2^-fl (RKNN "dynamic fixed point").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"

namespace corelane {

class Shape;

enum class QuantKind : std::uint8_t { kNone = 0, kDfp = 1, kAffine = 2 };

/// How integers of a tensor stand for reals. A value.
struct CORELANE_API Quant {
  QuantKind kind = QuantKind::kNone;
  std::int8_t fl = 0;                     ///< kDfp: fraction length.
  std::vector<float> scales;              ///< kAffine: one, or one per index of `axis`; > 0.
  std::vector<std::int32_t> zero_points;  ///< As many as scales.
  std::int32_t axis = -1;                 ///< Channel axis in shape order; -1 per tensor.

  /// No quantization: the values are what they say.
  static Quant none() { return {}; }
  /// x = (q - zero_point) * scale, one pair for the tensor.
  static Quant affine(float scale, std::int32_t zero_point);
  /// x = q * 2^-fl.
  static Quant dfp(std::int8_t fl);
  /// True where scales are per index of `axis`.
  bool per_channel() const noexcept { return axis >= 0; }
  /// kInvalidArgument when lists differ in length, a scale is not finite and > 0, or the axis does
  /// not fit `shape`.
  Status check(const Shape& shape) const;
  /// For messages: "none", "affine(scale 0.5, zero point 3)", "dfp(fl 7)".
  std::string to_string() const;
  bool operator==(const Quant&) const = default;
};

}  // namespace corelane
