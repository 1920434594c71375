/// Functions that are not written yet. Each goes from here with its code.
#include "adapters/qaic/api/qaic_edge.h"
#include "qaic_ours.h"

namespace corelane::qaic {
namespace {

QStatus later(const char* function) noexcept {
  return guard(function, []() -> Outcome { return outcome(QS_UNSUPPORTED, "not written yet"); });
}

}  // namespace
}  // namespace corelane::qaic

QAIC_EXPORT QStatus qaicProgramPropertiesInitDefault(QAicProgramProperties*) {
  return corelane::qaic::later(__func__);
}
QAIC_EXPORT QStatus qaicCreateProgram(QAicContext*, QAicProgram**, const QAicProgramProperties*,
                                      QID, const char*, QAicQpcObj*) {
  return corelane::qaic::later(__func__);
}
QAIC_EXPORT QStatus qaicLoadProgram(QAicProgram*) { return corelane::qaic::later(__func__); }
QAIC_EXPORT QStatus qaicUnloadProgram(QAicProgram*) { return corelane::qaic::later(__func__); }
QAIC_EXPORT QStatus qaicRunActivationCmd(QAicProgram*, QAicProgramActivationCmd) {
  return corelane::qaic::later(__func__);
}
QAIC_EXPORT QStatus qaicReleaseProgram(QAicProgram*) { return corelane::qaic::later(__func__); }
QAIC_EXPORT QStatus qaicProgramGetIoDescriptor(QAicProgram*, QData*) {
  return corelane::qaic::later(__func__);
}
QAIC_EXPORT QStatus qaicProgramGetIoBufferInfo(QAicProgram*, QAicIoBufferInfo**) {
  return corelane::qaic::later(__func__);
}
QAIC_EXPORT QStatus qaicCreateExecObj(QAicContext*, QAicExecObj**, const QAicExecObjProperties_t*,
                                      QAicProgram*, const QData*, uint32_t*, QBuffer**) {
  return corelane::qaic::later(__func__);
}
QAIC_EXPORT QStatus qaicReleaseExecObj(QAicExecObj*) { return corelane::qaic::later(__func__); }
QAIC_EXPORT QStatus qaicExecObjSetData(QAicExecObj*, uint32_t, const QBuffer*) {
  return corelane::qaic::later(__func__);
}
QAIC_EXPORT QStatus qaicExecObjSetDataExt(QAicExecObj*, uint32_t, const QBuffer*,
                                          const QBufferDimensions*) {
  return corelane::qaic::later(__func__);
}
QAIC_EXPORT QStatus qaicExecObjGetIoBuffers(QAicExecObj*, uint32_t*, QBuffer**) {
  return corelane::qaic::later(__func__);
}
QAIC_EXPORT QStatus qaicExecObjWaitForCompletion(QAicExecObj*, uint64_t) {
  return corelane::qaic::later(__func__);
}
QAIC_EXPORT QStatus qaicCreateQueue(QAicContext*, QAicQueue**, const QAicQueueProperties*, QID) {
  return corelane::qaic::later(__func__);
}
QAIC_EXPORT QStatus qaicReleaseQueue(QAicQueue*) { return corelane::qaic::later(__func__); }
QAIC_EXPORT QStatus qaicEnqueueExecObj(QAicQueue*, QAicExecObj*, QAicEvent*) {
  return corelane::qaic::later(__func__);
}
QAIC_EXPORT QStatus qaicCreateEvent(QAicContext*, QAicEvent**, QAicEventCompletionType) {
  return corelane::qaic::later(__func__);
}
QAIC_EXPORT QStatus qaicEventClear(QAicEvent*) { return corelane::qaic::later(__func__); }
QAIC_EXPORT QStatus qaicEventAddCallback(QAicEvent*, QAicEventCallback, void*) {
  return corelane::qaic::later(__func__);
}
QAIC_EXPORT QStatus qaicEventRemoveCallback(QAicEvent*, QAicEventCallback) {
  return corelane::qaic::later(__func__);
}
QAIC_EXPORT QStatus qaicWaitforEvent(QAicEvent*) { return corelane::qaic::later(__func__); }
QAIC_EXPORT QStatus qaicReleaseEvent(QAicEvent*) { return corelane::qaic::later(__func__); }
QAIC_EXPORT QStatus qaicReleaseConstants(QAicConstants*) { return corelane::qaic::later(__func__); }
extern "C" QStatus qaicProgramGetInfo(QAicProgram*, QAicProgramInfo*) {
  return corelane::qaic::later(__func__);
}
extern "C" QStatus qaicProgramGetInferenceCompletedCount(QAicProgram*, uint64_t*) {
  return corelane::qaic::later(__func__);
}
extern "C" QStatus qaicExecObjGetId(QAicExecObj*, QAicExecObjID*) {
  return corelane::qaic::later(__func__);
}
extern "C" QStatus qaicRunExecObj(QAicExecObj*) { return corelane::qaic::later(__func__); }
extern "C" QStatus qaicCreateInferenceSet(QAicContext*, QAicInferenceSet**,
                                          const QAicInferenceSetConfig*, QAicQpcObj*) {
  return corelane::qaic::later(__func__);
}
extern "C" QStatus qaicReleaseInferenceSet(QAicInferenceSet*) {
  return corelane::qaic::later(__func__);
}
extern "C" QStatus qaicInferenceSetGetAvailable(QAicInferenceSet*, uint64_t, uint32_t*) {
  return corelane::qaic::later(__func__);
}
extern "C" QStatus qaicInferenceSetSetData(QAicInferenceSet*, uint32_t, uint32_t, const QBuffer*,
                                           const QBufferDimensions*) {
  return corelane::qaic::later(__func__);
}
extern "C" QStatus qaicInferenceSetSubmit(QAicInferenceSet*, uint32_t, uint64_t) {
  return corelane::qaic::later(__func__);
}
extern "C" QStatus qaicInferenceSetGetCompleted(QAicInferenceSet*, uint64_t, uint32_t*) {
  return corelane::qaic::later(__func__);
}
extern "C" QStatus qaicInferenceSetGetCompletedId(QAicInferenceSet*, uint64_t, uint64_t,
                                                  uint32_t*) {
  return corelane::qaic::later(__func__);
}
extern "C" QStatus qaicInferenceSetPutCompleted(QAicInferenceSet*, uint32_t) {
  return corelane::qaic::later(__func__);
}
extern "C" QStatus qaicInferenceSetWaitForCompletion(QAicInferenceSet*, uint64_t) {
  return corelane::qaic::later(__func__);
}
extern "C" QStatus qaicInferenceSetCancel(QAicInferenceSet*, uint64_t) {
  return corelane::qaic::later(__func__);
}
extern "C" QStatus qaicInferenceSetShutdown(QAicInferenceSet*) {
  return corelane::qaic::later(__func__);
}
extern "C" QStatus qaicInferenceSetGetFd(QAicInferenceSet*, int*) {
  return corelane::qaic::later(__func__);
}
extern "C" QStatus qaicInferenceSetGetProgramInfo(QAicInferenceSet*, QAicProgramInfoV2*) {
  return corelane::qaic::later(__func__);
}
extern "C" QStatus qaicQpcGetBytes(QAicQpcObj*, QData*) { return corelane::qaic::later(__func__); }
