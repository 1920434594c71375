#include "base/leaked.h"
#include "corelane/driver/module.h"
#include "drivers/chips/known_chips.h"

namespace corelane::device {

const DriverDescription& describe_null() {
  static Leaked<const DriverDescription> description([] {
    DriverDescription d;
    d.kind = "null";
    d.chips = drivers::chips::known_chips();
    d.most_generic_cores = CoreSet::kMaxCores;
    d.capabilities.multi_core_jobs = true;
    d.capabilities.dynamic_shapes = true;
    d.capabilities.image_kinds = {"null", "onnx", "*"};
    d.examples = {"null?a=1ms&b=100us"};
    return d;
  }());
  return *description;
}

}  // namespace corelane::device
