#include "base/leaked.h"
#include "corelane/device/matmul_image.h"
#include "corelane/driver/module.h"
#include "drivers/chips/known_chips.h"
#include "drivers/virtual/virtual_engine.h"

namespace corelane::device {

const DriverDescription& describe_virtual() {
  static Leaked<const DriverDescription> description([] {
    DriverDescription d;
    d.kind = "virtual";
    d.chips = drivers::chips::known_chips();
    d.examples = {"virtual:rk3588?engine=onnxruntime"};
    d.most_generic_cores = CoreSet::kMaxCores;
    d.capabilities = {true, true, true, true, true, true, true, {"onnx", std::string(kMatmulKind)}};
    return d;
  }());
  return *description;
}

}  // namespace corelane::device
