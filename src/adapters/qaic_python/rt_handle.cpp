#include "adapters/qaic_python/rt_handle.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "QAicApi.hpp"
#include "adapters/qaic_python/rt_cycle.h"
#include "adapters/qaic_python/rt_names.h"
#include "adapters/qaic_python/rt_object.h"
#include "adapters/qaic_python/rt_vector.h"

namespace corelane::qaic_python {

namespace nb = nanobind;
using nb::arg;
namespace rt = qaic::rt;

QStatus put_buffers(SetState& state, rt::InferenceHandle& handle, Buffers given) {
  const QStatus status = handle.setBuffers(raw(given));
  if (status == QS_SUCCESS) state.buffers[handle.getIndex()] = std::move(given);
  return status;
}

QStatus put_buffers(SetState& state, rt::InferenceHandle& handle, nb::handle buffers) {
  if (VectorObject* const vector = object_in<VectorObject>(buffers); vector != nullptr)
    return put_buffers(state, handle, vector->give());
  Buffers given = buffers_of(buffers);
  bring_outputs(given, state.mappings, state.buffers[handle.getIndex()]);
  return put_buffers(state, handle, std::move(given));
}

QStatus HandleObject::set_buffers(nb::handle buffers) {
  return put_buffers(*state_, *handle_, buffers);
}

QStatus HandleObject::set_part(QStatus (rt::InferenceHandle::*put)(const std::vector<QBuffer>&),
                               nb::handle buffers, QAicBufferIoTypeEnum direction) {
  const rt::BufferMappings& mappings = state_->mappings;
  Buffers& kept = state_->buffers[handle_->getIndex()];
  const Buffers given = buffers_of(buffers);
  const auto first = std::find_if(mappings.begin(), mappings.end(),
                                  [&](const auto& mapping) { return mapping.ioType == direction; });
  const auto at = static_cast<std::size_t>(first - mappings.begin());
  Buffers all = kept;
  all.resize(mappings.size());
  for (std::size_t i = 0; i < given.size() && at + i < all.size(); ++i) all[at + i] = given[i];
  bring_outputs(all, mappings, kept);
  // The class gets the buffers of one direction; all are kept here, since all are set.
  std::vector<QBuffer> part = raw(given);
  for (std::size_t i = 0; i < part.size() && at + i < all.size(); ++i) part[i] = all[at + i].raw;
  const QStatus status = ((*handle_).*put)(part);
  if (status == QS_SUCCESS) kept = std::move(all);
  return status;
}

nb::list HandleObject::buffers() const {
  const std::vector<QBuffer>& found = handle_->getBuffers();
  Buffers given = state_->buffers[handle_->getIndex()];
  given.resize(found.size());
  // What is set comes from the library; who keeps the memory, only this module knows.
  for (std::size_t i = 0; i < found.size(); ++i) given[i].raw = found[i];
  return as_list(given);
}

rt::shInferenceHandle handle_of(nb::handle given) {
  if (given.is_none()) return nullptr;
  if (const HandleObject* const handle = object_in<HandleObject>(given); handle != nullptr)
    return handle->get();
  throw nb::type_error(
      "an InferenceHandle is needed, as getAvailable() and getCompleted() give it, or an "
      "InferenceVector where submit() takes one");
}

void bind_handle(nb::module_& module) {
  auto made = nb::class_<HandleObject>(
      module, "InferenceHandle", nb::type_slots(cycle_slots<HandleObject>()),
      "One inference of a set, which makes it. One user at a time.");
  made.def("setBuffers", &HandleObject::set_buffers, arg("buffers"),
           "All buffers, inputs first, or an InferenceVector. They stay set, and are kept.")
      .def(
          "setInputBuffers",
          [](HandleObject& self, nb::handle buffers) {
            return self.set_part(&rt::InferenceHandle::setInputBuffers, buffers,
                                 BUFFER_IO_TYPE_INPUT);
          },
          arg("buffers"))
      .def(
          "setOutputBuffers",
          [](HandleObject& self, nb::handle buffers) {
            return self.set_part(&rt::InferenceHandle::setOutputBuffers, buffers,
                                 BUFFER_IO_TYPE_OUTPUT);
          },
          arg("buffers"))
      .def("getBuffers", &HandleObject::buffers)
      .def(
          "getData",
          [](const HandleObject& self) { return nb::make_tuple(QS_SUCCESS, self.buffers()); },
          "A status and the buffers, as ExecObj.getData().")
      .def(
          "execObj", [](nb::handle self) { return nb::borrow(self); },
          "The handle itself, whose getData() clients call.")
      .def(
          "setBufferDimensions",
          [](HandleObject& self, nb::handle dimensions) {
            return self.get()->setBufferDimensions(dimensions_of(dimensions));
          },
          arg("dimensions"), "Dimensions of each buffer; they stay set.")
      .def(
          "getBufferDimensions",
          [](const HandleObject& self) { return as_dimensions(self.get()->getBufferDimensions()); })
      .def_prop_ro(
          "id", [](const HandleObject& self) { return self.get()->getId(); },
          "The id of the last submit().")
      .def("getId", [](const HandleObject& self) { return self.get()->getId(); })
      .def("getIndex", [](const HandleObject& self) { return self.get()->getIndex(); })
      .def(
          "getStatus", [](const HandleObject& self) { return self.get()->getStatus(); },
          "How its last inference ended.")
      .def(
          "getErrorText", [](const HandleObject& self) { return self.get()->getErrorText(); },
          "Why it failed; \"\" where it did not.")
      .def(
          "__eq__",
          [](const HandleObject& self, nb::handle other) {
            const HandleObject* const handle = object_in<HandleObject>(other);
            return handle != nullptr && handle->get() == self.get();
          },
          arg("other").none())
      .def("__hash__", [](const HandleObject& self) {
        return static_cast<Py_hash_t>(std::hash<const void*>()(self.get().get()) >> 1);
      });
  bind_logger<HandleObject>(made);
}

}  // namespace corelane::qaic_python
