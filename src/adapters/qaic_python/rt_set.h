/// InferenceSet: inferences that run at the same time.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "adapters/qaic_python/rt_pending.h"
#include "adapters/qaic_python/rt_types.h"
#include "qaicapihpp/QAicApiInferenceSet.hpp"

namespace corelane::qaic_python {

class SetObject {
 public:
  /// `device` may be None, an int, a text, or a list of one. Throws as InferenceSet::Factory.
  SetObject(nanobind::object context, nanobind::handle qpc, nanobind::handle device,
            std::uint32_t set_size, std::uint32_t activations, nanobind::handle vectors,
            const SetProperties& properties, bool profiling);
  /// Calls that wait return QS_ERROR. What runs goes on; its memory is kept until it has ended.
  ~SetObject();
  SetObject(const SetObject&) = delete;
  SetObject& operator=(const SetObject&) = delete;

  const nanobind::object& context() const noexcept { return context_; }
  const qaic::rt::shInferenceSet& get() const noexcept { return state_->object; }
  const std::shared_ptr<SetState>& state() const noexcept { return state_; }
  /// For the garbage collector.
  int show(visitproc visit, void* arg) const {
    Py_VISIT(context_.ptr());
    return 0;
  }

 private:
  /// The buffers that each handle begins with.
  void begin_with(nanobind::handle vectors);

  nanobind::object context_;
  std::shared_ptr<SetState> state_ = std::make_shared<SetState>();
};

/// None, an int, a text, or a list: of one, or of the device of each part.
qaic::rt::DeviceChoice choice_of(nanobind::handle device);

void bind_set(nanobind::module_& module);

}  // namespace corelane::qaic_python
