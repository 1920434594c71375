#include "adapters/python/py_future.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "adapters/python/py_errors.h"
#include "adapters/python/py_gate.h"
#include "adapters/python/py_session.h"
#include "corelane/base/clock.h"

namespace corelane::python {

namespace nb = nanobind;

OutputsCallback::OutputsCallback(nb::object callback)
    : callback_(shared(callback.release().ptr())) {}

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

void OutputsCallback::operator()(const Result<Outputs>& result) const {
  const Entered lock;
  if (!lock) return;  // The interpreter has ended, and its functions with it.
  const pid_t process = getpid();
  const nb::handle callback = callback_.get();
  try {
    const nb::object outputs = result ? nb::object(make_outputs(*result)) : nb::none();
    const nb::object problem = result ? nb::none() : status_error(result.error());
    parked_at_end([&] { callback(outputs, problem); });
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

void bind_futures(nb::module_& module) {
  // Calls a function as callbacks are called: what it raises goes to sys.unraisablehook.
  module.def("call_guarded", [](const nb::callable& function) {
    try {
      function();
    } catch (nb::python_error& raised) {
      raised.restore();
      PyErr_WriteUnraisable(function.ptr());
    }
  });
  nb::class_<Future>(module, "Future")
      .def_prop_ro("task_id", &Future::task_id)
      .def("done", &Future::done)
      .def("wait",
           [](const Future& self, double seconds) {
             const Future future = self;
             const auto limit = std::chrono::duration_cast<Duration>(
                 std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e6)));
             return without_lock([&] { return future.wait(real_clock()->now() + limit); });
           })
      .def("get",
           [](const Future& self) {
             const Future future = self;
             return make_outputs(value_of(without_lock([&] { return future.get(); })));
           })
      .def("cancel",
           [](Future& self) {
             Future future = self;
             return without_lock([&] { return future.cancel(); });
           })
      .def("then", [](const Future& self, nb::object callback) {
        const Future future = self;
        const OutputsCallback call(std::move(callback));
        without_lock([&] { future.then([call](const Result<Outputs>& result) { call(result); }); });
      });
}

}  // namespace corelane::python
