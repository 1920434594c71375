#include "adapters/qaic_python/rt_set.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "QAicApi.hpp"
#include "adapters/interpreter/py_gate.h"
#include "adapters/qaic_python/rt_context.h"
#include "adapters/qaic_python/rt_cycle.h"
#include "adapters/qaic_python/rt_errors.h"
#include "adapters/qaic_python/rt_exec.h"
#include "adapters/qaic_python/rt_handle.h"
#include "adapters/qaic_python/rt_names.h"
#include "adapters/qaic_python/rt_states.h"
#include "adapters/qaic_python/rt_vector.h"

namespace corelane::qaic_python {

namespace nb = nanobind;
using interpreter::Released;
using interpreter::without_lock;
using nb::arg;
namespace rt = qaic::rt;

rt::DeviceChoice choice_of(nb::handle device) {
  if (nb::isinstance<nb::str>(device)) return nb::cast<std::string>(device);
  const std::vector<QID> devices = devices_of(device);
  if (devices.size() > 1) return mapping_of(devices);
  return devices.empty() ? rt::DeviceChoice() : rt::DeviceChoice(devices.front());
}

namespace {

/// `self` of a method whose results keep it.
SetObject& set_of(nb::handle self) { return object_of<SetObject>(self, "the set"); }

/// (status, the handle or None).
nb::tuple result(nb::handle set, QStatus status, rt::shInferenceHandle handle) {
  nb::object given = nb::none();
  if (handle != nullptr)
    given = nb::cast(HandleObject(nb::borrow(set), set_of(set).state(), std::move(handle)));
  return nb::make_tuple(status, given);
}

/// Calls a method that fills a handle, with a limit or without one.
template <class Call>
nb::tuple take(nb::handle self, Call&& call) {
  rt::InferenceSet& set = *set_of(self).get();
  rt::shInferenceHandle handle;
  const QStatus status = without_lock([&] { return call(set, handle); });
  return result(self, status, std::move(handle));
}

nb::tuple get_available(nb::handle self, Seconds timeout) {
  return take(self, [&](rt::InferenceSet& set, rt::shInferenceHandle& handle) {
    return timeout ? set.getAvailable(handle, duration_of(*timeout)) : set.getAvailable(handle);
  });
}

nb::tuple get_completed(nb::handle self, Seconds timeout) {
  return take(self, [&](rt::InferenceSet& set, rt::shInferenceHandle& handle) {
    return timeout ? set.getCompleted(handle, duration_of(*timeout)) : set.getCompleted(handle);
  });
}

nb::tuple get_completed_id(nb::handle self, std::uint64_t id, Seconds timeout) {
  return take(self, [&](rt::InferenceSet& set, rt::shInferenceHandle& handle) {
    return timeout ? set.getCompletedId(handle, id, duration_of(*timeout))
                   : set.getCompletedId(handle, id);
  });
}

/// InferenceSet::submit(vector): the buffers go by the handle, which keeps them.
QStatus submit_vector(SetState& state, VectorObject& vector, std::uint64_t id) {
  rt::InferenceSet& set = *state.object;
  Buffers given = vector.give();  // May throw: no handle is taken yet.
  rt::shInferenceHandle taken;
  QStatus status = without_lock([&] { return set.getAvailable(taken); });
  if (status != QS_SUCCESS) return status;
  // What an earlier user left on the handle is not the vector's.
  status = set.setCovering(taken, false);
  if (status == QS_SUCCESS) status = taken->setBufferDimensions({});
  if (status == QS_SUCCESS) status = put_buffers(state, *taken, std::move(given));
  if (status == QS_SUCCESS) status = without_lock([&] { return set.submit(taken, id); });
  if (status == QS_SUCCESS) return status;
  // Putting it back gives no reason of its own.
  const std::string why = rt::library().qaicGetLastErrorText();
  static_cast<void>(set.putCompleted(taken));
  return rt::library().qaicSetLastErrorText(status, why.c_str());
}

QStatus submit(const SetObject& self, nb::handle what, std::uint64_t id) {
  if (VectorObject* const vector = object_in<VectorObject>(what); vector != nullptr)
    return submit_vector(*self.state(), *vector, id);
  rt::InferenceSet& set = *self.get();
  const rt::shInferenceHandle handle = handle_of(what);
  return without_lock([&] { return set.submit(handle, id); });
}

/// A call of the set that waits, without the lock.
template <class Call>
auto waiting(const SetObject& self, Call&& call) {
  return without_lock([&] { return call(*self.get()); });
}

void bind_calls(nb::class_<SetObject>& made) {
  made.def("getAvailable", &get_available, arg("timeout").none() = nb::none(),
           "The status and an available handle; waits for one, at most so many seconds.")
      .def("submit", &submit, arg("handle"), arg("id") = 0,
           "Begins an inference with a handle's buffers, or with those of an InferenceVector, for "
           "which it waits for a handle.")
      .def("getCompleted", &get_completed, arg("timeout").none() = nb::none(),
           "The outcome of an inference and its handle, which is there where it failed, too.")
      .def("getCompletedId", &get_completed_id, arg("id"), arg("timeout").none() = nb::none(),
           "The same for the inference of this id.")
      .def(
          "putCompleted",
          [](const SetObject& self, nb::handle handle) {
            return self.get()->putCompleted(handle_of(handle));
          },
          arg("handle").none(), "Makes a handle available that was taken.")
      .def(
          "waitForCompletion",
          [](const SetObject& self, Seconds timeout) {
            return waiting(self, [&](rt::InferenceSet& set) {
              return timeout ? set.waitForCompletion(duration_of(*timeout))
                             : set.waitForCompletion();
            });
          },
          arg("timeout").none() = nb::none(),
          "Until all that was submitted before has completed; collects nothing.")
      .def(
          "drain",
          [](const SetObject& self, Seconds timeout) {
            return waiting(self, [&](rt::InferenceSet& set) {
              return timeout ? set.drain(duration_of(*timeout)) : set.drain();
            });
          },
          arg("timeout").none() = nb::none(),
          "The same, and makes available what has completed and nobody collected.")
      .def(
          "cancel",
          [](const SetObject& self, std::uint64_t id) {
            return waiting(self, [&](rt::InferenceSet& set) { return set.cancel(id); });
          },
          arg("id"), "Cancels the inference where it has not started.")
      .def(
          "shutdown",
          [](const SetObject& self) {
            return waiting(self, [](rt::InferenceSet& set) { return set.shutdown(); });
          },
          "Calls that wait, and later ones, return QS_ERROR.");
}

}  // namespace

SetObject::SetObject(nb::object context, nb::handle qpc, nb::handle device, std::uint32_t set_size,
                     std::uint32_t activations, nb::handle vectors, const SetProperties& properties,
                     bool profiling)
    : context_(std::move(context)) {
  const auto& parent = object_of<ContextObject>(context_, "the context");
  const auto& container = object_of<QpcObject>(qpc, "the Qpc");
  const rt::DeviceChoice chosen = choice_of(device);
  const rt::InferenceSetProperties given = properties.get();
  // Sets that are over may hold cores which this one wants.
  sweep();
  without_lock([&] {
    state_->object = rt::InferenceSet::Factory(parent.get(), container.get(), chosen, set_size,
                                               activations, {}, &given, profiling);
  });
  state_->mappings = container.get()->getBufferMappings();
  state_->buffers.resize(state_->object->size());
  enrol(state_);
  if (!vectors.is_none()) begin_with(vectors);
}

void SetObject::begin_with(nb::handle vectors) {
  const std::size_t count = state_->object->size();
  if (nb::len(vectors) == 0) return;
  if (nb::len(vectors) != count)
    refuse("InferenceSet", std::to_string(nb::len(vectors)) + " vectors for " +
                               std::to_string(count) + " handles; pass one for each, or none");
  std::vector<rt::shInferenceHandle> handles(count);
  for (rt::shInferenceHandle& handle : handles)
    // All are available, so that nothing waits and the interpreter's lock may stay.
    rt::detail::checkInit("InferenceSet", state_->object->getAvailable(handle));
  std::sort(handles.begin(), handles.end(),
            [](const auto& a, const auto& b) { return a->getIndex() < b->getIndex(); });
  for (const rt::shInferenceHandle& handle : handles) {
    rt::detail::checkInit("InferenceSet",
                          put_buffers(*state_, *handle, vectors[handle->getIndex()]));
    // It cannot fail: the handle was taken above, and is not submitted.
    static_cast<void>(state_->object->putCompleted(handle));
  }
}

SetObject::~SetObject() { part_with(std::move(state_)); }

void bind_set(nb::module_& module) {
  bind_handle(module);
  auto made = nb::class_<SetObject>(
      module, "InferenceSet", nb::type_slots(cycle_slots<SetObject>()),
      "Activations of a program with handles for inferences that run at the same time.");
  made.def(
          "__init__",
          [](SetObject* self, nb::object context, const nb::object& qpc, nb::handle device,
             std::uint32_t set_size, std::uint32_t activations, nb::handle vectors,
             const SetProperties* properties, bool profiling) {
            const SetProperties defaults;
            new (self) SetObject(std::move(context), qpc, device, set_size, activations, vectors,
                                 properties != nullptr ? *properties : defaults, profiling);
          },
          arg("context"), arg("qpc"), arg("dev").none() = nb::none(), arg("setSize") = 10,
          arg("numActivations") = 1, arg("inferenceVectors").none() = nb::none(),
          arg("properties").none() = nb::none(), arg("enableProfiling") = false,
          "setSize x numActivations handles, all available. dev None: the first device with room.")
      .def(
          "fd", [](const SetObject& self) { return self.get()->fd(); },
          "A descriptor that polls readable while getCompleted() would return at once.")
      .def("getAicProgramInfoV2",
           [](const SetObject& self) {
             QAicProgramInfoV2 info{};
             const QStatus status = self.get()->getAicProgramInfoV2(info);
             return nb::make_tuple(status, info);
           })
      .def(
          "getProgram",
          [](const SetObject& self) {
            return program_object(self.context(), waiting(self, [](rt::InferenceSet& set) {
                                    return set.getProgram();
                                  }));
          },
          "Its program, for profiling; what else it is used for is apart from the set.")
      .def("getId", [](const SetObject& self) { return self.get()->getId(); })
      .def(
          "size", [](const SetObject& self) { return self.get()->size(); }, "How many handles.");
  bind_calls(made);
  bind_states(made);
  bind_logger<SetObject>(made);
}

}  // namespace corelane::qaic_python
