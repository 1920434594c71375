/// The one place where a Status becomes a Python error. Which class of corelane.capi it ends as is
/// decided in corelane/_errors.py, which knows the rules of the session.
#pragma once

#include <nanobind/nanobind.h>

#include "corelane/base/status.h"

namespace corelane::python {

/// corelane._errors.StatusError(code, name of the code, message with its causes).
nanobind::object status_error(const Status& status);
[[noreturn]] void raise(const Status& status);

inline void check(const Status& status) {
  if (!status.ok()) raise(status);
}
template <class T>
T value_of(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}

}  // namespace corelane::python
