#include "adapters/qaic_python/rt_states.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

#include "QAicApi.hpp"
#include "adapters/interpreter/py_gate.h"
#include "adapters/qaic_python/rt_buffer.h"
#include "adapters/qaic_python/rt_exec.h"
#include "adapters/qaic_python/rt_handle.h"
#include "adapters/qaic_python/rt_set.h"

namespace corelane::qaic_python {

namespace nb = nanobind;
using interpreter::without_lock;
using nb::arg;
namespace rt = qaic::rt;
using States = std::vector<QAicStateInfo>;

namespace {

// What the two classes are asked for, by the object and for a set its handle.
struct OfExec {
  rt::ExecObj& object;

  QStatus covering(bool on) const { return object.setCovering(on); }
  QStatus specialization(std::uint32_t& place) const { return object.getSpecialization(place); }
  QStatus states(States& found) const { return object.getStates(found); }
  QStatus reset(std::uint32_t state) const { return object.resetState(state); }
  QStatus set(std::uint32_t state, const QBuffer& data) const {
    return object.setState(state, data.buf, data.size);
  }
  QStatus copy(std::uint32_t state, void* data, std::size_t size) const {
    return object.copyState(state, data, size);
  }
};
struct OfSet {
  rt::InferenceSet& object;
  rt::shInferenceHandle handle;

  QStatus covering(bool on) const { return object.setCovering(handle, on); }
  QStatus specialization(std::uint32_t& place) const {
    return object.getSpecialization(handle, place);
  }
  QStatus states(States& found) const { return object.getStates(handle, found); }
  QStatus reset(std::uint32_t state) const { return object.resetState(handle, state); }
  QStatus set(std::uint32_t state, const QBuffer& data) const {
    return object.setState(handle, state, data.buf, data.size);
  }
  QStatus copy(std::uint32_t state, void* data, std::size_t size) const {
    return object.copyState(handle, state, data, size);
  }
};

template <class Of>
nb::tuple specialization(const Of& of) {
  std::uint32_t place = 0;
  const QStatus status = of.specialization(place);
  return nb::make_tuple(status, place);
}

template <class Of>
nb::tuple states(const Of& of) {
  States found;
  const QStatus status = without_lock([&] { return of.states(found); });
  return nb::make_tuple(status, found);
}

template <class Of>
QStatus reset(const Of& of, std::optional<std::uint32_t> state) {
  return without_lock([&] { return of.reset(state.value_or(QAIC_ALL_STATES)); });
}

template <class Of>
QStatus set(const Of& of, std::uint32_t state, nb::handle data) {
  const Buffer given = buffer_of(data);
  if (!given.is_memory())
    throw nb::type_error("a state is set from memory, not from a descriptor; map it first");
  return without_lock([&] { return of.set(state, given.raw); });
}

/// (status, bytes); none where it failed.
template <class Of>
nb::tuple copy(const Of& of, std::uint32_t state) {
  States found;
  QStatus status = without_lock([&] { return of.states(found); });
  if (status != QS_SUCCESS) return nb::make_tuple(status, nb::bytes("", 0));
  // One that is not there: the call says so.
  // Where other buffers are set between the two calls, the second one refuses the size.
  const std::size_t size = state < found.size() ? static_cast<std::size_t>(found[state].size) : 0;
  std::vector<char> data(size);
  status = without_lock([&] { return of.copy(state, data.data(), size); });
  return nb::make_tuple(status, nb::bytes(data.data(), status == QS_SUCCESS ? size : 0));
}

OfExec exec_of(const ExecObject& self) { return {*self.get()}; }
OfSet set_of(const SetObject& self, nb::handle handle) { return {*self.get(), handle_of(handle)}; }

constexpr const char* kCoveringDoc =
    "Whether dimensions are taken that are those of no specialization, where one covers them: its "
    "inputs are padded with zeros and its results cut.";
constexpr const char* kSpecializationDoc =
    "(status, place): which specialization it runs in, by the place in ioShapes.";
constexpr const char* kStatesDoc =
    "(status, list): what stays on the device while its buffers are left out, of the activation.";
constexpr const char* kResetDoc = "Makes one zeros, by its place in getStates(); None: all.";
constexpr const char* kSetDoc = "Copies one in, of the state's size.";
constexpr const char* kCopyDoc =
    "(status, bytes): one, as the last inference that ended well left it.";

}  // namespace

void bind_states(nb::class_<ExecObject>& made) {
  made.def(
          "setCovering", [](ExecObject& self, bool on) { return exec_of(self).covering(on); },
          arg("on"), kCoveringDoc)
      .def(
          "getSpecialization", [](const ExecObject& self) { return specialization(exec_of(self)); },
          kSpecializationDoc)
      .def(
          "getStates", [](const ExecObject& self) { return states(exec_of(self)); }, kStatesDoc)
      .def(
          "resetState",
          [](ExecObject& self, std::optional<std::uint32_t> state) {
            return reset(exec_of(self), state);
          },
          arg("state").none() = nb::none(), kResetDoc)
      .def(
          "setState",
          [](ExecObject& self, std::uint32_t state, nb::handle data) {
            return set(exec_of(self), state, data);
          },
          arg("state"), arg("data"), kSetDoc)
      .def(
          "copyState",
          [](const ExecObject& self, std::uint32_t state) { return copy(exec_of(self), state); },
          arg("state"), kCopyDoc);
}

void bind_states(nb::class_<SetObject>& made) {
  made.def(
          "setCovering",
          [](SetObject& self, nb::handle handle, bool on) {
            return set_of(self, handle).covering(on);
          },
          arg("handle").none(), arg("on"), kCoveringDoc)
      .def(
          "getSpecialization",
          [](const SetObject& self, nb::handle handle) {
            return specialization(set_of(self, handle));
          },
          arg("handle").none(), kSpecializationDoc)
      .def(
          "getStates",
          [](const SetObject& self, nb::handle handle) { return states(set_of(self, handle)); },
          arg("handle").none(), kStatesDoc)
      .def(
          "resetState",
          [](SetObject& self, nb::handle handle, std::optional<std::uint32_t> state) {
            return reset(set_of(self, handle), state);
          },
          arg("handle").none(), arg("state").none() = nb::none(), kResetDoc)
      .def(
          "setState",
          [](SetObject& self, nb::handle handle, std::uint32_t state, nb::handle data) {
            return set(set_of(self, handle), state, data);
          },
          arg("handle").none(), arg("state"), arg("data"), kSetDoc)
      .def(
          "copyState",
          [](const SetObject& self, nb::handle handle, std::uint32_t state) {
            return copy(set_of(self, handle), state);
          },
          arg("handle").none(), arg("state"), kCopyDoc);
}

}  // namespace corelane::qaic_python
