#include "adapters/qaic_python/rt_exec.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "QAicApi.hpp"
#include "adapters/interpreter/py_gate.h"
#include "adapters/qaic_python/rt_cycle.h"
#include "adapters/qaic_python/rt_member.h"
#include "adapters/qaic_python/rt_names.h"
#include "adapters/qaic_python/rt_states.h"
#include "adapters/qaic_python/rt_vector.h"

namespace corelane::qaic_python {

namespace nb = nanobind;
using interpreter::without_lock;
using nb::arg;
namespace rt = qaic::rt;

namespace {

/// Whether these are pairs of index and buffer.
bool are_pairs(nb::handle buffers) {
  if (PySequence_Check(buffers.ptr()) == 0 || nb::len(buffers) == 0) return false;
  const nb::object first = buffers[0];
  return nb::isinstance<nb::tuple>(first) && nb::len(first) == 2 &&
         PyIndex_Check(nb::object(first[0]).ptr()) != 0;
}

constexpr const char* kBits = "properties of an ExecObj are bits of 32";

using Pairs = std::vector<std::pair<std::uint32_t, QBuffer>>;

/// Bytes of an element and dimensions of an array; nothing of other memory.
std::pair<std::uint32_t, std::vector<std::uint32_t>> extents_of(nb::handle memory) {
  if (!nb::hasattr(memory, "shape") || !nb::hasattr(memory, "itemsize")) return {};
  constexpr const char* kExtents = "the shape and itemsize of a slice are numbers of 32 bits";
  return {value_of<std::uint32_t>(memory.attr("itemsize"), kExtents),
          value_of<std::vector<std::uint32_t>>(memory.attr("shape"), kExtents)};
}

class QueueObject : public ContextMember<rt::shQueue> {
 public:
  QueueObject(nb::object context, nb::handle device, const QAicQueueProperties* properties)
      : ContextMember(std::move(context)) {
    const auto& parent = object_of<ContextObject>(context_, "the context");
    const QID chosen = parent.first_of(device);
    without_lock([&] { object_ = rt::Queue::Factory(parent.get(), chosen, properties); });
  }
};

void bind_queue(nb::module_& module) {
  auto made = nb::class_<QueueObject>(module, "Queue", nb::type_slots(cycle_slots<QueueObject>()),
                                      "Where execution objects are enqueued.");
  made.def(nb::init<nb::object, nb::handle, const QAicQueueProperties*>(), arg("context"),
           arg("dev").none() = nb::none(), arg("properties").none() = nb::none(),
           "A queue of a device of the context; None: its first.")
      .def(
          "enqueue",
          [](const QueueObject& self, ExecObject& object) { return object.enqueue(*self.get()); },
          arg("execObj"), "Begins an inference with the object's buffers.")
      .def_static(
          "initProperties",
          [](QAicQueueProperties& properties) { rt::Queue::initProperties(properties); },
          arg("properties"), "Fills in the defaults.");
  bind_logger<QueueObject>(made);
}

}  // namespace

ExecObject::ExecObject(nb::object context, nb::object program, std::uint32_t properties)
    : context_(std::move(context)), program_(std::move(program)) {
  const auto& parent = object_of<ContextObject>(context_, "the context");
  const auto& of = object_of<ProgramObject>(program_, "the program");
  // Objects that are over may hold cores, which this one's program wants.
  sweep();
  without_lock([&] { state_->object = rt::ExecObj::Factory(parent.get(), of.get(), &properties); });
  enrol(state_);
}

ExecObject::~ExecObject() { part_with(std::move(state_)); }

const rt::BufferMappings& ExecObject::mappings() const {
  return get()->getProgram()->getBufferMappings();
}

QStatus ExecObject::set_data(nb::handle buffers, nb::handle dimensions) {
  if (VectorObject* const vector = object_in<VectorObject>(buffers); vector != nullptr)
    return set_all(vector->give(), dimensions);
  if (are_pairs(buffers))
    return set_some(buffers, [&](const Pairs& some) { return get()->setData(some); });
  Buffers given = buffers_of(buffers);
  bring_outputs(given, mappings(), state_->buffers);
  return set_all(std::move(given), dimensions);
}

QStatus ExecObject::set_all(Buffers buffers, nb::handle dimensions) {
  const std::vector<QBuffer> given = raw(buffers);
  const QStatus status = dimensions.is_none() ? get()->setData(given)
                                              : get()->setData(given, dimensions_of(dimensions));
  // A failure changes nothing in the runtime: the earlier buffers are still bound, and kept.
  if (status == QS_SUCCESS) state_->buffers = std::move(buffers);
  return status;
}

template <class Set>
QStatus ExecObject::set_some(nb::handle pairs, const Set& set) {
  Buffers all = state_->buffers;
  all.resize(mappings().size());
  std::vector<std::pair<std::uint32_t, Buffer>> given;
  for (const nb::handle pair : nb::iter(pairs)) {
    const auto index =
        value_of<std::uint32_t>(pair[0], "the place of a buffer is a number from 0 to 4294967295");
    given.emplace_back(index, buffer_of(nb::object(pair[1])));
    // An index that is too large goes on to the runtime, which refuses it.
    if (index < all.size()) all[index] = given.back().second;
  }
  bring_outputs(all, mappings(), state_->buffers);
  Pairs some;
  for (const auto& [index, buffer] : given)
    some.emplace_back(index, index < all.size() ? all[index].raw : buffer.raw);
  const QStatus status = set(some);
  if (status == QS_SUCCESS) state_->buffers = std::move(all);
  return status;
}

nb::tuple ExecObject::set_slices(nb::handle pairs, nb::handle spec, nb::handle parameters) {
  const auto& of = object_of<SlicingObject>(spec, "the slicing specification");
  rt::SlicingParameters values;
  for (const nb::handle pair : nb::iter(parameters))
    values.emplace_back(
        value_of<std::string>(pair[0], "a parameter of slices has a text for its name"),
        value_of<std::int64_t>(pair[1], "a parameter of slices has a number of 64 bits"));
  const nb::list given(pairs);  // Gone through twice.
  rt::BufferDimensions extents;
  for (const nb::handle pair : given) extents.push_back(extents_of(pair[1]));
  const QStatus status = set_some(given, [&](const Pairs& some) {
    return get()->setDataWithSlices(some, of.get(), values, extents);
  });
  return nb::make_tuple(status, spec);
}

nb::tuple ExecObject::data() const {
  std::vector<QBuffer> found;
  const QStatus status = get()->getData(found);
  Buffers buffers(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Buffers& set = state_->buffers;
    if (i < set.size() && set[i].raw.buf == found[i].buf) {
      buffers[i] = set[i];
    } else {
      // Memory of the object itself.
      buffers[i].writable = true;
      buffers[i].keep = state_->object;
    }
    buffers[i].raw = found[i];
  }
  return nb::make_tuple(status, as_list(buffers));
}

QStatus ExecObject::enqueue(const rt::Queue& queue) {
  return without_lock([&] { return const_cast<rt::Queue&>(queue).enqueue(state_->object); });
}

QStatus ExecObject::run(nb::handle buffers) {
  if (!buffers.is_none())
    if (const QStatus status = set_data(buffers, nb::none()); status != QS_SUCCESS) return status;
  return without_lock([&] { return state_->object->run(); });
}

QStatus ExecObject::wait(Seconds timeout) {
  return without_lock([&] {
    return timeout ? state_->object->waitForCompletion(duration_of(*timeout))
                   : state_->object->waitForCompletion();
  });
}

void bind_exec(nb::module_& module) {
  auto made = nb::class_<ExecObject>(
      module, "ExecObj", nb::type_slots(cycle_slots<ExecObject>()),
      "The buffers of one inference at a time, and its runs. One user at a time.");
  made.def(
          "__init__",
          [](ExecObject* self, nb::object context, nb::object program, nb::handle buffers,
             nb::handle properties) {
            const bool bits = PyIndex_Check(buffers.ptr()) != 0;  // In place of buffers.
            const nb::handle chosen = bits ? buffers : properties;
            std::uint32_t wanted = QAIC_EXECOBJ_PROPERTIES_DEFAULT;
            if (!chosen.is_none()) wanted = value_of<std::uint32_t>(chosen, kBits);
            new (self) ExecObject(std::move(context), std::move(program), wanted);
            if (bits || buffers.is_none()) return;
            try {
              rt::detail::checkInit("ExecObj", self->set_data(buffers, nb::none()));
            } catch (...) {
              self->~ExecObject();  // Nobody has it.
              throw;
            }
          },
          arg("context"), arg("program"), arg("buffers").none() = nb::none(),
          arg("properties").none() = nb::none(),
          "Its first run loads and activates the program where that was not done.")
      .def("setData", &ExecObject::set_data, arg("buffers"), arg("dimensions").none() = nb::none(),
           "The buffers of the next runs, inputs first: a list, with dimensions or without; an "
           "InferenceVector; or pairs of index and buffer, which leave the others as they are.")
      .def("setDataWithSlices", &ExecObject::set_slices, arg("buffers"), arg("spec"),
           arg("parameters"),
           "Pairs of index and buffer, of which those that the specification names are slices, as "
           "large as their arrays; `parameters` are pairs of a start's name and its value. The "
           "status, and the specification.")
      .def("getData", &ExecObject::data, "The status, and the buffers that it works with.")
      .def("run", &ExecObject::run, arg("buffers").none() = nb::none(), "Runs it and waits.")
      .def("waitForCompletion", &ExecObject::wait, arg("timeout").none() = nb::none(),
           "The outcome of what was enqueued last; at most so many seconds, then QS_TIMEDOUT.")
      .def("setId", [](ExecObject& self, QAicExecObjID id) { self.get()->setId(id); })
      .def("getId", [](const ExecObject& self) { return self.get()->getId(); })
      .def("getProgram", [](const ExecObject& self) { return self.program(); });
  bind_states(made);
  bind_logger<ExecObject>(made);
  bind_queue(module);
}

}  // namespace corelane::qaic_python
