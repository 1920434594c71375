/// A function of the user that threads of the library call.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <utility>

#include "adapters/interpreter/py_callback.h"
#include "adapters/interpreter/py_gate.h"

namespace corelane::qaic_python {

struct UserFunction {
  std::shared_ptr<PyObject> object;  ///< Null: none.
  /// Not called any more: set by the garbage collector, before it takes the function apart, and at
  /// the end of the interpreter.
  std::atomic<bool> silent{false};

  /// For the garbage collector.
  int show(visitproc visit, void* arg) const {
    Py_VISIT(object.get());
    return 0;
  }
};

/// `function`, which may be None; TypeError that names `what` where it cannot be called.
std::shared_ptr<PyObject> function_of(nanobind::object function, const char* what);

/// Calls it with what `arguments` gives, a tuple, from any thread, unless it is silent or the
/// interpreter ends. What it raises goes to sys.unraisablehook. No lock may be held that a function
/// of the user could want.
template <class Arguments>
void call_user(const UserFunction& function, Arguments&& arguments) {
  const interpreter::Entered lock;
  if (!lock || function.silent) return;
  const nanobind::object held = nanobind::borrow(function.object.get());
  interpreter::call_reported(held, [&] {
    const nanobind::tuple given = arguments();
    interpreter::parked_at_end([&] { held(*given); });
  });
}

}  // namespace corelane::qaic_python
