#include "adapters/python/py_future.h"

#include <algorithm>
#include <chrono>

#include "adapters/python/py_errors.h"
#include "adapters/python/py_gate.h"
#include "adapters/python/py_session.h"
#include "corelane/base/clock.h"

namespace corelane::python {

namespace nb = nanobind;

OutputsCallback::OutputsCallback(nb::object callback)
    : callback_(callback.release().ptr(), [](PyObject* object) {
        if (const Entered lock; lock) Py_DECREF(object);
      }) {}

void OutputsCallback::operator()(const Result<Outputs>& result) const {
  const Entered lock;
  if (!lock) return;  // The interpreter has ended, and its functions with it.
  try {
    const nb::handle callback = callback_.get();
    if (result) {
      callback(make_outputs(*result), nb::none());
    } else {
      callback(nb::none(), status_error(result.error()));
    }
  } catch (nb::python_error& raised) {
    raised.restore();
    PyErr_WriteUnraisable(callback_.get());
  } catch (const std::exception& thrown) {
    PyErr_SetString(PyExc_RuntimeError, thrown.what());
    PyErr_WriteUnraisable(callback_.get());
  }
}

void bind_futures(nb::module_& module) {
  // Calls a function as callbacks are called: what it raises goes to the unraisable hook.
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
             const Released released;
             return future.wait(real_clock()->now() + limit);
           })
      .def("get",
           [](const Future& self) {
             const Future future = self;
             const Result<Outputs> result = [&] {
               const Released released;
               return future.get();
             }();
             return make_outputs(value_of(result));
           })
      .def("cancel",
           [](Future& self) {
             Future future = self;
             const Released released;
             return future.cancel();
           })
      .def("then", [](const Future& self, nb::object callback) {
        const Future future = self;
        const OutputsCallback call(std::move(callback));
        const Released released;
        future.then([call](const Result<Outputs>& result) { call(result); });
      });
}

}  // namespace corelane::python
