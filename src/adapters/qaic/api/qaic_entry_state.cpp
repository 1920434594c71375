/// The functions of state on the device, and of specializations.
#include "adapters/qaic/api/qaic_edge.h"
#include "adapters/qaic/api/qaic_handle.h"
#include "adapters/qaic/program/qaic_exec.h"
#include "adapters/qaic/program/qaic_states.h"
#include "adapters/qaic/set/qaic_set.h"
#include "qaic_ours.h"

using namespace corelane::qaic;  // NOLINT(google-build-using-namespace)

extern "C" QStatus qaicExecObjGetStates(QAicExecObj* execObj, uint32_t* numStates,
                                        QAicStateInfo* states) {
  return on<ExecObjObject>(__func__, execObj, [&](ExecObjObject& object) -> Outcome {
    if (numStates == nullptr) return outcome(QS_INVAL, "numStates is null");
    return object.with_states([&](const StateCalls& of) { return of.list(*numStates, states); });
  });
}

extern "C" QStatus qaicExecObjResetState(QAicExecObj* execObj, uint32_t state) {
  return on<ExecObjObject>(__func__, execObj, [&](ExecObjObject& object) -> Outcome {
    return object.with_states([&](StateCalls of) { return of.reset(state); });
  });
}

extern "C" QStatus qaicExecObjSetState(QAicExecObj* execObj, uint32_t state, const void* data,
                                       uint64_t size) {
  return on<ExecObjObject>(__func__, execObj, [&](ExecObjObject& object) -> Outcome {
    return object.with_states([&](StateCalls of) { return of.set(state, data, size); });
  });
}

extern "C" QStatus qaicExecObjCopyState(QAicExecObj* execObj, uint32_t state, void* data,
                                        uint64_t size) {
  return on<ExecObjObject>(__func__, execObj, [&](ExecObjObject& object) -> Outcome {
    return object.with_states([&](const StateCalls& of) { return of.copy(state, data, size); });
  });
}

extern "C" QStatus qaicInferenceSetGetStates(QAicInferenceSet* set, uint32_t handle,
                                             uint32_t* numStates, QAicStateInfo* states) {
  return on<SetObject>(__func__, set, [&](SetObject& object) -> Outcome {
    if (numStates == nullptr) return outcome(QS_INVAL, "numStates is null");
    return object.with_states(handle,
                              [&](const StateCalls& of) { return of.list(*numStates, states); });
  });
}

extern "C" QStatus qaicInferenceSetResetState(QAicInferenceSet* set, uint32_t handle,
                                              uint32_t state) {
  return on<SetObject>(__func__, set, [&](SetObject& object) -> Outcome {
    return object.with_states(handle, [&](StateCalls of) { return of.reset(state); });
  });
}

extern "C" QStatus qaicInferenceSetSetState(QAicInferenceSet* set, uint32_t handle, uint32_t state,
                                            const void* data, uint64_t size) {
  return on<SetObject>(__func__, set, [&](SetObject& object) -> Outcome {
    return object.with_states(handle, [&](StateCalls of) { return of.set(state, data, size); });
  });
}

extern "C" QStatus qaicInferenceSetCopyState(QAicInferenceSet* set, uint32_t handle, uint32_t state,
                                             void* data, uint64_t size) {
  return on<SetObject>(__func__, set, [&](SetObject& object) -> Outcome {
    return object.with_states(handle,
                              [&](const StateCalls& of) { return of.copy(state, data, size); });
  });
}

extern "C" QStatus qaicExecObjSetCovering(QAicExecObj* execObj, bool covering) {
  return on<ExecObjObject>(__func__, execObj, [&](ExecObjObject& object) -> Outcome {
    return object.set_covering(covering);
  });
}

extern "C" QStatus qaicExecObjGetSpecialization(QAicExecObj* execObj, uint32_t* specialization) {
  return on<ExecObjObject>(__func__, execObj, [&](ExecObjObject& object) -> Outcome {
    if (specialization == nullptr) return outcome(QS_INVAL, "specialization is null");
    CORELANE_ASSIGN(*specialization, object.specialization());
    return {};
  });
}

extern "C" QStatus qaicInferenceSetSetCovering(QAicInferenceSet* set, uint32_t handle,
                                               bool covering) {
  return on<SetObject>(__func__, set, [&](SetObject& object) -> Outcome {
    return object.set_covering(handle, covering);
  });
}

extern "C" QStatus qaicInferenceSetGetSpecialization(QAicInferenceSet* set, uint32_t handle,
                                                     uint32_t* specialization) {
  return on<SetObject>(__func__, set, [&](SetObject& object) -> Outcome {
    if (specialization == nullptr) return outcome(QS_INVAL, "specialization is null");
    CORELANE_ASSIGN(*specialization, object.specialization(handle));
    return {};
  });
}
