/// The functions of inference sets.
#include <vector>

#include "adapters/qaic/api/qaic_edge.h"
#include "adapters/qaic/api/qaic_handle.h"
#include "adapters/qaic/context/qaic_context.h"
#include "adapters/qaic/context/qaic_devices.h"
#include "adapters/qaic/context/qaic_resources.h"
#include "adapters/qaic/profiling/qaic_profile_tap.h"
#include "adapters/qaic/program/qaic_buffer_owner.h"
#include "adapters/qaic/qpc/qaic_qpc.h"
#include "adapters/qaic/set/qaic_set.h"
#include "corelane/program/description.h"
#include "qaic_ours.h"

namespace corelane::qaic {
namespace {

/// As asked, as mapped, or those with room for all activations.
Outcome choose_devices(const ContextObject& context, const QpcObject& qpc,
                       const QAicInferenceSetConfig& config, std::vector<QID>& chosen) {
  chosen = {config.device};
  if (config.device != -1 || is_mapped(config.programProperties)) return {};
  const QAicQpcProgramInfo& program = qpc.info().programInfo[config.programIndex];
  const std::size_t cores = std::size_t{program.numCores} * config.numActivations;
  auto found = find_devices(context, {cores, program.reqMem});
  if (!found) return device_outcome(found.error());
  chosen = *std::move(found);
  return {};
}

Outcome create_on(QID number, const QAicInferenceSetConfig& config, ProgramParts parts,
                  std::shared_ptr<SetObject>& made) {
  const char* const mapping =
      config.programProperties == nullptr ? nullptr : config.programProperties->devMapping;
  Outcome placed = place(*parts.context, *parts.qpc, parts.index, number, mapping, parts.on);
  if (placed.code() != QS_SUCCESS) return placed;
  CORELANE_ASSIGN(made, SetObject::create(std::move(parts), config.setSize, config.numActivations));
  return {};
}

Outcome create_set(const std::shared_ptr<ContextObject>& context,
                   const QAicInferenceSetConfig& config, std::shared_ptr<QpcObject> qpc,
                   std::shared_ptr<SetObject>& made) {
  ProgramParts parts;
  CORELANE_ASSIGN(parts.rules, check_properties(config.programProperties));
  CORELANE_TRY(check_properties(config.queueProperties));
  CORELANE_TRY(qpc->check_program(config.programIndex));
  std::vector<QID> devices;
  if (Outcome chosen = choose_devices(*context, *qpc, config, devices); chosen.code() != QS_SUCCESS)
    return chosen;
  parts.context = context;
  parts.index = config.programIndex;
  parts.name = config.name != nullptr && *config.name != '\0'
                   ? config.name
                   : qpc->description(config.programIndex).name;
  parts.qpc = std::move(qpc);
  // What an engine needs besides the program's own memory, only loading tells.
  const auto has_no_room = [](QStatus code) { return code == QS_NOMEM || code == QS_NOSPC; };
  // `parts` are copied for each try.
  Outcome created = create_on(devices.front(), config, parts, made);
  for (std::size_t i = 1; i < devices.size() && has_no_room(created.code()); ++i)
    created = create_on(devices[i], config, parts, made);
  return created;
}

}  // namespace
}  // namespace corelane::qaic

using namespace corelane::qaic;  // NOLINT(google-build-using-namespace)

extern "C" QStatus qaicCreateInferenceSet(QAicContext* context, QAicInferenceSet** set,
                                          const QAicInferenceSetConfig* config, QAicQpcObj* qpc) {
  return guard(__func__, [&]() -> Outcome {
    if (set == nullptr || config == nullptr) return outcome(QS_INVAL, "set or config is null");
    CORELANE_ASSIGN(const auto owner, find<ContextObject>(context));
    CORELANE_ASSIGN(auto container, find<QpcObject>(qpc));
    std::shared_ptr<SetObject> made;
    Outcome created = create_set(owner, *config, std::move(container), made);
    if (created.code() != QS_SUCCESS) {
      owner->report(QAIC_ERROR_PROGRAM_CREATION, created.status());
      return created;
    }
    const auto tap = made->program()->tap();
    *set = publish(std::move(made));
    profiled::created(tap);
    return {};
  });
}

extern "C" QStatus qaicReleaseInferenceSet(QAicInferenceSet* set) {
  return release<SetObject>(__func__, set, [](SetObject& object) -> Outcome {
    // Before the shutdown, which changes what is in flight.
    if (check::enabled()) check::set_ends(&object, object.in_flight());
    object.shutdown();
    profiled::released(object.program()->tap());
    return {};
  });
}

