#include <array>
#include <cstdlib>
#include <thread>

#include "corelane/runtime/program.h"
#include "failing_new.h"
#include "qaic_ours.h"
#include "round.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::allocation {
namespace {

constexpr int kThreads = 3;
constexpr int kCalls = 200;
constexpr std::uint32_t kNone = UINT32_MAX;

/// A context and a container on the device of the plan.
struct Objects {
  explicit Objects(const Plan& plan, Tally& tally) {
    setenv("CORELANE_QAIC_DEVICES", plan.device.c_str(), 1);
    setenv("CORELANE_LOG", "off", 1);
    const std::string model = testing::relu_model({std::int64_t{1}, std::int64_t{4}});
    const auto bytes = compile_bytes(as_byte_span(model), {});
    const QID number = 0;
    if (!bytes ||
        qaicCreateContext(&context, nullptr, 1, &number, nullptr, nullptr, nullptr, nullptr) !=
            QS_SUCCESS ||
        qaicOpenQpc(&qpc, reinterpret_cast<const std::uint8_t*>(bytes->data()), bytes->size(),
                    true) != QS_SUCCESS)
      ++tally.wrong;
  }
  ~Objects() {
    static_cast<void>(qaicCloseQpc(qpc));
    static_cast<void>(qaicReleaseContext(context));
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  QAicContext* context = nullptr;
  QAicQpcObj* qpc = nullptr;
};

/// Memory of one inference.
struct Tensors {
  std::array<float, 4> x{}, y{};
  std::array<QBuffer, 2> buffers{};
  Tensors() {
    buffers[0] = {sizeof x, reinterpret_cast<std::uint8_t*>(x.data())};
    buffers[1] = {sizeof y, reinterpret_cast<std::uint8_t*>(y.data())};
  }
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;
};

bool run(QAicQueue* queue, QAicExecObj* exec, QAicEvent* event, Tally& tally) {
  const QStatus sent = exposed([&] { return qaicEnqueueExecObj(queue, exec, event); });
  ++(sent == QS_SUCCESS ? tally.taken : tally.refused);
  if (sent != QS_SUCCESS) return false;
  const QStatus ended = exposed([&] { return qaicExecObjWaitForCompletion(exec, 0); });
  ++tally.answered;
  return ended == QS_SUCCESS;
}

void enqueue_all(QAicQueue* queue, QAicExecObj* exec, QAicEvent* event, Tensors& tensors,
                 Tally& tally) {
  const Shielded test;
  for (int i = 0; i < kCalls; ++i) {
    tensors.x.fill(static_cast<float>(i));
    const QStatus given =
        exposed([&] { return qaicExecObjSetData(exec, 2, tensors.buffers.data()); });
    if (given != QS_SUCCESS || !run(queue, exec, i % 2 == 0 ? event : nullptr, tally)) continue;
    tally.wrong += tensors.y != tensors.x;
  }
}

/// Submits while a handle is free; collects until each has come back.
struct SetClient {
  QAicInferenceSet* set;
  std::array<Tensors, 4>& tensors;
  Tally& tally;

  void submit(int i) const {
    std::uint32_t handle = kNone;
    const QStatus free =
        exposed([&] { return qaicInferenceSetGetAvailable(set, QAIC_WAIT_FOREVER, &handle); });
    if (free != QS_SUCCESS || handle == kNone) return;
    tensors[handle].x.fill(static_cast<float>(i));
    const QStatus sent =
        exposed([&] { return qaicInferenceSetSubmit(set, handle, static_cast<std::uint64_t>(i)); });
    ++(sent == QS_SUCCESS ? tally.taken : tally.refused);
    if (sent != QS_SUCCESS) put(handle);
  }
  /// Until it is back: a handle that is not put back is lost for the client.
  void put(std::uint32_t handle) const {
    for (int tries = 0; tries < 100; ++tries)
      if (exposed([&] { return qaicInferenceSetPutCompleted(set, handle); }) == QS_SUCCESS) return;
    ++tally.wrong;
  }
  void collect() const {
    std::uint32_t handle = kNone;
    const QStatus ended =
        exposed([&] { return qaicInferenceSetGetCompleted(set, 1'000, &handle); });
    if (handle == kNone) return;
    ++tally.answered;
    if (ended == QS_SUCCESS) tally.wrong += tensors[handle].y != tensors[handle].x;
    put(handle);
  }
};

}  // namespace

void exec_round(const Plan& plan, Tally& tally) {
  const Objects objects(plan, tally);
  QAicProgramProperties properties;
  QAicProgram* program = nullptr;
  QAicQueue* queue = nullptr;
  std::array<QAicExecObj*, kThreads> execs{};
  std::array<QAicEvent*, kThreads> events{};
  std::array<Tensors, kThreads> tensors;
  bool made = qaicCreateProgram(objects.context, &program, &properties, 0, "net", objects.qpc) ==
                  QS_SUCCESS &&
              qaicCreateQueue(objects.context, &queue, nullptr, 0) == QS_SUCCESS;
  for (int t = 0; t < kThreads && made; ++t)
    made = qaicCreateExecObj(objects.context, &execs[t], nullptr, program, nullptr, nullptr,
                             nullptr) == QS_SUCCESS &&
           qaicCreateEvent(objects.context, &events[t], QAIC_EVENT_DEVICE_COMPLETE) == QS_SUCCESS;
  if (!made) {
    ++tally.wrong;
    return;
  }
  begin_failing(plan.share, plan.seed);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] { enqueue_all(queue, execs[t], events[t], tensors[t], tally); });
  for (std::thread& thread : threads) thread.join();
  end_failing();
  for (int t = 0; t < kThreads; ++t) {
    tally.wrong += qaicExecObjSetData(execs[t], 2, tensors[t].buffers.data()) != QS_SUCCESS;
    tally.wrong += !run(queue, execs[t], nullptr, tally);
    tally.wrong += qaicReleaseExecObj(execs[t]) != QS_SUCCESS;
    tally.wrong += qaicReleaseEvent(events[t]) != QS_SUCCESS;
  }
  tally.wrong += qaicReleaseProgram(program) != QS_SUCCESS;
  tally.wrong += qaicReleaseQueue(queue) != QS_SUCCESS;
}

void set_round(const Plan& plan, Tally& tally) {
  const Objects objects(plan, tally);
  QAicProgramProperties properties;
  QAicInferenceSetConfig config;
  config.setSize = 2;
  config.numActivations = 2;
  config.programProperties = &properties;
  QAicInferenceSet* set = nullptr;
  if (qaicCreateInferenceSet(objects.context, &set, &config, objects.qpc) != QS_SUCCESS) {
    ++tally.wrong;
    return;
  }
  std::array<Tensors, 4> tensors;
  for (std::uint32_t i = 0; i < tensors.size(); ++i)
    tally.wrong +=
        qaicInferenceSetSetData(set, i, 2, tensors[i].buffers.data(), nullptr) != QS_SUCCESS;
  const SetClient client{set, tensors, tally};
  begin_failing(plan.share, plan.seed);
  std::atomic<bool> over{false};
  std::thread collector([&] {
    const Shielded test;
    while (!over || tally.answered < tally.taken) client.collect();
  });
  {
    const Shielded test;
    for (int i = 0; i < kThreads * kCalls; ++i) client.submit(i);
  }
  over = true;
  collector.join();
  end_failing();
  for (int i = 0; i < 4; ++i) {
    client.submit(i);
    while (tally.answered < tally.taken) client.collect();
  }
  tally.wrong += qaicReleaseInferenceSet(set) != QS_SUCCESS;
}

}  // namespace corelane::allocation
