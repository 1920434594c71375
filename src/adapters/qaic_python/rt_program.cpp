#include "adapters/qaic_python/rt_program.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "QAicApi.hpp"
#include "adapters/interpreter/py_gate.h"
#include "adapters/qaic_python/rt_cycle.h"
#include "adapters/qaic_python/rt_names.h"
#include "adapters/qaic_python/rt_pending.h"

namespace corelane::qaic_python {

namespace nb = nanobind;
using interpreter::without_lock;
using nb::arg;
namespace rt = qaic::rt;

namespace {

void bind_info(nb::module_& module) {
  nb::class_<rt::ProgramInfo>(module, "ProgramInfo", "A program as its object shows it.")
      .def_ro("uniqueProgramID", &rt::ProgramInfo::uniqueProgramID)
      .def_ro("userDefinedProgramID", &rt::ProgramInfo::userDefinedProgramID)
      .def_ro("numNsp", &rt::ProgramInfo::numNsp, "Cores that it wants.")
      .def_ro("numMcid", &rt::ProgramInfo::numMcid, "0: there are none.")
      .def_ro("batchSize", &rt::ProgramInfo::batchSize)
      .def_ro("isAicStatsAvailable", &rt::ProgramInfo::isAicStatsAvailable);
  nb::class_<SlicingObject>(module, "SlicingSpec",
                            "Which buffers of a program are given in slices.");
}

/// (status, a specification or None).
nb::tuple slicing_of(const ProgramObject& self, const std::string& json) {
  rt::shSlicingSpec spec;
  const QStatus status =
      without_lock([&] { return self.get()->createSlicingSpecHandle(json, spec); });
  return nb::make_tuple(status,
                        spec == nullptr ? nb::none() : nb::cast(SlicingObject(std::move(spec))));
}

/// A method of the life of a program, without the lock; what is over is ended with first.
template <QStatus (rt::Program::*Method)()>
QStatus step(ProgramObject& self) {
  sweep();
  return without_lock([&] { return ((*self.get()).*Method)(); });
}

}  // namespace

ProgramObject::ProgramObject(nb::object context, nb::handle device, nb::handle qpc,
                             const ProgramProperties& properties, const std::string& name)
    : ContextMember(std::move(context)) {
  const auto& parent = object_of<ContextObject>(context_, "the context");
  const auto& container = object_of<QpcObject>(qpc, "the Qpc (qpcObj)");
  const std::vector<QID> devices = devices_of(device);
  ProgramProperties given = properties;
  if (devices.size() > 1 && given.dev_mapping.empty()) given.dev_mapping = mapping_of(devices);
  without_lock([&] {
    // With a mapping the number says nothing: any of the context's will do.
    const QID chosen = !devices.empty()            ? devices.front()
                       : given.dev_mapping.empty() ? parent.choose(container.get())
                                                   : parent.devices().front();
    const QAicProgramProperties made = given.get();
    object_ = rt::Program::Factory(parent.get(), chosen, name.c_str(), container.get(), &made);
  });
}

nb::object program_object(nb::object context, rt::shProgram program) {
  return nb::cast(new ProgramObject(std::move(context), std::move(program)),
                  nb::rv_policy::take_ownership);
}

void bind_program(nb::module_& module) {
  bind_info(module);
  auto made =
      nb::class_<ProgramObject>(module, "Program", nb::type_slots(cycle_slots<ProgramObject>()),
                                "A program of a container on a device.");
  made.def(
          "__init__",
          [](ProgramObject* self, nb::object context, nb::handle device, const nb::object& qpc,
             const ProgramProperties* properties, const std::string& name) {
            const ProgramProperties defaults;
            new (self) ProgramObject(std::move(context), device, qpc,
                                     properties != nullptr ? *properties : defaults, name);
          },
          arg("context"), arg("dev").none() = nb::none(), arg("qpcObj").none() = nb::none(),
          arg("properties").none() = nb::none(), arg("name") = "Program",
          "The first program of `qpcObj`, not loaded yet. dev None: the first device with room.")
      .def("load", &step<&rt::Program::load>)
      .def("unload", &step<&rt::Program::unload>)
      .def("activate", &step<&rt::Program::activate>)
      .def("deactivate", &step<&rt::Program::deactivate>)
      .def("isLoaded", [](const ProgramObject& self) { return self.get()->isLoaded(); })
      .def("isActivated", [](const ProgramObject& self) { return self.get()->isActivated(); })
      .def("getProgramInfo",
           [](const ProgramObject& self) { return rt::ProgramInfo(self.get()->getProgramInfo()); })
      .def("getAicProgramInfo",
           [](const ProgramObject& self) {
             QAicProgramInfo info{};
             const QStatus status = self.get()->getAicProgramInfo(info);
             return nb::make_tuple(status, info);
           })
      .def("setId", [](ProgramObject& self, QAicProgramID id) { self.get()->setId(id); })
      .def("getId", [](const ProgramObject& self) { return self.get()->getId(); })
      .def("getInferenceCompleteCount",
           [](const ProgramObject& self) { return self.get()->getInferenceCompleteCount(); })
      .def("getBufferMappings",
           [](const ProgramObject& self) { return self.get()->getBufferMappings(); })
      .def("createSlicingSpecHandle", &slicing_of, arg("json"),
           "The status, and a specification for ExecObj.setDataWithSlices.")
      .def("getIoDescriptor",
           [](const ProgramObject& self) {
             return descriptor([&](QData* data) { return self.get()->getIoDescriptor(data); });
           })
      .def("getQid", [](const ProgramObject& self) { return self.get()->getQid(); })
      .def("getContext", [](const ProgramObject& self) { return self.context(); })
      .def_static(
          "initProperties",
          [](ProgramProperties& properties) {
            rt::Program::initProperties(properties.values);
            properties.dev_mapping.clear();
          },
          arg("properties"), "Fills in the defaults.");
  bind_logger<ProgramObject>(made);
}

}  // namespace corelane::qaic_python
