#include "adapters/interpreter/py_callback.h"

#include <unistd.h>

#include "adapters/interpreter/py_gate.h"

namespace corelane::interpreter {

namespace nb = nanobind;

namespace {

/// Hands what a callback raised to sys.unraisablehook.
void report(nb::python_error& raised, nb::handle callback) {
  parked_at_end([&] {
    raised.restore();
    PyErr_WriteUnraisable(callback.ptr());
  });
}

/// Ends a child that a callback has forked and that has returned from the callback: it has no other
/// thread, so it ends as the last thread of a process does. `raised` may be SystemExit.
[[noreturn]] void end_forked_child(nb::python_error* raised) noexcept {
  int code = raised == nullptr ? 0 : 1;
  try {
    if (raised != nullptr && raised->matches(PyExc_SystemExit)) {
      const nb::object given = raised->value().attr("code");
      code = given.is_none() ? 0 : nb::isinstance<nb::int_>(given) ? nb::cast<int>(given) : 1;
    }
    const nb::module_ sys = nb::module_::import_("sys");
    sys.attr("stdout").attr("flush")();
    sys.attr("stderr").attr("flush")();
  } catch (...) {
    // The streams cannot be written, or the code is not an int: end all the same.
    code = code == 0 ? 1 : code;
  }
  _exit(code);
}

}  // namespace

void call_reported(nb::handle callback, const std::function<void()>& call) {
  const pid_t process = getpid();
  try {
    call();
  } catch (nb::python_error& raised) {
    const bool ends = getpid() != process && raised.matches(PyExc_SystemExit);
    if (!ends) report(raised, callback);
    if (getpid() != process) end_forked_child(ends ? &raised : nullptr);
  } catch (const std::exception& thrown) {
    PyErr_SetString(PyExc_RuntimeError, thrown.what());
    PyErr_WriteUnraisable(callback.ptr());
  }
  if (getpid() != process) end_forked_child(nullptr);
}

}  // namespace corelane::interpreter
