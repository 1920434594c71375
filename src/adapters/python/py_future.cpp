#include "adapters/python/py_future.h"

#include <algorithm>
#include <chrono>

#include "adapters/interpreter/py_callback.h"
#include "adapters/interpreter/py_gate.h"
#include "adapters/python/py_errors.h"
#include "adapters/python/py_session.h"
#include "corelane/base/clock.h"

namespace corelane::python {

using namespace interpreter;

namespace nb = nanobind;

OutputsCallback::OutputsCallback(nb::object callback)
    : callback_(shared(callback.release().ptr())) {}

void OutputsCallback::operator()(const Result<Outputs>& result) const {
  const Entered lock;
  if (!lock) return;  // The interpreter has ended, and its functions with it.
  const nb::handle callback = callback_.get();
  call_reported(callback, [&] {
    const nb::object outputs = result ? nb::object(make_outputs(*result)) : nb::none();
    const nb::object problem = result ? nb::none() : status_error(result.error());
    parked_at_end([&] { callback(outputs, problem); });
  });
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
  nb::class_<Continuation>(module, "Continuation").def("withdraw", &Continuation::withdraw);
  nb::class_<Future>(module, "Future")
      .def_prop_ro("task_id", &Future::task_id)
      .def("done", &Future::done)
      .def("running",
           [](const Future& self) {
             const Future future = self;
             return without_lock([&] { return future.running(); });
           })
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
        return without_lock(
            [&] { return future.then([call](const Result<Outputs>& result) { call(result); }); });
      });
}

}  // namespace corelane::python
