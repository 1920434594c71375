/// The functions of execution objects, queues and events.
#include "adapters/qaic/api/qaic_edge.h"
#include "adapters/qaic/api/qaic_handle.h"
#include "adapters/qaic/context/qaic_context.h"
#include "adapters/qaic/context/qaic_devices.h"
#include "adapters/qaic/program/qaic_buffer_owner.h"
#include "adapters/qaic/program/qaic_event.h"
#include "adapters/qaic/program/qaic_exec.h"
#include "adapters/qaic/program/qaic_program.h"
#include "adapters/qaic/program/qaic_queue.h"
#include "adapters/qaic/qpc/qaic_io_descriptor.h"
#include "adapters/qaic/qpc/qaic_qpc.h"
#include "corelane/device/device.h"
#include "qaic_ours.h"

namespace corelane::qaic {
namespace {

Result<std::shared_ptr<ExecObjObject>> create_exec(const ContextObject& context,
                                                   const QAicExecObjProperties_t* properties,
                                                   std::shared_ptr<ProgramObject> program,
                                                   const QData* ioDesc) {
  const ProgramParts& parts = program->parts();
  if (parts.context.get() != &context)
    return error(Code::kInvalidArgument,
                 "program '{}' is of context {}, not of context {}; pass its own", parts.name,
                 parts.context->id(), context.id());
  if (ioDesc != nullptr && ioDesc->data == nullptr && ioDesc->size != 0)
    return error(Code::kInvalidArgument, "the {} bytes of the descriptor are null", ioDesc->size);
  // A descriptor that nobody filled in stands for none.
  if (ioDesc != nullptr && ioDesc->size != 0)
    CORELANE_TRY(
        check_io_descriptor({reinterpret_cast<const std::byte*>(ioDesc->data), ioDesc->size},
                            parts.qpc->program(parts.index)));
  constexpr QAicExecObjProperties_t kDefault = QAIC_EXECOBJ_PROPERTIES_DEFAULT;
  return ExecObjObject::create(std::move(program), properties == nullptr ? kDefault : *properties);
}

Result<std::shared_ptr<EventObject>> create_event(std::shared_ptr<ContextObject> context,
                                                  QAicEventCompletionType type) {
  const auto number = static_cast<int>(type);
  if (number != QAIC_EVENT_DEVICE_COMPLETE)
    return error(Code::kInvalidArgument,
                 "an event of type {}; QAIC_EVENT_DEVICE_COMPLETE (0) is allowed", number);
  CORELANE_ASSIGN(const auto device, context->device(context->devices().front()));
  return std::make_shared<EventObject>(std::move(context), device->clock());
}

Outcome create_queue(std::shared_ptr<ContextObject> context, const QAicQueueProperties* properties,
                     QID number, std::shared_ptr<QueueObject>& made) {
  CORELANE_TRY(check_properties(properties));
  auto device = context->device(number);
  if (!device) return device_outcome(device.error());
  constexpr std::uint32_t kDefault = QAIC_QUEUE_PROPERTIES_DEFAULT;
  const std::uint32_t bits = properties == nullptr ? kDefault : properties->properties;
  const bool many = (bits & QAIC_QUEUE_PROPERTIES_ENABLE_MULTI_THREADED_QUEUES) != 0;
  // Several threads of a queue would run its inferences side by side, so that it keeps no order.
  made = std::make_shared<QueueObject>(std::move(context), *std::move(device), !many);
  return {};
}

Outcome give_buffers(ExecObjObject& object, uint32_t* numBuffers, QBuffer** buffers) {
  CORELANE_ASSIGN(const std::span<QBuffer> found, object.io_buffers());
  *numBuffers = static_cast<uint32_t>(found.size());
  *buffers = found.empty() ? nullptr : found.data();
  return {};
}

/// Null: none.
Result<std::shared_ptr<EventObject>> event_of(const QAicEvent* event) {
  if (event == nullptr) return std::shared_ptr<EventObject>();
  return find<EventObject>(event);
}

}  // namespace
}  // namespace corelane::qaic

using namespace corelane::qaic;  // NOLINT(google-build-using-namespace)

