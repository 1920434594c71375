#include "tensor/convert/convert_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace corelane::detail {

namespace {

bool is_wide_integer(DType t) {
  return t == DType::kI32 || t == DType::kU32 || t == DType::kI64 || t == DType::kU64;
}

bool is_64_bit(DType t) { return t == DType::kI64 || t == DType::kU64 || t == DType::kF64; }

/// Quantization applies to integers only; it is ignored on other types.
Quant effective(const Quant& quant, DType type) { return is_integer(type) ? quant : Quant::none(); }

QuantPlan plan_quant(const Quant& quant, const Shape& shape) {
  QuantPlan plan;
  if (quant.kind == QuantKind::kNone) return plan;
  plan.active = true;
  if (quant.kind == QuantKind::kDfp) {
    // Within these both 2^-fl and its inverse are normal f32s.
    plan.wide_dfp = quant.fl > 126 || quant.fl < -126;
    plan.fl = plan.wide_dfp ? quant.fl : 0;
    plan.scales = {plan.wide_dfp ? 1.0F : std::ldexp(1.0F, -quant.fl)};
    return plan;
  }
  plan.scales = quant.scales;
  plan.zero_points = quant.zero_points;
  if (!quant.per_channel()) return plan;
  const auto axis = static_cast<std::size_t>(quant.axis);
  plan.count = static_cast<std::size_t>(shape[axis]);
  for (std::size_t i = axis + 1; i < shape.rank(); ++i) {
    // 1 for an empty dimension: no element is divided by it, but padding beside it may be.
    plan.inner *= std::max<std::size_t>(1, static_cast<std::size_t>(shape[i]));
  }
  return plan;
}

Addressing plan_addressing(const ConvertPlan& p, const Layout& layout) {
  Addressing a;
  a.stored_c = p.c;
  // Strides are in elements, from the innermost dimension outwards.
  a.stored_w = layout.w_stride != 0 ? layout.w_stride : p.w;
  // Divided by, also where there is no channel.
  a.c2 = p.c == 0 ? 1 : p.c;
  switch (layout.kind) {
    case LayoutKind::kPlain:
      a.sw = 1;
      a.sh = a.stored_w;
      a.sc = p.h * a.sh;
      a.sn = p.c * a.sc;
      break;
    case LayoutKind::kNHWC:
      a.sc = 1;
      a.sw = p.c;
      a.sh = a.stored_w * a.sw;
      a.sn = p.h * a.sh;
      break;
    case LayoutKind::kNC1HWC2: {
      a.c2 = layout.c2;
      const std::size_t blocks = p.c / a.c2 + (p.c % a.c2 != 0 ? 1 : 0);
      a.stored_c = blocks * a.c2;
      a.sc = 1;
      a.sw = a.c2;
      a.sh = a.stored_w * a.sw;
      a.sc1 = p.h * a.sh;
      a.sn = blocks * a.sc1;
      break;
    }
  }
  a.total = p.n * a.sn;
  return a;
}

Status check_list(std::string_view name, const std::vector<float>& list, const Shape& shape) {
  if (list.empty()) return {};
  if (shape.rank() != 4) {
    return error(Code::kInvalidArgument,
                 "{} is applied to channels of a 4-D tensor, given shape {}", name,
                 shape.to_string());
  }
  // The size is compared with a shape that is static: check_memory() came first.
  if (list.size() != 1 && static_cast<std::int64_t>(list.size()) != shape[1]) {
    return error(Code::kInvalidArgument, "{} has {} values; allowed are 1 or {} (channels of {})",
                 name, list.size(), shape[1], shape.to_string());
  }
  for (const float x : list) {
    if (!std::isfinite(x) || (name == "std" && x == 0)) {
      return error(Code::kInvalidArgument, "{} holds {}; it must be finite{}", name, x,
                   name == "std" ? " and not 0" : "");
    }
  }
  return {};
}

Result<std::size_t> check_memory(std::string_view name, const TensorView& view) {
  auto needed = storage_bytes(view.shape, view.dtype, view.layout);
  if (!needed) return error(needed.error().wrap(fmt::format("{} of a conversion", name)));
  if (const Status quant = effective(view.quant, view.dtype).check(view.shape); !quant.ok())
    return error(quant.wrap(fmt::format("{} of a conversion", name)));
  if (*needed > 0 && view.data == nullptr) {
    return error(Code::kInvalidArgument, "the data of the {} is null, {} bytes are needed", name,
                 *needed);
  }
  if (view.size < *needed) {
    return error(Code::kOutOfRange, "the {} has {} bytes, but {} {} in layout {} needs {}", name,
                 view.size, dtype_name(view.dtype), view.shape.to_string(),
                 layout_name(view.layout.kind), *needed);
  }
  return needed;
}

/// Elements that no conversion reads can only be moved.
Status check_types(const TensorView& src, const MutableTensorView& dst, bool normalise) {
  if (!is_opaque(src.dtype) && !is_opaque(dst.dtype)) return {};
  if (src.dtype == dst.dtype && !normalise) return {};
  return error(Code::kUnsupported,
               "conversion from {} to {}{}; f8, f4, i2 and u2 are only copied: give memory of the "
               "tensor's own type, or add a Cast to the model",
               dtype_name(src.dtype), dtype_name(dst.dtype), normalise ? " by mean and std" : "");
}

Arithmetic choose_arithmetic(const ConvertPlan& p, bool same_quant) {
  if (p.normalise) {
    // Falls through to real arithmetic.
  } else if (p.src_type == p.dst_type && same_quant) {
    return Arithmetic::kMoveBits;
  } else if (is_wide_integer(p.src_type) && is_wide_integer(p.dst_type) && !p.dequant.active &&
             !p.quant.active) {
    return Arithmetic::kExactInteger;
  }
  // What f32 cannot hold: its 24 bits are fewer than those of wide integers and of f64.
  if (p.dequant.wide_dfp || p.quant.wide_dfp || is_64_bit(p.src_type) || is_64_bit(p.dst_type) ||
      is_wide_integer(p.dst_type)) {
    return Arithmetic::kF64;
  }
  // A quantized 32-bit integer becomes an f32 as ONNX DequantizeLinear makes it.
  if (is_wide_integer(p.src_type) && !(p.dequant.active && is_float(p.dst_type)))
    return Arithmetic::kF64;
  return Arithmetic::kF32;
}

Status check_overlap(const ConvertPlan& p, std::size_t src_bytes, std::size_t dst_bytes) {
  // As numbers: pointers into different arrays have no order.
  const auto s = reinterpret_cast<std::uintptr_t>(p.src);
  const auto d = reinterpret_cast<std::uintptr_t>(p.dst);
  if (src_bytes == 0 || dst_bytes == 0 || s + src_bytes <= d || d + dst_bytes <= s) return {};
  if (s == d && p.arithmetic == Arithmetic::kMoveBits && p.src_layout == p.dst_layout) return {};
  return error(Code::kInvalidArgument,
               "source and destination of a conversion overlap; give separate memory (only an "
               "unchanged tensor may be written to itself)");
}

}  // namespace

