// corelane.qaicrt: the object runtime's classes for Python, over the function table of libQAic.so.
#include <nanobind/nanobind.h>

#include "QAicApi.hpp"
#include "adapters/interpreter/module_entry.h"
#include "adapters/interpreter/py_gate.h"
#include "adapters/qaic_python/rt_buffer.h"
#include "adapters/qaic_python/rt_context.h"
#include "adapters/qaic_python/rt_errors.h"
#include "adapters/qaic_python/rt_exec.h"
#include "adapters/qaic_python/rt_group.h"
#include "adapters/qaic_python/rt_measured.h"
#include "adapters/qaic_python/rt_pending.h"
#include "adapters/qaic_python/rt_profiling.h"
#include "adapters/qaic_python/rt_program.h"
#include "adapters/qaic_python/rt_qpc.h"
#include "adapters/qaic_python/rt_set.h"
#include "adapters/qaic_python/rt_types.h"
#include "adapters/qaic_python/rt_util.h"
#include "adapters/qaic_python/rt_vector.h"

namespace corelane::qaic_python {
namespace {

/// When the interpreter ends, without its lock: runs first, then what they are made of, then the
/// reports of all that.
void close() {
  close_benchmarks();
  close_all();
  close_profiling();
}

}  // namespace
}  // namespace corelane::qaic_python

/// Set when the module has been made, which a process can do once.
static bool made = false;

NB_MODULE(qaicrt_parts, module) {
  namespace parts = corelane::qaic_python;
  nanobind::set_leak_warnings(false);
  module.attr("__doc__") =
      "The object runtime's classes: see docs/apis/object-runtime-python.md. Methods that only "
      "succeed or fail return a QStatus, those that give something (status, value).";
  parts::bind_types(module);
  parts::bind_errors(module);
  parts::bind_buffers(module);
  parts::bind_qpc(module);
  parts::bind_context(module);
  parts::bind_program(module);
  parts::bind_group(module);
  parts::bind_vector(module);
  parts::bind_exec(module);
  parts::bind_set(module);
  parts::bind_benchmark(module);
  parts::bind_profiling(module);
  parts::bind_util(module);
  nanobind::module_::import_("atexit").attr("register")(
      nanobind::cpp_function([] { corelane::interpreter::shutdown(&parts::close); }));
  made = true;
}

extern "C" NB_EXPORT PyObject* PyInit_qaicrt() {
  return corelane::interpreter::make_module("corelane.qaicrt", made, &PyInit_qaicrt_parts);
}
