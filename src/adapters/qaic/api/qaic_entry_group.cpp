/// The functions of program groups.
#include <utility>

#include "adapters/qaic/api/qaic_edge.h"
#include "adapters/qaic/api/qaic_handle.h"
#include "adapters/qaic/api/qaic_make_program.h"
#include "adapters/qaic/context/qaic_context.h"
#include "adapters/qaic/context/qaic_devices.h"
#include "adapters/qaic/program/qaic_program.h"
#include "adapters/qaic/program/qaic_program_group.h"
#include "adapters/qaic/program/qaic_queue.h"
#include "adapters/qaic/qpc/qaic_qpc.h"
#include "qaic_ours.h"

namespace corelane::qaic {
namespace {

/// A program in C puts any number into an enumeration.
Outcome check_group(const QAicProgramGroupProperties& properties) {
  const auto protocol = static_cast<int>(properties.protocolSelect);
  if (protocol != QAIC_PROGRAM_GROUP_PROTOCOL_CONTROL_PATH &&
      protocol != QAIC_PROGRAM_GROUP_PROTOCOL_DATA_PATH)
    return outcome(QS_INVAL,
                   "protocolSelect is {}; QAIC_PROGRAM_GROUP_PROTOCOL_CONTROL_PATH (0) and "
                   "_DATA_PATH (1) are allowed",
                   protocol);
  const auto more = static_cast<int>(properties.enableOversubscription);
  if (more != QAIC_PROGRAM_GROUP_PROPERTIES_OVERSUBSCRIPTION_DISABLED &&
      more != QAIC_PROGRAM_GROUP_PROPERTIES_OVERSUBSCRIPTION_ENABLED)
    return outcome(QS_INVAL, "enableOversubscription is {}; 0 and 1 are allowed", more);
  return {};
}

std::uint64_t nanoseconds(Duration time) noexcept {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
}

}  // namespace
}  // namespace corelane::qaic

using namespace corelane::qaic;  // NOLINT(google-build-using-namespace)

QAIC_EXPORT QStatus qaicProgramGroupPropertiesInitDefault(QAicProgramGroupProperties* properties) {
  return guard(__func__, [&]() -> Outcome {
    if (properties == nullptr) return outcome(QS_INVAL, "properties is null");
    *properties = {};
    return {};
  });
}

QAIC_EXPORT QStatus qaicCreateProgramGroup(QAicContext* context, QAicProgramGroup** group,
                                           QAicQueue** queue,
                                           const QAicProgramGroupProperties* properties,
                                           const char* name, QID device) {
  return guard(__func__, [&]() -> Outcome {
    if (group == nullptr) return outcome(QS_INVAL, "group is null");
    if (queue == nullptr) return outcome(QS_INVAL, "queue is null");
    CORELANE_ASSIGN(const auto owner, find<ContextObject>(context));
    const QAicProgramGroupProperties given =
        properties != nullptr ? *properties : QAicProgramGroupProperties{};
    if (Outcome checked = check_group(given); checked.code() != QS_SUCCESS) return checked;
    auto opened = owner->device(device);
    if (!opened) return device_outcome(opened.error());
    GroupParts parts{
        owner, device, *opened, name != nullptr ? name : "ProgramGroup",
        given.enableOversubscription == QAIC_PROGRAM_GROUP_PROPERTIES_OVERSUBSCRIPTION_ENABLED};
    const auto made = std::make_shared<ProgramGroupObject>(std::move(parts));
    // Programs of a group run side by side, so that its queue keeps no order.
    QAicQueue* own = publish(std::make_shared<QueueObject>(owner, *std::move(opened), false));
    // Before the group is published: should that fail, the end of `made` takes the queue's handle
    // back.
    made->own_queue(own);
    *group = publish(made);
    *queue = own;
    return {};
  });
}

QAIC_EXPORT QStatus qaicProgramGroupAddProgram(QAicProgramGroup* group, QAicQpcObj* qpc,
                                               QAicProgram** program,
                                               const QAicProgramProperties* properties) {
  return on<ProgramGroupObject>(__func__, group, [&](ProgramGroupObject& object) -> Outcome {
    if (program == nullptr) return outcome(QS_INVAL, "program is null");
    CORELANE_ASSIGN(auto container, find<QpcObject>(qpc));
    ProgramRequest request{
        object.parts().context, std::move(container), properties, object.parts().number, nullptr,
        object.gate()};
    std::shared_ptr<ProgramObject> made;
    Outcome created = create_program(std::move(request), made);
    if (created.code() != QS_SUCCESS) {
      object.parts().context->report(QAIC_ERROR_PROGRAM_CREATION, created.status());
      return created;
    }
    CORELANE_ASSIGN(*program, object.add(made));
    return {};
  });
}

QAIC_EXPORT QStatus qaicProgramGroupEnable(QAicProgramGroup* group) {
  return on<ProgramGroupObject>(
      __func__, group, [](ProgramGroupObject& object) -> Outcome { return object.enable(); });
}

QAIC_EXPORT QStatus qaicProgramGroupDisable(QAicProgramGroup* group, bool wait,
                                            uint64_t timeoutUs) {
  return on<ProgramGroupObject>(__func__, group, [&](ProgramGroupObject& object) -> Outcome {
    return object.disable(wait, timeoutUs);
  });
}

QAIC_EXPORT QStatus qaicReleaseProgramGroup(QAicProgramGroup* group) {
  return release<ProgramGroupObject>(__func__, group, [](ProgramGroupObject& object) -> Outcome {
    object.end();
    return {};
  });
}

extern "C" QStatus qaicProgramGroupSetTurn(QAicProgramGroup* group, QAicProgram* program,
                                           const QAicProgramGroupTurn* turn) {
  return on<ProgramGroupObject>(__func__, group, [&](ProgramGroupObject& object) -> Outcome {
    if (turn == nullptr) return outcome(QS_INVAL, "turn is null");
    CORELANE_ASSIGN(const auto found, find<ProgramObject>(program));
    return object.set_turn(*found, *turn);
  });
}

extern "C" QStatus qaicProgramGetTurnFigures(QAicProgram* program,
                                             QAicProgramTurnFigures* figures) {
  return on<ProgramObject>(__func__, program, [&](ProgramObject& object) -> Outcome {
    if (figures == nullptr) return outcome(QS_INVAL, "figures is null");
    const corelane::TurnFigures now = object.turn_figures();
    *figures = {now.turns,
                now.switches,
                nanoseconds(now.cost_total),
                nanoseconds(now.cost_longest),
                nanoseconds(now.cost_last),
                nanoseconds(now.served),
                nanoseconds(now.longest_wait)};
    return {};
  });
}