Result<ConvertPlan> make_convert_plan(const TensorView& src, const MutableTensorView& dst,
                                      const ConvertOptions& options) {
  if (src.shape != dst.shape) {
    return error(Code::kShapeMismatch,
                 "conversion from shape {} to {}; both must be the same static shape",
                 src.shape.to_string(), dst.shape.to_string());
  }
  CORELANE_ASSIGN(const std::size_t src_bytes, check_memory("source", src));
  CORELANE_ASSIGN(const std::size_t dst_bytes, check_memory("destination", dst));
  CORELANE_TRY(check_list("mean", options.mean, src.shape));
  CORELANE_TRY(check_list("std", options.std, src.shape));
  const bool normalise = !options.mean.empty() || !options.std.empty();
  CORELANE_TRY(check_types(src, dst, normalise));

  ConvertPlan p;
  const Shape& shape = src.shape;
  if (shape.rank() == 4) {
    p.n = static_cast<std::size_t>(shape[0]);
    p.c = static_cast<std::size_t>(shape[1]);
    p.h = static_cast<std::size_t>(shape[2]);
    p.w = static_cast<std::size_t>(shape[3]);
  } else {
    // A row of pixels of one channel.
    p.w = *shape.elements();
  }
  p.src = static_cast<const std::byte*>(src.data);
  p.dst = static_cast<std::byte*>(dst.data);
  p.src_type = src.dtype;
  p.dst_type = dst.dtype;
  p.src_layout = src.layout;
  p.dst_layout = dst.layout;
  p.from = plan_addressing(p, src.layout);
  p.to = plan_addressing(p, dst.layout);
  const Quant src_quant = effective(src.quant, src.dtype);
  const Quant dst_quant = effective(dst.quant, dst.dtype);
  p.dequant = plan_quant(src_quant, shape);
  p.quant = plan_quant(dst_quant, shape);
  p.normalise = normalise;
  if (!options.mean.empty()) p.mean = options.mean;
  if (!options.std.empty()) p.std = options.std;
  p.arithmetic = choose_arithmetic(p, src_quant == dst_quant);
  CORELANE_TRY(check_overlap(p, src_bytes, dst_bytes));
  return p;
}

}  // namespace corelane::detail