QAIC_EXPORT QStatus qaicCreateExecObj(QAicContext* context, QAicExecObj** execObj,
                                      const QAicExecObjProperties_t* properties,
                                      QAicProgram* program, const QData* ioDesc,
                                      uint32_t* numBuffers, QBuffer** buffers) {
  return guard(__func__, [&]() -> Outcome {
    if (execObj == nullptr) return outcome(QS_INVAL, "execObj is null");
    CORELANE_ASSIGN(const auto owner, find<ContextObject>(context));
    CORELANE_ASSIGN(auto of, find<ProgramObject>(program));
    auto made = create_exec(*owner, properties, std::move(of), ioDesc);
    if (!made) {
      owner->report(QIAC_ERROR_EXECOBJ_CREATION, made.error());
      return made.error();
    }
    uint32_t count = 0;
    QBuffer* given = nullptr;
    // Before the handle is given out: what fails here leaves none behind.
    if (Outcome asked = give_buffers(**made, &count, &given); asked.code() != QS_SUCCESS)
      return asked;
    if (numBuffers != nullptr) *numBuffers = count;
    if (buffers != nullptr) *buffers = given;
    *execObj = publish(*std::move(made));
    return {};
  });
}

QAIC_EXPORT QStatus qaicReleaseExecObj(QAicExecObj* execObj) {
  return release<ExecObjObject>(__func__, execObj, [](ExecObjObject& object) -> Outcome {
    object.close();
    return {};
  });
}

QAIC_EXPORT QStatus qaicExecObjSetData(QAicExecObj* execObj, uint32_t numBuffers,
                                       const QBuffer* buffers) {
  return on<ExecObjObject>(__func__, execObj, [&](ExecObjObject& object) -> Outcome {
    return object.set_data(numBuffers, buffers, nullptr);
  });
}

QAIC_EXPORT QStatus qaicExecObjSetDataExt(QAicExecObj* execObj, uint32_t numBuffers,
                                          const QBuffer* buffers,
                                          const QBufferDimensions* dimensions) {
  return on<ExecObjObject>(__func__, execObj, [&](ExecObjObject& object) -> Outcome {
    return object.set_data(numBuffers, buffers, dimensions);
  });
}

extern "C" QStatus qaicExecObjSetOwnedData(QAicExecObj* execObj, uint32_t numBuffers,
                                           const QBuffer* buffers,
                                           const QBufferDimensions* dimensions, void* owner,
                                           QAicOwnerRelease releaseOwner) {
  return on<ExecObjObject>(__func__, execObj, [&](ExecObjObject& object) -> Outcome {
    return set_with_owner(owner, releaseOwner, [&](const auto& shared) {
      return object.set_data(numBuffers, buffers, dimensions, shared);
    });
  });
}

extern "C" QStatus qaicExecObjGetInFlight(QAicExecObj* execObj, uint32_t* numInferences) {
  return on<ExecObjObject>(__func__, execObj, [&](const ExecObjObject& object) -> Outcome {
    if (numInferences == nullptr) return outcome(QS_INVAL, "numInferences is null");
    *numInferences = object.in_flight() ? 1 : 0;
    return {};
  });
}

QAIC_EXPORT QStatus qaicExecObjGetIoBuffers(QAicExecObj* execObj, uint32_t* numBuffers,
                                            QBuffer** buffers) {
  return on<ExecObjObject>(__func__, execObj, [&](ExecObjObject& object) -> Outcome {
    if (numBuffers == nullptr || buffers == nullptr)
      return outcome(QS_INVAL, "numBuffers or buffers is null");
    return give_buffers(object, numBuffers, buffers);
  });
}

QAIC_EXPORT QStatus qaicExecObjWaitForCompletion(QAicExecObj* execObj, uint64_t timeoutUs) {
  return on<ExecObjObject>(__func__, execObj, [&](const ExecObjObject& object) -> Outcome {
    return object.wait(timeoutUs);
  });
}

extern "C" QStatus qaicExecObjGetId(QAicExecObj* execObj, QAicExecObjID* id) {
  return on<ExecObjObject>(__func__, execObj, [&](const ExecObjObject& object) -> Outcome {
    if (id == nullptr) return outcome(QS_INVAL, "id is null");
    *id = object.id();
    return {};
  });
}

