/// ProgramGroup: programs that share the cores of a device.
#pragma once

#include <nanobind/nanobind.h>

namespace corelane::qaic_python {

void bind_group(nanobind::module_& module);

}  // namespace corelane::qaic_python
