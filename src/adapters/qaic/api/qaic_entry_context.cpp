/// The functions of contexts.
#include "adapters/qaic/api/qaic_edge.h"
#include "adapters/qaic/api/qaic_handle.h"
#include "adapters/qaic/context/qaic_callback_gate.h"
#include "adapters/qaic/context/qaic_context.h"
#include "adapters/qaic/context/qaic_devices.h"
#include "adapters/qaic/context/qaic_resources.h"
#include "adapters/qaic/qpc/qaic_qpc.h"
#include "qaic_ours.h"

namespace corelane::qaic {
namespace {

/// A program in C puts any number into an enumeration.
Status check_level(QLogLevel level) {
  const auto number = static_cast<int>(level);
  if (number >= QL_DEBUG && number <= QL_ERROR) return {};
  return error(Code::kInvalidArgument, "log level {}; QL_DEBUG (0) to QL_ERROR (3) are allowed",
               number);
}

Status null_argument(const char* name) { return error(Code::kInvalidArgument, "{} is null", name); }

/// A context that could not be made has no number.
void report_creation(const ContextCallbacks& callbacks, const Status& why) {
  if (callbacks.error == nullptr) return;
  CallbackGate gate;
  const std::string text = why.to_string();
  gate.call("the error handler", [&] {
    callbacks.error(0, text.c_str(), QAIC_ERROR_CONTEXT_CREATION, nullptr, 0, callbacks.error_data);
  });
}

Outcome create_context(QAicContext** context, const QAicContextProperties_t* properties,
                       std::span<const QID> devices, const ContextCallbacks& callbacks) {
  const QAicContextProperties_t asked = properties == nullptr ? 0U : *properties;
  auto made = ContextObject::create(asked, devices, callbacks);
  if (!made) {
    report_creation(callbacks, made.error());
    return device_outcome(made.error());
  }
  *context = publish(*std::move(made));
  return {};
}

DeviceNeed need_of(const QAicQpcProgramInfo& program) { return {program.numCores, program.reqMem}; }

}  // namespace
}  // namespace corelane::qaic

using namespace corelane::qaic;  // NOLINT(google-build-using-namespace)

QAIC_EXPORT QStatus qaicCreateContext(QAicContext** context,
                                      const QAicContextProperties_t* properties,
                                      uint32_t numDevices, const QID* devices,
                                      QAicLogCallback logCallback, void* logUserData,
                                      QAicErrorHandler errorHandler, void* errorUserData) {
  return guard(__func__, [&]() -> Outcome {
    if (context == nullptr) return null_argument("context");
    if (devices == nullptr && numDevices > 0) return null_argument("devices");
    return create_context(context, properties, {devices, numDevices},
                          {logCallback, logUserData, errorHandler, errorUserData});
  });
}

QAIC_EXPORT QStatus qaicReleaseContext(QAicContext* context) {
  return release<ContextObject>(__func__, context, [](ContextObject& object) -> Outcome {
    object.close();
    return {};
  });
}

QAIC_EXPORT QStatus qaicSetLogLevel(QAicContext* context, QLogLevel level) {
  return on<ContextObject>(__func__, context, [&](ContextObject& object) -> Outcome {
    CORELANE_TRY(check_level(level));
    object.set_level(level);
    return {};
  });
}

extern "C" QStatus qaicGetLogLevel(QAicContext* context, QLogLevel* level) {
  return on<ContextObject>(__func__, context, [&](ContextObject& object) -> Outcome {
    if (level == nullptr) return null_argument("level");
    *level = object.level();
    return {};
  });
}

extern "C" QStatus qaicContextGetId(QAicContext* context, QAicContextID* id) {
  return on<ContextObject>(__func__, context, [&](ContextObject& object) -> Outcome {
    if (id == nullptr) return null_argument("id");
    *id = object.id();
    return {};
  });
}

extern "C" QStatus qaicContextFindDevice(QAicContext* context, QAicQpcObj* qpc,
                                         uint32_t programIndex, QID* device) {
  return on<ContextObject>(__func__, context, [&](ContextObject& object) -> Outcome {
    if (device == nullptr) return null_argument("device");
    // Without a container it needs nothing: every device that is not lost will do.
    DeviceNeed need;
    if (qpc != nullptr) {
      CORELANE_ASSIGN(const auto container, find<QpcObject>(qpc));
      CORELANE_TRY(container->check_program(programIndex));
      need = need_of(container->info().programInfo[programIndex]);
    }
    auto found = find_devices(object, need);
    if (!found) return device_outcome(found.error());
    *device = found->front();
    return {};
  });
}

extern "C" QStatus qaicContextLog(QAicContext* context, QLogLevel level, const char* message) {
  return on<ContextObject>(__func__, context, [&](ContextObject& object) -> Outcome {
    if (message == nullptr) return null_argument("message");
    CORELANE_TRY(check_level(level));
    object.log(level, message);
    return {};
  });
}
