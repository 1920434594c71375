/// Util, FileWriter and the reason of the last failure.
#pragma once

#include <nanobind/nanobind.h>

namespace corelane::qaic_python {

void bind_util(nanobind::module_& module);

}  // namespace corelane::qaic_python
