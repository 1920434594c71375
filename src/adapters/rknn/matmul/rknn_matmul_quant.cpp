/// Scales and zero points of a matrix product.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "adapters/rknn/api/rknn_log.h"
#include "adapters/rknn/matmul/rknn_matmul.h"

namespace corelane::rknn {
namespace {

/// How many scales a quantization takes.
std::string lengths_text(device::MatmulQuantB quant, std::size_t count) {
  if (quant == device::MatmulQuantB::kLayer) return "1 (per layer)";
  if (quant == device::MatmulQuantB::kChannel) return fmt::format("N = {} (per channel)", count);
  return fmt::format("N * K / group_size = {} (per group)", count);
}

/// A scale of 0 or NaN would make every result 0 or NaN without a word.
Status check_values(Matrix matrix, DType type, std::span<const float> scales,
                    std::span<const std::int32_t> zero_points) {
  for (std::size_t i = 0; i < scales.size(); ++i)
    if (!std::isfinite(scales[i]) || scales[i] <= 0)
      return error(Code::kInvalidArgument, "scale[{}] of {} is {}; it is finite and above 0", i,
                   matrix_name(matrix), scales[i]);
  const std::int32_t low = type == DType::kI4 ? -8 : -128;
  for (std::size_t i = 0; i < zero_points.size(); ++i)
    if (zero_points[i] < low || zero_points[i] >= -low)
      return error(Code::kInvalidArgument, "zp[{}] of {} is {}; {} holds {} to {}", i,
                   matrix_name(matrix), zero_points[i], dtype_name(type), low, -low - 1);
  return {};
}

/// A matrix that is not quantized: 1 and 0 say nothing, other values are a misunderstanding.
Status check_none(Matrix matrix, DType type, std::span<const float> scales,
                  std::span<const std::int32_t> zero_points) {
  const bool nothing = std::all_of(scales.begin(), scales.end(), [](float s) { return s == 1; }) &&
                       std::all_of(zero_points.begin(), zero_points.end(),
                                   [](std::int32_t zero) { return zero == 0; });
  if (nothing) return {};
  if (type == DType::kI32 || type == DType::kI16) {
    log::line(log::Level::kWarn,
              "rknn_matmul_set_quant_params: C of {} holds sums of integers; its scale has no "
              "effect",
              dtype_name(type));
    return {};
  }
  return error(Code::kInvalidArgument,
               "{} is {} and not quantized, so it takes no scale but 1 and no zero point but 0; "
               "leave out the call",
               matrix_name(matrix), dtype_name(type));
}

bool all_zero(const std::vector<std::int32_t>& values) {
  return std::all_of(values.begin(), values.end(), [](std::int32_t zero) { return zero == 0; });
}

}  // namespace

/// Against the chosen shape, or the first one while none is chosen.
Status MatmulContext::check_lengths(Matrix matrix, const rknn_quant_params& params) {
  const Size& size = sizes_[chosen_ < sizes_.size() ? chosen_ : 0];
  const bool b = matrix == Matrix::kB;
  const std::size_t wanted = b ? scale_count(plan_, size.desc) : 1;
  const std::string text = lengths_text(b ? plan_.b_quant : device::MatmulQuantB::kLayer, wanted);
  if (params.scale == nullptr)
    return error(Code::kInvalidArgument, "scale of {} is null; give {} of them",
                 matrix_name(matrix), text);
  if (params.scale_len < 0 || static_cast<std::size_t>(params.scale_len) != wanted)
    return error(Code::kInvalidArgument, "scale_len of {} is {}; by its quantization it is {}",
                 matrix_name(matrix), params.scale_len, text);
  if (params.zp_len != 0 &&
      (params.zp_len < 0 || static_cast<std::size_t>(params.zp_len) != wanted))
    return error(Code::kInvalidArgument, "zp_len of {} is {}; it is {}, or 0 for none",
                 matrix_name(matrix), params.zp_len, text);
  if (params.zp_len != 0 && params.zp == nullptr)
    return error(Code::kInvalidArgument, "zp of {} is null with zp_len {}; give them or set 0",
                 matrix_name(matrix), params.zp_len);
  return {};
}

/// Scales are part of the device's image, so that all shapes are prepared anew.
Outcome MatmulContext::set_quant_params(const rknn_quant_params& params) {
  CORELANE_ASSIGN(const Matrix matrix, matrix_of(params.name));
  const ContextLock lock(mutex_);
  if (!lock.ok()) return lock.refused();
  CORELANE_TRY(check_lengths(matrix, params));
  const std::span scales(params.scale, static_cast<std::size_t>(params.scale_len));
  const std::span zero_points(params.zp, static_cast<std::size_t>(params.zp_len));
  const DType type = type_of(matrix);
  if (type != DType::kI4 && type != DType::kI8)
    return check_none(matrix, type, scales, zero_points);
  CORELANE_TRY(check_values(matrix, type, scales, zero_points));
  Scales set{{scales.begin(), scales.end()}, {zero_points.begin(), zero_points.end()}};
  const bool asymmetric = matrix == Matrix::kB ? plan_.b_zero_points : plan_.ac_zero_points;
  if (!asymmetric && !all_zero(set.zero_points))
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "zp of {} is not 0, but {} says symmetric; create the product with the odd "
                   "(asymmetric) quantization type",
                   matrix_name(matrix), matrix == Matrix::kB ? "B_quant_type" : "AC_quant_type");
  if (all_zero(set.zero_points)) set.zero_points.clear();
  quant_[static_cast<std::size_t>(matrix)] = std::move(set);
  for (Size& size : sizes_) size.ready = {};
  return {};
}