extern "C" QStatus qaicInferenceSetGetProgram(QAicInferenceSet* set, QAicProgram** program) {
  return on<SetObject>(__func__, set, [&](const SetObject& object) -> Outcome {
    if (program == nullptr) return outcome(QS_INVAL, "program is null");
    // A new handle at each call, which its user releases. The program itself is the set's.
    *program = publish(object.program());
    return {};
  });
}

extern "C" QStatus qaicInferenceSetGetAvailable(QAicInferenceSet* set, uint64_t timeoutUs,
                                                uint32_t* handle) {
  return on<SetObject>(__func__, set, [&](SetObject& object) -> Outcome {
    if (handle == nullptr) return outcome(QS_INVAL, "handle is null");
    return object.acquire(timeoutUs, *handle);
  });
}

extern "C" QStatus qaicInferenceSetSetData(QAicInferenceSet* set, uint32_t handle,
                                           uint32_t numBuffers, const QBuffer* buffers,
                                           const QBufferDimensions* dimensions) {
  return on<SetObject>(__func__, set, [&](SetObject& object) -> Outcome {
    return object.set_data(handle, numBuffers, buffers, dimensions);
  });
}

extern "C" QStatus qaicInferenceSetSetOwnedData(QAicInferenceSet* set, uint32_t handle,
                                                uint32_t numBuffers, const QBuffer* buffers,
                                                const QBufferDimensions* dimensions, void* owner,
                                                QAicOwnerRelease releaseOwner) {
  return on<SetObject>(__func__, set, [&](SetObject& object) -> Outcome {
    return set_with_owner(owner, releaseOwner, [&](const auto& shared) {
      return object.set_data(handle, numBuffers, buffers, dimensions, shared);
    });
  });
}

extern "C" QStatus qaicInferenceSetGetInFlight(QAicInferenceSet* set, uint32_t* numInferences) {
  return on<SetObject>(__func__, set, [&](const SetObject& object) -> Outcome {
    if (numInferences == nullptr) return outcome(QS_INVAL, "numInferences is null");
    *numInferences = static_cast<uint32_t>(object.in_flight());
    return {};
  });
}

extern "C" QStatus qaicInferenceSetSubmit(QAicInferenceSet* set, uint32_t handle, uint64_t id) {
  return on<SetObject>(__func__, set,
                       [&](SetObject& object) -> Outcome { return object.submit(handle, id); });
}

extern "C" QStatus qaicInferenceSetGetCompleted(QAicInferenceSet* set, uint64_t timeoutUs,
                                                uint32_t* handle) {
  return on<SetObject>(__func__, set, [&](SetObject& object) -> Outcome {
    if (handle == nullptr) return outcome(QS_INVAL, "handle is null");
    return object.collect(timeoutUs, *handle);
  });
}

extern "C" QStatus qaicInferenceSetGetCompletedId(QAicInferenceSet* set, uint64_t id,
                                                  uint64_t timeoutUs, uint32_t* handle) {
  return on<SetObject>(__func__, set, [&](SetObject& object) -> Outcome {
    if (handle == nullptr) return outcome(QS_INVAL, "handle is null");
    return object.collect_id(id, timeoutUs, *handle);
  });
}

extern "C" QStatus qaicInferenceSetPutCompleted(QAicInferenceSet* set, uint32_t handle) {
  return on<SetObject>(__func__, set,
                       [&](SetObject& object) -> Outcome { return object.release(handle); });
}

extern "C" QStatus qaicInferenceSetWaitForCompletion(QAicInferenceSet* set, uint64_t timeoutUs) {
  return on<SetObject>(__func__, set,
                       [&](SetObject& object) -> Outcome { return object.wait(timeoutUs); });
}

extern "C" QStatus qaicInferenceSetCancel(QAicInferenceSet* set, uint64_t id) {
  return on<SetObject>(__func__, set,
                       [&](SetObject& object) -> Outcome { return object.cancel(id); });
}

extern "C" QStatus qaicInferenceSetShutdown(QAicInferenceSet* set) {
  return on<SetObject>(__func__, set, [](SetObject& object) -> Outcome {
    object.shutdown();
    return {};
  });
}

extern "C" QStatus qaicInferenceSetGetFd(QAicInferenceSet* set, int* fd) {
  return on<SetObject>(__func__, set, [&](SetObject& object) -> Outcome {
    if (fd == nullptr) return outcome(QS_INVAL, "fd is null");
    CORELANE_ASSIGN(*fd, object.fd());
    return {};
  });
}

extern "C" QStatus qaicInferenceSetGetProgramInfo(QAicInferenceSet* set, QAicProgramInfoV2* info) {
  return on<SetObject>(__func__, set, [&](const SetObject& object) -> Outcome {
    if (info == nullptr) return outcome(QS_INVAL, "info is null");
    *info = object.info();
    return {};
  });
}
