/// What the C++ classes throw, as exceptions of the module.
#pragma once

#include <nanobind/nanobind.h>

#include "qaicapihpp/QAicApiDataTypes.hpp"

namespace corelane::qaic_python {

/// Makes the exceptions: QAicException, a RuntimeError with `status`, and those below it under the
/// names of the C++ classes. What the classes throw becomes one of them.
void bind_errors(nanobind::module_& module);

/// Throws as a factory does: a CoreExceptionInit of `name`.
[[noreturn]] void refuse(const char* name, const std::string& why, QStatus status = QS_INVAL);

}  // namespace corelane::qaic_python
