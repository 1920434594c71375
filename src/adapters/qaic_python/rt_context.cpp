#include "adapters/qaic_python/rt_context.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

#include "QAicApi.hpp"
#include "adapters/interpreter/py_gate.h"
#include "adapters/qaic_python/rt_buffer.h"
#include "adapters/qaic_python/rt_callback.h"
#include "adapters/qaic_python/rt_cycle.h"
#include "adapters/qaic_python/rt_names.h"
#include "adapters/qaic_python/rt_qpc.h"
#include "adapters/qaic_python/rt_text.h"

namespace corelane::qaic_python {

namespace nb = nanobind;
using interpreter::Released;
using interpreter::without_lock;

struct Callbacks {
  UserFunction log;
  UserFunction error;
};

namespace {

/// Null where the user gave no function: the library's own log gets the lines then.
qaic::rt::LogCallback log_callback(const std::shared_ptr<Callbacks>& callbacks) {
  if (callbacks->log.object == nullptr) return nullptr;
  return [callbacks](QLogLevel level, const char* message) {
    call_user(callbacks->log, [&] { return nb::make_tuple(nb::cast(level), text_of(message)); });
  };
}

qaic::rt::ErrorHandler error_handler(const std::shared_ptr<Callbacks>& callbacks) {
  if (callbacks->error.object == nullptr) return nullptr;
  return [callbacks](QAicContextID id, const char* info, QAicErrorType type, const void* /*data*/,
                     std::size_t /*size*/, void* /*user*/) {
    call_user(callbacks->error, [&] { return nb::make_tuple(id, text_of(info), nb::cast(type)); });
  };
}

}  // namespace

ContextObject::ContextObject(nb::handle devices, std::uint32_t properties, nb::object log,
                             nb::object error)
    : callbacks_(std::make_shared<Callbacks>()), devices_(devices_of(devices)) {
  callbacks_->log.object = function_of(std::move(log), "log");
  callbacks_->error.object = function_of(std::move(error), "error");
  const bool all = devices.is_none();
  without_lock([&] {
    if (all) qaic::rt::detail::checkInit("Context", qaic::rt::Util::getDeviceIds(devices_));
    // Without the interpreter's lock: where no context can be made `error` is called in this
    // thread.
    context_ = qaic::rt::Context::Factory(&properties, devices_, log_callback(callbacks_),
                                          error_handler(callbacks_));
  });
}

ContextObject::~ContextObject() {
  // The end of the context waits for the user's functions, which want the lock.
  const Released released;
  context_.reset();
}

QID ContextObject::first_of(nb::handle device) const {
  const std::vector<QID> named = devices_of(device);
  return named.empty() ? devices_.front() : named.front();
}

QID ContextObject::choose(const qaic::rt::shQpc& qpc) const {
  QID device = -1;
  if (context_->findDevice(qpc, device) == QS_SUCCESS) return device;
  return devices_.front();
}

int ContextObject::show(visitproc visit, void* context) const {
  if (const int stop = callbacks_->log.show(visit, context); stop != 0) return stop;
  return callbacks_->error.show(visit, context);
}

void ContextObject::silence() const noexcept {
  callbacks_->log.silent = true;
  callbacks_->error.silent = true;
}

void bind_context(nb::module_& module) {
  using nb::arg;
  auto made = nb::class_<ContextObject>(
      module, "Context", nb::type_slots(callback_slots<ContextObject>()),
      "Devices, a log, and who hears of failures; all other objects keep it.");
  made.def(
          "__init__",
          [](ContextObject* self, nb::handle devices, std::uint32_t properties, nb::object log,
             nb::object error) {
            new (self) ContextObject(devices, properties, std::move(log), std::move(error));
          },
          arg("devices").none() = nb::none(), arg("properties") = 0, arg("log").none() = nb::none(),
          arg("error").none() = nb::none(),
          "Of all devices (None), of one (an int) or of several. log(level, text) gets the lines "
          "of "
          "its log, error(context_id, text, error_type) is called once for each event.")
      .def(
          "findDevice",
          [](const ContextObject& self, const QpcObject& qpc, std::uint32_t index) {
            return without_lock([&] { return self.get()->findDevice(qpc.get(), index); });
          },
          arg("qpc"), arg("programIndex") = 0,
          "The first device with the cores and the memory of the program free.")
      .def("setLogLevel", [](const ContextObject& self,
                             QLogLevel level) { return self.get()->setLogLevel(level); })
      .def("getLogLevel",
           [](const ContextObject& self) {
             QLogLevel level{};
             const QStatus status = self.get()->getLogLevel(level);
             return nb::make_tuple(status, level);
           })
      .def("log",
           [](const ContextObject& self, QLogLevel level, const std::string& line) {
             return without_lock([&] { return self.get()->log(level, line); });
           })
      .def("getId", [](const ContextObject& self) { return self.get()->getId(); })
      .def("getDevices", &ContextObject::devices, "The numbers of its devices.");
  bind_names<ContextObject>(made);
}

}  // namespace corelane::qaic_python
