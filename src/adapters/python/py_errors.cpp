#include "adapters/python/py_errors.h"

#include <string>

#include "adapters/python/py_gate.h"

namespace corelane::python {

namespace nb = nanobind;

nb::object status_error(const Status& status) {
  std::string text = status.message();
  for (Status cause = status.cause(); !cause.ok(); cause = cause.cause()) {
    text += ": " + cause.message();
  }
  const std::string_view name = code_name(status.code());
  return parked_at_end([&] {
    return nb::module_::import_("corelane._errors")
        .attr("StatusError")(static_cast<int>(status.code()), nb::str(name.data(), name.size()),
                             nb::str(text.data(), text.size()));
  });
}

void raise(const Status& status) {
  const nb::object error = status_error(status);
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}

}  // namespace corelane::python
