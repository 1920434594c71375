/// ProfilingHandle and StreamProfilingHandle: reports of inferences, which come to a function of
/// the user in a thread of the library.
#pragma once

#include <nanobind/nanobind.h>

namespace corelane::qaic_python {

void bind_profiling(nanobind::module_& module);

/// When the interpreter ends, without its lock: reports that are queued are delivered, for at most
/// ten seconds, and none after.
void close_profiling();

}  // namespace corelane::qaic_python
