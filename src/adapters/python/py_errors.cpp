#include "adapters/python/py_errors.h"

#include <string>

#include "adapters/interpreter/py_gate.h"
#include "adapters/python/py_package.h"
#include "adapters/python/py_values.h"

namespace corelane::python {

using namespace interpreter;

namespace nb = nanobind;

nb::object status_error(const Status& status) {
  // The messages of the causes follow; their codes are for programs.
  std::string message = status.message();
  nb::list causes;
  for (Status cause = status.cause(); !cause.ok(); cause = cause.cause()) {
    message += ": " + cause.message();
    causes.append(static_cast<int>(cause.code()));
  }
  nb::dict details;
  for (const auto& [key, value] : status.details()) details[text(detail_name(key))] = text(value);
  return parked_at_end([&] {
    return package().status_error(static_cast<int>(status.code()), text(message), details, causes);
  });
}

void raise(const Status& status) {
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  const nb::object error = status_error(status);
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}

}  // namespace corelane::python
