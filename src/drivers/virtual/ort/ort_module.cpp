/// The export of libcorelane_onnxruntime.so.
#include "base/leaked.h"
#include "corelane/base/log.h"
#include "corelane/driver/module.h"
#include "drivers/virtual/ort/ort_engine.h"
#include "drivers/virtual/ort/ort_library.h"

namespace {

namespace ort = corelane::drivers::virtual_npu::ort;

const corelane::device::DriverDescription& describe() {
  static corelane::Leaked<const corelane::device::DriverDescription> description([] {
    corelane::device::DriverDescription d;
    d.kind = "onnxruntime";
    d.engine_only = true;
    return d;
  }());
  return *description;
}

corelane::Result<corelane::device::OpenedEngine> open_engine(
    const corelane::device::OpenRequest& request) {
  // The module has its own copy of the log, which passes its lines to the library's.
  corelane::log::set_level(request.services.log_level);
  if (request.services.log) corelane::log::set_callback(request.services.log);
  CORELANE_ASSIGN(const ort::OrtLibrary* const library, ort::OrtLibrary::get());
  corelane::device::OpenedEngine opened{request.info,
                                        ort::make_ort_engine(request.info.cores.size())};
  opened.info.engine = "ONNX Runtime " + library->version();
  return opened;
}

constexpr corelane::device::DriverModule kModule = {CORELANE_DRIVER_BUILD, &describe, &open_engine};

}  // namespace

extern "C" CORELANE_API const corelane::device::DriverModule* corelane_driver_module_v1() {
  return &kModule;
}
