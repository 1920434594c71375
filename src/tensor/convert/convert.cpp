#include "corelane/tensor/convert.h"

#include "tensor/convert/convert_plan.h"

namespace corelane {

Status convert(const TensorView& src, const MutableTensorView& dst, const ConvertOptions& options) {
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
