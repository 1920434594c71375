#include "corelane/tensor/quant.h"

#include <cmath>

#include "corelane/tensor/shape.h"

namespace corelane {

Quant Quant::affine(float scale, std::int32_t zero_point) {
  Quant q;
  q.kind = QuantKind::kAffine;
  q.scales = {scale};
  q.zero_points = {zero_point};
  return q;
}

Quant Quant::dfp(std::int8_t fl) {
  Quant q;
  q.kind = QuantKind::kDfp;
  q.fl = fl;
  return q;
}

Status Quant::check(const Shape& shape) const {
  // Any fraction length makes sense.
  if (kind == QuantKind::kNone || kind == QuantKind::kDfp) return {};
  if (kind != QuantKind::kAffine) {
    return error(Code::kInvalidArgument, "quantization kind {} is none of none, dfp, affine",
                 static_cast<int>(kind));
  }
  if (scales.size() != zero_points.size()) {
    return error(Code::kInvalidArgument,
                 "affine quantization with {} scales and {} zero points; both lists must have "
                 "the same length",
                 scales.size(), zero_points.size());
  }
  for (std::size_t i = 0; i < scales.size(); ++i) {
    // A NaN is not finite; a negative scale would turn the order of values around.
    if (!std::isfinite(scales[i]) || scales[i] <= 0) {
      return error(Code::kInvalidArgument, "scale {} of channel {} is not finite and > 0",
                   scales[i], i);
    }
  }
  if (!per_channel()) {
    if (scales.size() == 1) return {};
    return error(Code::kInvalidArgument,
                 "affine quantization per tensor needs one scale, given {}; set the axis for one "
                 "per channel",
                 scales.size());
  }
  const auto at = static_cast<std::size_t>(axis);
  if (at >= shape.rank()) {
    return error(Code::kInvalidArgument, "quantization axis {} does not exist in shape {}", axis,
                 shape.to_string());
  }
  // An open dimension is compared when it is known.
  const bool fits = shape[at] == Shape::kOpen
                        ? !scales.empty()
                        : shape[at] == static_cast<std::int64_t>(scales.size());
  if (!fits) {
    return error(Code::kInvalidArgument,
                 "quantization along axis {} of shape {} needs {} scales, given {}", axis,
                 shape.to_string(), shape[at], scales.size());
  }
  return {};
}

std::string Quant::to_string() const {
  switch (kind) {
    case QuantKind::kNone:
      return "none";
    case QuantKind::kDfp:
      return fmt::format("dfp(fl {})", fl);
    case QuantKind::kAffine:
      break;
  }
  if (per_channel()) return fmt::format("affine({} channels of axis {})", scales.size(), axis);
  // For messages about parameters that check() refuses, too.
  if (scales.empty() || zero_points.empty()) return "affine(empty)";
  return fmt::format("affine(scale {}, zero point {})", scales[0], zero_points[0]);
}

}  // namespace corelane
