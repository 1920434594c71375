#include "corelane/tensor/desc.h"

#include "corelane/base/printable.h"

namespace corelane {

std::string TensorDesc::to_string() const {
  if (!value.empty()) {
    const bool shown = value.is_tensor() && value.shape;
    return fmt::format("{}: {}{}", printable(name), value.to_string(),
                       shown ? " " + value.shape->to_string() : "");
  }
  std::string text = fmt::format("{}: {} {} {}", printable(name), dtype_name(dtype),
                                 shape.to_string(), layout_name(layout.kind));
  if (layout.kind == LayoutKind::kNC1HWC2) text += fmt::format(" c2 {}", layout.c2);
  if (layout.w_stride != 0) text += fmt::format(" w_stride {}", layout.w_stride);
  if (quant.kind != QuantKind::kNone) text += " " + quant.to_string();
  return text;
}

}  // namespace corelane