extern "C" QStatus qaicRunExecObj(QAicExecObj* execObj) {
  return on<ExecObjObject>(__func__, execObj, [](ExecObjObject& object) -> Outcome {
    Outcome sent = object.enqueue(nullptr, nullptr);
    if (sent.code() != QS_SUCCESS) return sent;
    // 0 us: without a limit.
    return object.wait(0);
  });
}

QAIC_EXPORT QStatus qaicCreateQueue(QAicContext* context, QAicQueue** queue,
                                    const QAicQueueProperties* properties, QID device) {
  return guard(__func__, [&]() -> Outcome {
    if (queue == nullptr) return outcome(QS_INVAL, "queue is null");
    CORELANE_ASSIGN(const auto owner, find<ContextObject>(context));
    std::shared_ptr<QueueObject> made;
    Outcome created = create_queue(owner, properties, device, made);
    if (created.code() != QS_SUCCESS) {
      owner->report(QAIC_ERROR_QUEUE_CREATION, created.status());
      return created;
    }
    *queue = publish(std::move(made));
    return {};
  });
}

QAIC_EXPORT QStatus qaicReleaseQueue(QAicQueue* queue) {
  // What was enqueued goes on: each inference holds its turn itself.
  return release<QueueObject>(__func__, queue, [](const QueueObject&) -> Outcome { return {}; });
}

QAIC_EXPORT QStatus qaicEnqueueExecObj(QAicQueue* queue, QAicExecObj* execObj, QAicEvent* event) {
  return on<QueueObject>(__func__, queue, [&](QueueObject& object) -> Outcome {
    CORELANE_ASSIGN(const auto exec, find<ExecObjObject>(execObj));
    CORELANE_ASSIGN(const auto signalled, event_of(event));
    return exec->enqueue(&object, signalled);
  });
}

QAIC_EXPORT QStatus qaicCreateEvent(QAicContext* context, QAicEvent** event,
                                    QAicEventCompletionType type) {
  return guard(__func__, [&]() -> Outcome {
    if (event == nullptr) return outcome(QS_INVAL, "event is null");
    CORELANE_ASSIGN(const auto owner, find<ContextObject>(context));
    auto made = create_event(owner, type);
    if (!made) {
      owner->report(QIAC_ERROR_EVENT_CREATION, made.error());
      return made.error();
    }
    const auto object = *std::move(made);
    *event = publish(object);
    // In time: no inference has the event before this function returns.
    object->set_handle(*event);
    return {};
  });
}

QAIC_EXPORT QStatus qaicEventClear(QAicEvent* event) {
  return on<EventObject>(__func__, event,
                         [](EventObject& object) -> Outcome { return object.clear(); });
}

QAIC_EXPORT QStatus qaicEventAddCallback(QAicEvent* event, QAicEventCallback callback,
                                         void* userData) {
  return on<EventObject>(__func__, event, [&](EventObject& object) -> Outcome {
    if (callback == nullptr) return outcome(QS_INVAL, "callback is null");
    object.add_callback(callback, userData);
    return {};
  });
}

QAIC_EXPORT QStatus qaicEventRemoveCallback(QAicEvent* event, QAicEventCallback callback) {
  return on<EventObject>(__func__, event, [&](EventObject& object) -> Outcome {
    return object.remove_callback(callback);
  });
}

QAIC_EXPORT QStatus qaicWaitforEvent(QAicEvent* event) {
  return on<EventObject>(__func__, event,
                         [](EventObject& object) -> Outcome { return object.wait(); });
}

QAIC_EXPORT QStatus qaicReleaseEvent(QAicEvent* event) {
  return release<EventObject>(__func__, event, [](EventObject& object) -> Outcome {
    object.close();
    return {};
  });
}

QAIC_EXPORT QStatus qaicReleaseConstants(QAicConstants* constants) {
  return guard(__func__, [&]() -> Outcome {
    return outcome(QS_INVAL, "{} are not constants of this library, which gives none out",
                   static_cast<const void*>(constants));
  });
}
