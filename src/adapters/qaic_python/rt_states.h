/// What Corelane's classes have besides the vendor's: states on the device, and specializations
/// that cover other dimensions.
#pragma once

#include <nanobind/nanobind.h>

namespace corelane::qaic_python {

class ExecObject;
class SetObject;

void bind_states(nanobind::class_<ExecObject>& made);
/// Each with a handle of the set first.
void bind_states(nanobind::class_<SetObject>& made);

}  // namespace corelane::qaic_python
