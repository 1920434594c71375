/// ExecObj and Queue: the buffers of one inference at a time, and its runs.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <memory>
#include <optional>

#include "adapters/qaic_python/rt_pending.h"
#include "adapters/qaic_python/rt_program.h"

namespace corelane::qaic_python {

/// Seconds, or none.
using Seconds = std::optional<double>;

/// Seconds as the classes take them; below 0 is 0.
inline std::chrono::duration<double> duration_of(double seconds) {
  return std::chrono::duration<double>(seconds);
}

class ExecObject {
 public:
  /// Throws as ExecObj::Factory.
  ExecObject(nanobind::object context, nanobind::object program, std::uint32_t properties);
  /// An inference in flight goes on; its memory is kept until it has ended.
  ~ExecObject();
  ExecObject(const ExecObject&) = delete;
  ExecObject& operator=(const ExecObject&) = delete;

  const qaic::rt::shExecObj& get() const noexcept { return state_->object; }
  const nanobind::object& program() const noexcept { return program_; }
  /// For the garbage collector.
  int show(visitproc visit, void* arg) const {
    Py_VISIT(context_.ptr());
    Py_VISIT(program_.ptr());
    return 0;
  }

  /// Buffers (a list, an InferenceVector, or pairs of index and buffer), which are kept where they
  /// are taken; `dimensions` may be None. The codes of ExecObj::setData.
  QStatus set_data(nanobind::handle buffers, nanobind::handle dimensions);
  /// As pairs of index and buffer are set; those that `spec` names are slices, with the extents of
  /// their arrays. `parameters`: pairs of name and value. (status, spec).
  nanobind::tuple set_slices(nanobind::handle pairs, nanobind::handle spec,
                             nanobind::handle parameters);
  /// (status, buffers).
  nanobind::tuple data() const;
  /// The buffers as they are set, for Queue.
  QStatus enqueue(const qaic::rt::Queue& queue);
  QStatus run(nanobind::handle buffers);
  QStatus wait(Seconds timeout);

 private:
  const qaic::rt::BufferMappings& mappings() const;
  QStatus set_all(Buffers buffers, nanobind::handle dimensions);
  /// `set` gets pairs for the classes, and says how that went.
  template <class Set>
  QStatus set_some(nanobind::handle pairs, const Set& set);

  nanobind::object context_;
  nanobind::object program_;
  std::shared_ptr<ExecState> state_ = std::make_shared<ExecState>();
};

void bind_exec(nanobind::module_& module);

}  // namespace corelane::qaic_python
