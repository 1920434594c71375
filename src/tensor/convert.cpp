#include "corelane/tensor/convert.h"

#include "tensor/convert_plan.h"

namespace corelane {

Status convert(const TensorView& src, const MutableTensorView& dst, const ConvertOptions& options) {
  CORELANE_ASSIGN_OR_STATUS(const detail::ConvertPlan plan,
                            detail::make_convert_plan(src, dst, options));
  if (plan.to.total == 0) return {};
  if (options.path == ConvertPath::kFast) {
    return failure(Code::kUnsupported, "no fast kernel converts {} to {}", dtype_name(src.dtype),
                   dtype_name(dst.dtype));
  }
  detail::convert_reference(plan);
  return {};
}

std::string_view convert_isa() noexcept { return "reference"; }

}  // namespace corelane
