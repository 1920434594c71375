#include "corelane/tensor/convert.h"

#include <cstdint>
#include <cstring>
#include <optional>

#include "tensor/convert/convert_plan.h"

namespace corelane {
namespace {

/// Copies what most results of an engine are: dense, of the same type on both sides, without
/// quantization. Planning that takes longer than the copy of a small one. False, and nothing
/// written, where anything else is asked for or is wrong.
bool copy_dense(const TensorView& src, const MutableTensorView& dst,
                const ConvertOptions& options) {
  const Layout dense;
  if (options.path != ConvertPath::kAuto || !options.mean.empty() || !options.std.empty() ||
      src.dtype != dst.dtype || src.layout != dense || dst.layout != dense ||
      src.quant.kind != QuantKind::kNone || dst.quant.kind != QuantKind::kNone ||
      src.shape != dst.shape)
    return false;
  const std::optional<std::size_t> elements = src.shape.elements();
  // Bits that fill up a byte are not part of a tensor.
  if (!elements || dtype_bits(src.dtype) < 8) return false;
  const std::size_t bytes = dtype_bytes(src.dtype, *elements);
  if (bytes == 0 || src.data == nullptr || dst.data == nullptr || src.size < bytes ||
      dst.size < bytes)
    return false;
  const auto from = reinterpret_cast<std::uintptr_t>(src.data);
  const auto to = reinterpret_cast<std::uintptr_t>(dst.data);
  if (bytes > (from < to ? to - from : from - to)) return false;
  std::memcpy(dst.data, src.data, bytes);
  return true;
}

}  // namespace

Status convert(const TensorView& src, const MutableTensorView& dst, const ConvertOptions& options) {
  if (copy_dense(src, dst, options)) return {};
  CORELANE_ASSIGN(const detail::ConvertPlan plan, detail::make_convert_plan(src, dst, options));
  // After the checks: an empty tensor with wrong parameters is a mistake all the same.
  if (plan.to.total == 0) return {};
  if (options.path != ConvertPath::kReference && detail::convert_fast(plan)) return {};
  if (options.path == ConvertPath::kFast) {
    return error(Code::kUnsupported,
                 "no fast kernel converts {} {} in layout {} to {} in layout {} with these "
                 "quantizations; use the automatic path",
                 dtype_name(src.dtype), src.shape.to_string(), layout_name(src.layout.kind),
                 dtype_name(dst.dtype), layout_name(dst.layout.kind));
  }
  detail::convert_reference(plan);
  return {};
}

}  // namespace corelane
