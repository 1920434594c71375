/// A benchmark's harness over the C functions, in C++: context with 8 arguments and with the old 7,
/// zero-copy buffers, events with callbacks. Linked to libQAic.so, as such programs are.
#include <condition_variable>
#include <mutex>

#include "QAicApi.h"
#include "client_support.h"

namespace {

void log_line(QLogLevel, const char*) {}
void log_with_data(QLogLevel, const char*, void*) {}
void on_error(QAicContextID, const char* text, QAicErrorType, const void*, size_t, void*) {
  std::fprintf(stderr, "%s\n", text);
}

struct Sample {
  std::mutex mutex;
  std::condition_variable changed;
  int completed = 0;
};

void on_complete(QAicEvent*, QAicEventCompletionType type, void* user) {
  client::need(type == QAIC_EVENT_DEVICE_COMPLETE, "the kind of the event");
  auto* sample = static_cast<Sample*>(user);
  const std::lock_guard<std::mutex> lock(sample->mutex);
  ++sample->completed;
  sample->changed.notify_all();
}

/// Every way to make a context that such programs write.
QAicContext* make_context() {
  QAicContextProperties_t properties = QAIC_CONTEXT_DEFAULT;
  QID device = 0;
  QAicContext* context = nullptr;
  const auto again = [&](QStatus status) {
    client::need(status, "qaicCreateContext");
    client::need(qaicReleaseContext(context), "qaicReleaseContext");
  };
  again(qaicCreateContext(&context, &properties, 1, &device, nullptr, nullptr, nullptr, nullptr));
  again(qaicCreateContext(&context, &properties, 1, &device, log_with_data, nullptr, on_error,
                          nullptr));
  again(qaicCreateContext(&context, &properties, 1, &device, nullptr, nullptr, nullptr));
  again(qaicCreateContext(&context, &properties, 1, &device, log_line, on_error, nullptr));
  client::need(
      qaicCreateContext(&context, &properties, 1, &device, log_line, nullptr, on_error, nullptr),
      "qaicCreateContext");
  return context;
}

struct Run {
  QAicContext* context = nullptr;
  QAicProgram* program = nullptr;
  QAicQueue* queue = nullptr;
  QAicIoBufferInfo_t* info = nullptr;
};

/// One inference in buffers of the execution object.
void infer(const Run& run, const std::string& folder, const std::string& results, unsigned n) {
  QAicExecObj* object = nullptr;
  QAicExecObjProperties_t properties =
      QAIC_EXECOBJ_PROPERTIES_AUTO_LOAD_ACTIVATE | QAIC_EXECOBJ_PROPERTIES_ZERO_COPY_BUFFERS;
  client::need(
      qaicCreateExecObj(run.context, &object, &properties, run.program, nullptr, nullptr, nullptr),
      "qaicCreateExecObj");
  uint32_t count = 0;
  QBuffer* buffers = nullptr;
  client::need(qaicGetFunctionTable()->qaicExecObjGetIoBuffers(object, &count, &buffers),
               "qaicExecObjGetIoBuffers");
  client::need(count == run.info->numBufferMappings, "the number of buffers");
  size_t inputs = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (run.info->bufferMappings[i].ioType != BUFFER_IO_TYPE_INPUT) continue;
    const auto bytes = client::read_file(client::input_file(folder, n, inputs++));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(buffers[i].buf));
  }
  QAicEvent* event = nullptr;
  client::need(qaicCreateEvent(run.context, &event, QAIC_EVENT_DEVICE_COMPLETE), "qaicCreateEvent");
  Sample sample;
  client::need(qaicEventClear(event), "qaicEventClear");
  qaicEventRemoveCallback(event, on_complete);  // Such programs do so before the first add.
  client::need(qaicEventAddCallback(event, on_complete, &sample), "qaicEventAddCallback");
  client::need(qaicEnqueueExecObj(run.queue, object, event), "qaicEnqueueExecObj");
  client::need(qaicWaitforEvent(event), "qaicWaitforEvent");
  client::need(qaicExecObjWaitForCompletion(object, 60000000), "qaicExecObjWaitForCompletion");
  {
    std::unique_lock<std::mutex> lock(sample.mutex);
    sample.changed.wait(lock, [&] { return sample.completed == 1; });
  }
  for (uint32_t i = static_cast<uint32_t>(inputs); i < count; ++i)
    client::write_output(results, n, i - inputs, buffers[i].buf, buffers[i].size);
  client::need(qaicEventRemoveCallback(event, on_complete), "qaicEventRemoveCallback");
  client::need(qaicReleaseEvent(event), "qaicReleaseEvent");
  client::need(qaicReleaseExecObj(object), "qaicReleaseExecObj");
}

}  // namespace

int main(int, char** argv) {
  const std::string folder = argv[1];
  Run run;
  run.context = make_context();
  QDevInfo device;
  client::need(qaicGetDeviceInfo(0, &device), "qaicGetDeviceInfo");
  client::need(device.devStatus == QDS_READY, "the device is ready");
  client::need(qaicCreateQueue(run.context, &run.queue, nullptr, 0), "qaicCreateQueue");
  QAicQpcObj* qpc = nullptr;
  client::need(qaicOpenQpcFile(&qpc, (folder + "/programqpc.bin").c_str()), "qaicOpenQpcFile");
  const QAicQpcInfo_t* info = nullptr;
  client::need(qaicQpcGetInfo(qpc, &info), "qaicQpcGetInfo");
  QResourceInfo resources;
  client::need(qaicGetResourceInfo(0, &resources), "qaicGetResourceInfo");
  client::need(info->numPrograms == 1 && info->programInfo[0].numCores <= resources.nspFree,
               "cores are free");
  QAicProgramProperties_t properties;
  client::need(qaicProgramPropertiesInitDefault(&properties), "qaicProgramPropertiesInitDefault");
  properties.SubmitRetryTimeoutMs = 900000;
  client::need(qaicCreateProgram(run.context, &run.program, &properties, 0, "harness", qpc),
               "qaicCreateProgram");
  client::need(qaicLoadProgram(run.program), "qaicLoadProgram");
  client::need(qaicRunActivationCmd(run.program, QAIC_PROGRAM_CMD_ACTIVATE_FULL), "activate");
  client::need(qaicProgramGetIoBufferInfo(run.program, &run.info), "qaicProgramGetIoBufferInfo");
  for (unsigned n = 0; n < client::kInferences; ++n) infer(run, folder, argv[2], n);
  client::need(qaicRunActivationCmd(run.program, QAIC_PROGRAM_CMD_DEACTIVATE_FULL), "deactivate");
  client::need(qaicUnloadProgram(run.program), "qaicUnloadProgram");
  client::need(qaicReleaseProgram(run.program), "qaicReleaseProgram");
  client::need(qaicCloseQpc(qpc), "qaicCloseQpc");
  client::need(qaicReleaseQueue(run.queue), "qaicReleaseQueue");
  client::need(qaicReleaseContext(run.context), "qaicReleaseContext");
  return 0;
}
