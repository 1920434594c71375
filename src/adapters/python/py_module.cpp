// corelane._native: what the Python package is built on. Not for users: names may change.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <string>
#include <string_view>

#include "adapters/interpreter/module_entry.h"
#include "adapters/interpreter/py_gate.h"
#include "adapters/python/py_arrays.h"
#include "adapters/python/py_compile.h"
#include "adapters/python/py_options.h"
#include "adapters/python/py_package.h"
#include "adapters/python/py_session.h"
#include "corelane/base/api.h"
#include "corelane/base/cpus.h"
#include "corelane/base/log.h"
#include "corelane/base/printable.h"
#include "corelane/session/session.h"

/// Accepted tasks are run and called back, for at most ten seconds.
static void close_sessions() {
  const corelane::Status status = corelane::Session::close_all(std::chrono::seconds(10));
  if (!status.ok()) corelane::log::warn("python", "at exit: {}", status.to_string());
}

/// Set when the module has been made, which a process can do once.
static bool made = false;

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
  // Objects that other modules still hold at exit do not concern the user.
  nanobind::set_leak_warnings(false);
  python::bind_package(module);
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
  module.def("printable", [](const std::string& text) { return corelane::printable(text); });
  module.def("usable_cpus", &corelane::usable_cpus);
  // Before the interpreter takes its modules apart, while callbacks can still run.
  nanobind::module_::import_("atexit").attr("register")(
      nanobind::cpp_function([] { corelane::interpreter::shutdown(&close_sessions); }));
  made = true;
}

// NOLINTNEXTLINE(bugprone-reserved-identifier): the name that Python looks for.
extern "C" NB_EXPORT PyObject* PyInit__native() {
  return corelane::interpreter::make_module("corelane", made, &PyInit_native_parts);
}
