/// What the classes of the module have in common: a name, and lines for the log of their context.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "adapters/interpreter/py_gate.h"

namespace corelane::qaic_python {

/// objName() and objNameCstr(); `T` gives its object by get().
template <class T>
void bind_names(nanobind::class_<T>& made) {
  made.def(
      "objName", [](const T& self) { return self.get()->objName(); },
      "What it is called in messages.");
  made.def(
      "objNameCstr", [](const T& self) { return self.get()->objName(); }, "The same.");
}

/// These, and logError() to logDebug().
template <class T>
void bind_logger(nanobind::class_<T>& made) {
  bind_names(made);
  const auto line = [&made](const char* name, auto method) {
    made.def(
        name,
        [method](const T& self, const std::string& text) {
          interpreter::without_lock([&] { ((*self.get()).*method)(text); });
        },
        "A line in the log of its context.");
  };
  using Object = std::remove_reference_t<decltype(*std::declval<const T&>().get())>;
  line("logError", &Object::logError);
  line("logWarn", &Object::logWarn);
  line("logInfo", &Object::logInfo);
  line("logDebug", &Object::logDebug);
}

}  // namespace corelane::qaic_python
