// corelane._native: what the Python package is built on. Not for users: names may change.
#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

#include "adapters/python/py_arrays.h"
#include "adapters/python/py_compile.h"
#include "adapters/python/py_gate.h"
#include "adapters/python/py_options.h"
#include "adapters/python/py_session.h"
#include "corelane/base/api.h"
#include "corelane/base/log.h"

namespace {

/// Set when the module has been made, which goes once a process.
bool made = false;

}  // namespace

NB_MODULE(native_parts, module) {
  namespace python = corelane::python;
  if (std::string_view(corelane::version()) != CORELANE_VERSION_STRING) {
    const std::string text = std::string("corelane._native is of version ") +
                             CORELANE_VERSION_STRING + ", the libcorelane that was found is of " +
                             corelane::version() +
                             "; install both from one wheel or one build, and look at "
                             "LD_LIBRARY_PATH";
    throw nanobind::import_error(text.c_str());
  }
  // Objects that live on in other modules at exit are no concern of the user's.
  nanobind::set_leak_warnings(false);
  python::bind_arrays(module);
  python::bind_options(module);
  python::bind_futures(module);
  python::bind_session(module);
  python::bind_binding(module);
  python::bind_compile(module);
  python::bind_probe(module);
  module.attr("version") = corelane::version();
  module.def("set_log_level",
             [](int level) { corelane::log::set_level(static_cast<corelane::log::Level>(level)); });
  nanobind::module_::import_("atexit").attr("register")(nanobind::cpp_function(&python::shutdown));
  made = true;
}

// Refuses before anything of nanobind's is touched, which all interpreters of a process share.
extern "C" NB_EXPORT PyObject* PyInit__native() {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(
        PyExc_ImportError,
        "corelane works in the main interpreter alone; a program of subinterpreters needs "
        "a process of its own for it");
    return nullptr;
  }
  if (made) {
    PyErr_SetString(
        PyExc_ImportError,
        "corelane has been imported and taken out of sys.modules; leave it there, since a "
        "process makes its module once");
    return nullptr;
  }
  return PyInit_native_parts();
}
