/// InferenceHandle: one inference of a set.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "adapters/qaic_python/rt_pending.h"

namespace corelane::qaic_python {

/// A handle of a set; two are equal where they stand for the same.
class HandleObject {
 public:
  HandleObject(nanobind::object set, std::shared_ptr<SetState> state,
               qaic::rt::shInferenceHandle handle)
      : set_(std::move(set)), state_(std::move(state)), handle_(std::move(handle)) {}

  const qaic::rt::shInferenceHandle& get() const noexcept { return handle_; }
  /// All buffers: a list or an InferenceVector.
  QStatus set_buffers(nanobind::handle buffers);
  /// Sets the buffers of one direction by a method of the class.
  QStatus set_part(QStatus (qaic::rt::InferenceHandle::*put)(const std::vector<QBuffer>&),
                   nanobind::handle buffers, QAicBufferIoTypeEnum direction);
  nanobind::list buffers() const;
  /// For the garbage collector.
  int show(visitproc visit, void* arg) const {
    Py_VISIT(set_.ptr());
    return 0;
  }

 private:
  nanobind::object set_;  ///< Its end would end the inference.
  std::shared_ptr<SetState> state_;
  qaic::rt::shInferenceHandle handle_;
};

/// InferenceHandle::setBuffers with what the handle is to keep.
QStatus put_buffers(SetState& state, qaic::rt::InferenceHandle& handle, nanobind::handle buffers);
QStatus put_buffers(SetState& state, qaic::rt::InferenceHandle& handle, Buffers given);

/// The handle behind an argument, null for None; TypeError for others.
qaic::rt::shInferenceHandle handle_of(nanobind::handle given);

void bind_handle(nanobind::module_& module);

}  // namespace corelane::qaic_python
