#include "adapters/qaic_python/rt_callback.h"

#include <string>

namespace corelane::qaic_python {

namespace nb = nanobind;

std::shared_ptr<PyObject> function_of(nb::object function, const char* what) {
  if (function.is_none()) return nullptr;
  if (PyCallable_Check(function.ptr()) == 0)
    throw nb::type_error((std::string(what) + " is a function, or None").c_str());
  return interpreter::shared(function.release().ptr());
}

}  // namespace corelane::qaic_python
