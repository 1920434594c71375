/// The functions of programs.
#include <limits>

#include "adapters/qaic/api/qaic_edge.h"
#include "adapters/qaic/api/qaic_handle.h"
#include "adapters/qaic/api/qaic_make_program.h"
#include "adapters/qaic/checks/qaic_check.h"
#include "adapters/qaic/context/qaic_context.h"
#include "adapters/qaic/context/qaic_devices.h"
#include "adapters/qaic/profiling/qaic_profile_tap.h"
#include "adapters/qaic/program/qaic_program.h"
#include "adapters/qaic/qpc/qaic_qpc.h"
#include "corelane/program/description.h"
#include "qaic_ours.h"

namespace corelane::qaic {

Outcome create_program(ProgramRequest request, std::shared_ptr<ProgramObject>& made) {
  CORELANE_ASSIGN(const AttemptRules rules, check_properties(request.properties));
  CORELANE_TRY(request.qpc->check_program(0));
  const ProgramDescription& description = request.qpc->description(0);
  if (request.gate != nullptr && request.qpc->parts_of(0) > 1)
    return Status(error(Code::kUnsupported,
                        "program '{}' was cut into parts, and a group takes turns on one device; "
                        "make it without a group",
                        description.name));
  const char* const mapping =
      request.properties == nullptr ? nullptr : request.properties->devMapping;
  Placement placed;
  Outcome on = place(*request.context, *request.qpc, 0, request.device, mapping, placed);
  if (on.code() != QS_SUCCESS) return on;
  const bool named = request.name != nullptr && *request.name != '\0';
  std::string called = named ? request.name : description.name;
  made = std::make_shared<ProgramObject>(ProgramParts{std::move(request.context), std::move(placed),
                                                      std::move(request.qpc), 0, std::move(called),
                                                      rules, std::move(request.gate)});
  return {};
}

}  // namespace corelane::qaic

using namespace corelane::qaic;  // NOLINT(google-build-using-namespace)

QAIC_EXPORT QStatus qaicProgramPropertiesInitDefault(QAicProgramProperties* properties) {
  return guard(__func__, [&]() -> Outcome {
    if (properties == nullptr) return outcome(QS_INVAL, "properties is null");
    *properties = {};
    return {};
  });
}

QAIC_EXPORT QStatus qaicCreateProgram(QAicContext* context, QAicProgram** program,
                                      const QAicProgramProperties* properties, QID device,
                                      const char* name, QAicQpcObj* qpc) {
  return guard(__func__, [&]() -> Outcome {
    if (program == nullptr) return outcome(QS_INVAL, "program is null");
    CORELANE_ASSIGN(const auto owner, find<ContextObject>(context));
    CORELANE_ASSIGN(auto container, find<QpcObject>(qpc));
    std::shared_ptr<ProgramObject> made;
    Outcome created =
        create_program({owner, std::move(container), properties, device, name, nullptr}, made);
    if (created.code() != QS_SUCCESS) {
      owner->report(QAIC_ERROR_PROGRAM_CREATION, created.status());
      return created;
    }
    // Before `made` is given away. Those who watch programs hear of one once its handle is there.
    const auto tap = made->tap();
    *program = publish(std::move(made));
    profiled::created(tap);
    return {};
  });
}

QAIC_EXPORT QStatus qaicLoadProgram(QAicProgram* program) {
  return on<ProgramObject>(__func__, program,
                           [](ProgramObject& object) -> Outcome { return object.load(); });
}

QAIC_EXPORT QStatus qaicUnloadProgram(QAicProgram* program) {
  return on<ProgramObject>(__func__, program,
                           [](ProgramObject& object) -> Outcome { return object.unload(); });
}

QAIC_EXPORT QStatus qaicRunActivationCmd(QAicProgram* program, QAicProgramActivationCmd command) {
  return on<ProgramObject>(__func__, program, [&](ProgramObject& object) -> Outcome {
    // A program in C puts any number into an enumeration.
    const auto number = static_cast<int>(command);
    if (number == QAIC_PROGRAM_CMD_ACTIVATE_FULL) return object.activate();
    if (number == QAIC_PROGRAM_CMD_DEACTIVATE_FULL) return object.deactivate();
    return outcome(QS_INVAL,
                   "command {}; QAIC_PROGRAM_CMD_ACTIVATE_FULL (0) and _DEACTIVATE_FULL (1) are "
                   "allowed",
                   number);
  });
}

QAIC_EXPORT QStatus qaicReleaseProgram(QAicProgram* program) {
  return release<ProgramObject>(__func__, program, [](const ProgramObject& object) -> Outcome {
    // That of a set leaves with the set.
    if (!object.tap()->of_set()) profiled::released(object.tap());
    return {};
  });
}

QAIC_EXPORT QStatus qaicProgramGetIoDescriptor(QAicProgram* program, QData* ioDesc) {
  return on<ProgramObject>(__func__, program, [&](const ProgramObject& object) -> Outcome {
    if (ioDesc == nullptr) return outcome(QS_INVAL, "ioDesc is null");
    *ioDesc = writable(object.parts().qpc->program(object.parts().index).io_descriptor);
    return {};
  });
}

QAIC_EXPORT QStatus qaicProgramGetIoBufferInfo(QAicProgram* program, QAicIoBufferInfo** info) {
  return on<ProgramObject>(__func__, program, [&](const ProgramObject& object) -> Outcome {
    if (info == nullptr) return outcome(QS_INVAL, "info is null");
    const QAicQpcProgramInfo& found = object.parts().qpc->info().programInfo[object.parts().index];
    // The API's type is not const. All programs of the container share this memory.
    *info = const_cast<QAicIoBufferInfo*>(&found.ioBufferInfo);
    return {};
  });
}

extern "C" QStatus qaicProgramGetInfo(QAicProgram* program, QAicProgramInfo* info) {
  return on<ProgramObject>(__func__, program, [&](ProgramObject& object) -> Outcome {
    if (info == nullptr) return outcome(QS_INVAL, "info is null");
    *info = object.info();
    return {};
  });
}

extern "C" QStatus qaicProgramGetInferenceCompletedCount(QAicProgram* program, uint64_t* count) {
  return on<ProgramObject>(__func__, program, [&](const ProgramObject& object) -> Outcome {
    if (count == nullptr) return outcome(QS_INVAL, "count is null");
    *count = object.completed();
    check::ends_counted(&object);
    return {};
  });
}