Outcome MatmulContext::get_quant_params(const rknn_quant_params& params, float* scale) {
  CORELANE_ASSIGN(const Matrix matrix, matrix_of(params.name));
  if (scale == nullptr)
    return outcome(RKNN_ERR_PARAM_INVALID, "scale is null; pass where the number goes");
  const ContextLock lock(mutex_);
  if (!lock.ok()) return lock.refused();
  const Scales& quant = quant_[static_cast<std::size_t>(matrix)];
  if (matrix == Matrix::kB && plan_.b_quant != device::MatmulQuantB::kLayer &&
      plan_.types.number != RKNN_INT8_MM_INT8_TO_INT32)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "B has a scale for each {}, and type {} has none that stands for all; only type "
                   "2 per channel has",
                   plan_.b_quant == device::MatmulQuantB::kChannel ? "channel" : "group",
                   static_cast<int>(plan_.types.number));
  *scale =
      quant.scales.empty() ? 1.0F : *std::max_element(quant.scales.begin(), quant.scales.end());
  return {};
}

/// The description that the device gets: `size.desc` with the scales that were set.
Result<device::MatmulDesc> MatmulContext::with_quant(const Size& size) const {
  device::MatmulDesc desc = size.desc;
  const auto& [a, b, c] = quant_;
  if (!a.scales.empty()) desc.a_scale = a.scales[0];
  if (!a.zero_points.empty()) desc.a_zero_point = a.zero_points[0];
  if (!c.scales.empty()) desc.c_scale = c.scales[0];
  if (!c.zero_points.empty()) desc.c_zero_point = c.zero_points[0];
  if (b.scales.empty()) return desc;
  const std::size_t wanted = scale_count(plan_, desc);
  if (b.scales.size() != wanted)
    return error(Code::kWrongState,
                 "B was given {} scales, and {} takes {}; call rknn_matmul_set_quant_params after "
                 "rknn_matmul_set_dynamic_shape",
                 b.scales.size(), desc.to_string(), lengths_text(plan_.b_quant, wanted));
  // Scales do not enter sums of integers; without them the packed copies are the same.
  const bool integers = desc.c == DType::kI32 || desc.c == DType::kI16;
  if (integers && b.zero_points.empty()) return desc;
  desc.b_quant = plan_.b_quant;
  desc.group_size = plan_.group_size;
  desc.b_scales = integers ? std::vector<float>(wanted, 1.0F) : b.scales;
  desc.b_zero_points = b.zero_points;
  return desc;
}

bool MatmulContext::normalizes() const noexcept {
  if (plan_.types.number != RKNN_INT8_MM_INT8_TO_INT32) return false;
  const std::vector<float>& scales = quant_[1].scales;
  return std::any_of(scales.begin(), scales.end(), [&](float s) { return s != scales[0]; });
}

/// In f64: a sum has 31 bits, a float 24.
void MatmulContext::normalize(const Size& size) const {
  const std::vector<float>& scales = quant_[1].scales;
  const double common = *std::max_element(scales.begin(), scales.end());
  auto* c = static_cast<std::int32_t*>(bound_[2].memory->data);
  for (std::int64_t m = 0; m < size.desc.m; ++m)
    for (std::int64_t n = 0; n < size.desc.n; ++n) {
      std::int32_t& sum = c[device::c_index(size.desc, m, n)];
      // At most 1, so that it stays within int32.
      const double factor = static_cast<double>(scales[static_cast<std::size_t>(n)]) / common;
      sum = static_cast<std::int32_t>(std::nearbyint(sum * factor));
    }
}

}  // namespace corelane::rknn
