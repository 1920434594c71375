/// Delivery of results to Python functions.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "corelane/session/future.h"

namespace corelane::python {

/// Calls a Python function with (outputs, None) or (None, StatusError), in any thread. What it
/// raises goes to sys.unraisablehook. Copies share the function; the last one drops it.
class OutputsCallback {
 public:
  /// Needs the lock.
  explicit OutputsCallback(nanobind::object callback);
  void operator()(const Result<Outputs>& result) const;

 private:
  std::shared_ptr<PyObject> callback_;
};

}  // namespace corelane::python
