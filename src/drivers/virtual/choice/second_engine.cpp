#include "drivers/virtual/choice/second_engine.h"

#include "device/registry/driver_loader.h"

namespace corelane::drivers::virtual_npu {

/// Opened without the lock: of threads that come at the same time, the first one's stays.
Result<device::OpenedEngine> SecondEngine::get() {
  {
    const MutexLock lock(mutex_);
    if (opened_.engine != nullptr) return opened_;
  }
  const auto open = [&]() -> Result<device::OpenedEngine> {
    CORELANE_ASSIGN(const device::DriverModule* const module, device::load_module("onnxruntime"));
    return module->open_engine(device_);
  };
  auto opened = open();
  if (!opened) {
    if (opened.error().code() == Code::kWrongState) return opened;  // A forked child.
    return error(opened.error().wrap(
        Code::kUnsupported, "the engine onnxruntime cannot be used; `corelane doctor` says more"));
  }
  const MutexLock lock(mutex_);
  if (opened_.engine == nullptr) opened_ = std::move(*opened);
  return opened_;
}

}  // namespace corelane::drivers::virtual_npu
