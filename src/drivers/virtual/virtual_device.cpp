#include "drivers/virtual/virtual_device.h"

#include <utility>

#include "drivers/virtual/engine/engine_runtime.h"
#include "drivers/virtual/virtual_engine.h"

namespace corelane::drivers::virtual_npu {

Result<device::OpenedEngine> open_virtual_engine(const device::OpenRequest& request) {
  try {
    for (const auto& [key, value] : request.spec.options)
      if (key != "name")
        return error(Code::kInvalidArgument, "option '{}={}' is unknown; 'virtual' takes name=...",
                     key, value);
    device::OpenedEngine opened{request.info, make_virtual_engine(request.info.cores.size())};
    describe_engine(opened.info);
    return opened;
  } catch (...) {
    return error(status_of_exception(Code::kInternal, "opening the virtual NPU"));
  }
}

}  // namespace corelane::drivers::virtual_npu
