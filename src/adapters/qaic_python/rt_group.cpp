#include "adapters/qaic_python/rt_group.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>
#include <utility>

#include "QAicApi.hpp"
#include "adapters/interpreter/py_gate.h"
#include "adapters/qaic_python/rt_cycle.h"
#include "adapters/qaic_python/rt_member.h"
#include "adapters/qaic_python/rt_names.h"
#include "adapters/qaic_python/rt_pending.h"
#include "adapters/qaic_python/rt_program.h"

namespace corelane::qaic_python {

namespace nb = nanobind;
using interpreter::without_lock;
using nb::arg;
namespace rt = qaic::rt;

namespace {

class GroupObject : public ContextMember<rt::shProgramGroup> {
 public:
  GroupObject(nb::object context, nb::handle device, const std::string& name,
              const QAicProgramGroupProperties* properties)
      : ContextMember(std::move(context)) {
    const auto& parent = object_of<ContextObject>(context_, "the context");
    const QID chosen = parent.first_of(device);
    without_lock([&] {
      object_ = rt::ProgramGroup::Factory(parent.get(), chosen, name.c_str(), properties);
    });
  }
};

nb::object add_program(GroupObject& self, nb::handle qpc, const ProgramProperties* properties) {
  const auto& container = object_of<QpcObject>(qpc, "the Qpc (qpcObj)");
  rt::shProgram made = without_lock([&] {
    const QAicProgramProperties given =
        properties != nullptr ? properties->get() : QAicProgramProperties{};
    return self.get()->addProgram(container.get(), &given);
  });
  return program_object(self.context(), std::move(made));
}

}  // namespace

void bind_group(nb::module_& module) {
  auto made =
      nb::class_<GroupObject>(module, "ProgramGroup", nb::type_slots(cycle_slots<GroupObject>()),
                              "Programs that share the cores of a device.");
  made.def(
          nb::init<nb::object, nb::handle, const std::string&, const QAicProgramGroupProperties*>(),
          arg("context"), arg("dev").none() = nb::none(), arg("name") = "ProgramGroup",
          arg("properties").none() = nb::none(),
          "A group without programs, not enabled. dev None: the first device of the context.")
      .def("addProgram", &add_program, arg("qpcObj"), arg("properties").none() = nb::none(),
           "The first program of `qpcObj`, which enable() loads and activates.")
      .def(
          "setTurn",
          [](GroupObject& self, nb::handle program, const QAicProgramGroupTurn& turn) {
            const auto& member = object_of<ProgramObject>(program, "the program");
            return without_lock([&] { return self.get()->setTurn(member.get(), turn); });
          },
          arg("program"), arg("turn"), "How a program takes its turns; while it is not enabled.")
      .def(
          "enable",
          [](GroupObject& self) {
            // Execution objects that are over may hold cores which the group wants.
            sweep();
            return without_lock([&] { return self.get()->enable(); });
          },
          "Loads and activates all programs, or none.")
      .def(
          "disable",
          [](GroupObject& self, bool wait, std::uint64_t timeout) {
            return without_lock([&] { return self.get()->disable(wait, timeout); });
          },
          arg("wait") = false, arg("timeout") = 0,
          "Gives the cores back; with `wait` once all that runs has ended, within `timeout` "
          "microseconds (0: no limit).")
      .def(
          "getTurnFigures",
          [](const GroupObject& self, nb::handle program) {
            const auto& member = object_of<ProgramObject>(program, "the program");
            QAicProgramTurnFigures figures{};
            const QStatus status = self.get()->getTurnFigures(member.get(), figures);
            return nb::make_tuple(status, figures);
          },
          arg("program"), "(status, figures): what became of a program's turns.")
      .def("getQid", [](const GroupObject& self) { return self.get()->getQid(); })
      .def_static(
          "initProperties",
          [](QAicProgramGroupProperties& properties) {
            rt::ProgramGroup::initProperties(properties);
          },
          arg("properties"), "Fills in the defaults.");
  bind_logger<GroupObject>(made);
}

}  // namespace corelane::qaic_python
