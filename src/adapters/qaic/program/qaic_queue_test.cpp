// Queues and events by the C functions: order, room, callbacks.
#include <array>
#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

#include "adapters/qaic/testing/qaic_bench.h"

namespace corelane::qaic::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// N execution objects of one program.
template <std::size_t N>
struct Many : Bench {
  explicit Many(const std::string& on, std::uint32_t timeout_ms = 0, std::uint32_t retries = 5)
      : Bench(on), net(program(timeout_ms, retries)) {
    for (std::size_t i = 0; i < N; ++i) {
      objects[i] = exec(net);
      EXPECT_EQ(tensors[i].give(objects[i]), QS_SUCCESS) << text();
    }
  }
  ~Many() {
    for (QAicExecObj* one : objects) static_cast<void>(qaicReleaseExecObj(one));
    static_cast<void>(qaicReleaseProgram(net));
    clock->run_all();
  }
  QStatus outcome(std::size_t i) const { return qaicExecObjWaitForCompletion(objects[i], 0); }
  std::array<Tensors, N> tensors;
  QAicProgram* net;
  std::array<QAicExecObj*, N> objects{};
};

TEST(QaicQueue, PropertiesAreChecked) {
  const Bench bench;
  QAicQueue* queue = nullptr;
  const auto create = [&](std::uint32_t bits, std::uint32_t threads, QID device = 0) {
    QAicQueueProperties properties;
    properties.properties = bits;
    properties.numThreadsPerQueue = threads;
    return qaicCreateQueue(bench.context, &queue, &properties, device);
  };
  EXPECT_EQ(create(2, 4), QS_INVAL);
  EXPECT_EQ(create(1, 0), QS_INVAL);
  EXPECT_EQ(create(1, 1025), QS_INVAL);
  EXPECT_EQ(create(1, 4, 3), QS_NODEV);
  EXPECT_EQ(bench.errors(), std::vector<int>(4, QAIC_ERROR_QUEUE_CREATION));
  EXPECT_EQ(create(0, 1024), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
  EXPECT_EQ(qaicCreateQueue(bench.context, &queue, nullptr, 0), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

/// A program of 4 cores could run as many; the queue lets one run.
TEST(QaicQueue, ASingleThreadedOneRunsOneAtATimeInOrder) {
  const Many<3> many("null:generic:4?a=1ms&b=0ns");
  QAicProgram* others[2] = {many.program(), many.program()};
  QAicExecObj* objects[3] = {many.objects[0], many.exec(others[0]), many.exec(others[1])};
  QAicQueue* queue = many.queue(QAIC_QUEUE_PROPERTIES_ENABLE_SINGLE_THREADED_QUEUES);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(many.tensors[i].give(objects[i]), QS_SUCCESS);
    ASSERT_EQ(qaicEnqueueExecObj(queue, objects[i], nullptr), QS_SUCCESS) << text();
  }
  for (std::size_t ended = 1; ended <= 3; ++ended) {
    many.advance(milliseconds(1) - nanoseconds(1));
    EXPECT_EQ(many.tensors[ended - 1].give(objects[ended - 1]), QS_BUSY) << ended;
    many.advance(nanoseconds(1));
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(many.tensors[i].give(objects[i]), i < ended ? QS_SUCCESS : QS_BUSY) << ended;
  }
  for (QAicExecObj* one : {objects[1], objects[2]}) EXPECT_EQ(qaicReleaseExecObj(one), QS_SUCCESS);
  for (QAicProgram* one : others) EXPECT_EQ(qaicReleaseProgram(one), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

/// A fence is nothing to wait for once it is signalled: the second one was refused.
TEST(QaicQueue, ASingleThreadedOneTakesInputsThatAreNotAligned) {
  const Many<2> many("null:generic:4?a=1ms");
  QAicQueue* queue = many.queue(QAIC_QUEUE_PROPERTIES_ENABLE_SINGLE_THREADED_QUEUES);
  std::vector<std::uint8_t> raw(17);
  std::vector<QBuffer> buffers = many.tensors[0].buffers;
  buffers[0].buf = raw.data() + 1;
  const auto write = [&](const std::vector<float>& x) {
    std::memcpy(raw.data() + 1, x.data(), 16);
  };
  ASSERT_EQ(qaicExecObjSetData(many.objects[0], 2, buffers.data()), QS_SUCCESS) << text();
  for (const float first : {5.F, 6.F}) {
    write({first, 2, 3, 4});
    ASSERT_EQ(qaicEnqueueExecObj(queue, many.objects[0], nullptr), QS_SUCCESS) << text();
    many.advance(milliseconds(1));
    ASSERT_EQ(many.outcome(0), QS_SUCCESS);
    EXPECT_THAT(many.tensors[0].values[1], ElementsAre(first, 2, 3, 4));
  }
  // After one that runs.
  ASSERT_EQ(qaicEnqueueExecObj(queue, many.objects[1], nullptr), QS_SUCCESS);
  ASSERT_EQ(qaicEnqueueExecObj(queue, many.objects[0], nullptr), QS_SUCCESS) << text();
  write({7, 2, 3, 4});
  many.advance(milliseconds(2));
  ASSERT_EQ(many.outcome(0), QS_SUCCESS);
  EXPECT_THAT(many.tensors[0].values[1], ElementsAre(7, 2, 3, 4)) << "read when its turn came";
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

/// "ids", "cache" (partial) -> "logits", "kept": two objects of which the first writes what the
/// second reads.
struct Following : Bench {
  explicit Following(const std::string& on = "null:generic:4?a=1ms")
      : Bench(on, nullptr, true, with_cache(), cache_options({4})),
        net(program(10, 0)),
        sender(queue(QAIC_QUEUE_PROPERTIES_ENABLE_SINGLE_THREADED_QUEUES)) {
    for (QAicExecObj*& one : objects) one = exec(net);
    first.values[1] = {5, 6, 7, 8};
    EXPECT_EQ(first.give(objects[0]), QS_SUCCESS) << text();
  }
  ~Following() {
    for (QAicExecObj* one : objects) static_cast<void>(qaicReleaseExecObj(one));
    static_cast<void>(qaicReleaseProgram(net));
    static_cast<void>(qaicReleaseQueue(sender));
    clock->run_all();
  }
  /// The second one's cache, and the size of it.
  QStatus give(QBuffer cache) {
    std::vector<QBuffer> buffers = second.buffers;
    buffers[1] = cache;
    return qaicExecObjSetData(objects[1], 4, buffers.data());
  }
  QStatus enqueue(std::size_t i) const { return qaicEnqueueExecObj(sender, objects[i], nullptr); }
  QStatus outcome(std::size_t i) const { return qaicExecObjWaitForCompletion(objects[i], 0); }

  QAicProgram* net;
  QAicQueue* sender;
  QAicExecObj* objects[2] = {};
  Tensors first{4}, second{4};
};

TEST(QaicQueue, APartialInputIsReadWhenItsTurnComes) {
  Following f;
  const std::vector<float>& kept = f.second.values[3];
  QBuffer cache = whole(f.first.values[3]);
  ASSERT_EQ(f.give(cache), QS_SUCCESS) << text();
  ASSERT_EQ(f.enqueue(0), QS_SUCCESS);
  ASSERT_EQ(f.enqueue(1), QS_SUCCESS) << text();
  f.advance(milliseconds(2));
  ASSERT_EQ(f.outcome(1), QS_SUCCESS);
  EXPECT_THAT(kept, ElementsAre(5, 6, 7, 8)) << "as the first one wrote it";
  // A part of it: the rest stays what it was, also where nobody is before it.
  cache.size = 8;
  ASSERT_EQ(f.give(cache), QS_SUCCESS) << text();
  f.first.values[1] = {1, 2, 3, 4};
  ASSERT_EQ(f.enqueue(0), QS_SUCCESS);
  ASSERT_EQ(f.enqueue(1), QS_SUCCESS) << text();
  f.advance(milliseconds(2));
  ASSERT_EQ(f.outcome(1), QS_SUCCESS);
  EXPECT_THAT(kept, ElementsAre(1, 2, 7, 8));
  f.first.values[3] = {9, 9, 9, 9};
  ASSERT_EQ(f.enqueue(1), QS_SUCCESS) << text();
  f.advance(milliseconds(1));
  ASSERT_EQ(f.outcome(1), QS_SUCCESS);
  EXPECT_THAT(kept, ElementsAre(9, 9, 7, 8));
  // Left out after that, all stays.
  ASSERT_EQ(f.enqueue(0), QS_SUCCESS);
  ASSERT_EQ(f.enqueue(1), QS_SUCCESS);
  f.advance(milliseconds(2));
  EXPECT_THAT(kept, ElementsAre(1, 2, 7, 8));
  ASSERT_EQ(f.give({}), QS_SUCCESS) << text();
  ASSERT_EQ(f.enqueue(1), QS_SUCCESS);
  f.advance(milliseconds(1));
  ASSERT_EQ(f.outcome(1), QS_SUCCESS);
  EXPECT_THAT(kept, ElementsAre(1, 2, 7, 8));
}

/// Its user may take the memory back then.
TEST(QaicQueue, AnInferenceThatEndsBeforeItsTurnReadsNothingAfterwards) {
  Following f("null:generic:4?a=15ms");
  auto cache = std::make_unique<std::vector<float>>(4, 3.F);
  ASSERT_EQ(f.give(whole(*cache)), QS_SUCCESS) << text();
  QAicProgram* const patient = f.program(100, 0);
  QAicExecObj* const slow = f.exec(patient);
  ASSERT_EQ(f.first.give(slow), QS_SUCCESS);
  ASSERT_EQ(qaicEnqueueExecObj(f.sender, slow, nullptr), QS_SUCCESS) << text();
  ASSERT_EQ(f.enqueue(1), QS_SUCCESS) << text();
  f.advance(milliseconds(10));
  EXPECT_EQ(f.outcome(1), QS_TIMEDOUT);
  cache.reset();
  f.advance(milliseconds(5));
  EXPECT_EQ(qaicExecObjWaitForCompletion(slow, 0), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseExecObj(slow), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(patient), QS_SUCCESS);
}

TEST(QaicQueue, AFailureInASingleThreadedOneIsNotThatOfTheNext) {
  const Many<3> many("null:generic:1?a=1ms&fail=2");
  QAicQueue* queue = many.queue(QAIC_QUEUE_PROPERTIES_ENABLE_SINGLE_THREADED_QUEUES);
  for (QAicExecObj* one : many.objects)
    ASSERT_EQ(qaicEnqueueExecObj(queue, one, nullptr), QS_SUCCESS);
  many.advance(milliseconds(3));
  EXPECT_EQ(many.outcome(0), QS_SUCCESS);
  EXPECT_EQ(many.outcome(1), QS_ERROR);
  EXPECT_EQ(many.outcome(2), QS_SUCCESS);
  EXPECT_THAT(many.errors(), ElementsAre(QIAC_ERROR_EXECOBJ_RUNTIME));
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

TEST(QaicQueue, OneOfAnotherDeviceIsRefused) {
  const Bench first;
  QAicProgram* net = first.program();
  QAicExecObj* exec = first.exec(net);
  const Tensors tensors;
  ASSERT_EQ(tensors.give(exec), QS_SUCCESS);
  {
    const Bench second;
    QAicQueue* queue = second.queue();
    EXPECT_EQ(qaicEnqueueExecObj(queue, exec, nullptr), QS_INVAL);
    EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
  }
  EXPECT_EQ(qaicReleaseExecObj(exec), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(net), QS_SUCCESS);
}

// --- A device that takes one waiting job.

TEST(QaicQueue, AFullDeviceIsWaitedForAsLongAsTheTriesTake) {
  const Many<3> many("null:generic:1?a=10s&depth=1");
  QAicQueue* queue = many.queue();
  ASSERT_EQ(qaicEnqueueExecObj(queue, many.objects[0], nullptr), QS_SUCCESS);
  ASSERT_EQ(qaicEnqueueExecObj(queue, many.objects[1], nullptr), QS_SUCCESS);
  auto third = std::async(std::launch::async,
                          [&] { return qaicEnqueueExecObj(queue, many.objects[2], nullptr); });
  many.clock->await(1);
  many.advance(milliseconds(6375) - nanoseconds(1));
  many.clock->await(1);
  many.advance(nanoseconds(1));
  EXPECT_EQ(third.get(), QS_BUSY);
  EXPECT_THAT(many.errors(), ElementsAre(QAIC_ERROR_QUEUE_RUNTIME));
  EXPECT_EQ(many.tensors[2].give(many.objects[2]), QS_SUCCESS) << "nothing of it was enqueued";
  many.advance(milliseconds(20000));
  EXPECT_EQ(many.outcome(0), QS_SUCCESS);
  EXPECT_EQ(many.outcome(1), QS_SUCCESS);
  EXPECT_EQ(many.outcome(2), QS_INVAL);
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

TEST(QaicQueue, ReleasingAnObjectEndsItsWaitForRoom) {
  Many<3> many("null:generic:1?a=10s&depth=1");
  QAicQueue* queue = many.queue();
  ASSERT_EQ(qaicEnqueueExecObj(queue, many.objects[0], nullptr), QS_SUCCESS);
  ASSERT_EQ(qaicEnqueueExecObj(queue, many.objects[1], nullptr), QS_SUCCESS);
  auto third = std::async(std::launch::async,
                          [&] { return qaicEnqueueExecObj(queue, many.objects[2], nullptr); });
  many.clock->await(1);
  EXPECT_EQ(qaicReleaseExecObj(std::exchange(many.objects[2], nullptr)), QS_SUCCESS);
  many.advance(milliseconds(50));
  EXPECT_EQ(third.get(), QS_ERROR);
  EXPECT_THAT(many.errors(), IsEmpty());
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

TEST(QaicQueue, AFullDeviceTakesMoreOnceOneHasStarted) {
  const Many<3> many("null:generic:1?a=1s&depth=1");
  QAicQueue* queue = many.queue();
  ASSERT_EQ(qaicEnqueueExecObj(queue, many.objects[0], nullptr), QS_SUCCESS);
  ASSERT_EQ(qaicEnqueueExecObj(queue, many.objects[1], nullptr), QS_SUCCESS);
  auto third = std::async(std::launch::async,
                          [&] { return qaicEnqueueExecObj(queue, many.objects[2], nullptr); });
  many.clock->await(1);
  many.advance(milliseconds(1000));
  EXPECT_EQ(third.get(), QS_SUCCESS);
  many.advance(milliseconds(2000));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(many.outcome(i), QS_SUCCESS);
  EXPECT_THAT(many.errors(), IsEmpty());
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

// --- Events.

struct Heard {
  std::atomic<int> calls{0};
  QAicEvent* event = nullptr;
  std::function<void()> then;
  static void call(QAicEvent* event, QAicEventCompletionType type, void* self) {
    auto& heard = *static_cast<Heard*>(self);
    EXPECT_EQ(type, QAIC_EVENT_DEVICE_COMPLETE);
    heard.event = event;
    ++heard.calls;
    if (heard.then) heard.then();
  }
};

TEST(QaicEvent, IsSignalledByEachInferenceInARow) {
  const Many<2> many("null:generic:2?a=1ms&fail=3");
  QAicQueue* queue = many.queue();
  QAicEvent* event = many.event();
  Heard heard;
  EXPECT_EQ(qaicEventRemoveCallback(event, &Heard::call), QS_INVAL) << "before the first add";
  ASSERT_EQ(qaicEventAddCallback(event, &Heard::call, &heard), QS_SUCCESS);
  EXPECT_EQ(qaicWaitforEvent(event), QS_INVAL) << "nothing would signal it";
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(qaicEnqueueExecObj(queue, many.objects[0], event), QS_SUCCESS);
    EXPECT_EQ(qaicEventClear(event), QS_BUSY);
    many.advance(milliseconds(1));
    EXPECT_EQ(qaicWaitforEvent(event), i == 2 ? QS_ERROR : QS_SUCCESS);
    EXPECT_EQ(qaicWaitforEvent(event), i == 2 ? QS_ERROR : QS_SUCCESS) << "it stays signalled";
    EXPECT_EQ(heard.calls, i + 1);
    EXPECT_EQ(heard.event, event);
    if (i == 0) EXPECT_EQ(qaicEventClear(event), QS_SUCCESS);
    if (i == 0) EXPECT_EQ(qaicWaitforEvent(event), QS_INVAL);
  }
  // Two at once: it is signalled when both have ended.
  for (QAicExecObj* one : many.objects)
    ASSERT_EQ(qaicEnqueueExecObj(queue, one, event), QS_SUCCESS);
  auto waits = std::async(std::launch::async, [&] { return qaicWaitforEvent(event); });
  many.advance(milliseconds(2));
  EXPECT_EQ(waits.get(), QS_SUCCESS);
  EXPECT_EQ(heard.calls, 5);
  ASSERT_EQ(qaicEventRemoveCallback(event, &Heard::call), QS_SUCCESS);
  EXPECT_EQ(qaicEventRemoveCallback(event, &Heard::call), QS_INVAL);
  EXPECT_EQ(qaicReleaseEvent(event), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

TEST(QaicEvent, ACallbackMayCallAnyFunction) {
  const Many<1> many("null:generic:2?a=1ms");
  QAicQueue* queue = many.queue();
  QAicEvent* event = many.event();
  Heard heard;
  heard.then = [&] {
    EXPECT_EQ(many.outcome(0), QS_SUCCESS);
    EXPECT_EQ(many.tensors[0].give(many.objects[0]), QS_SUCCESS);
    if (heard.calls < 4) EXPECT_EQ(qaicEnqueueExecObj(queue, many.objects[0], event), QS_SUCCESS);
    if (heard.calls == 4) {
      EXPECT_EQ(qaicEventRemoveCallback(event, &Heard::call), QS_SUCCESS);
      EXPECT_EQ(qaicReleaseEvent(event), QS_SUCCESS);
    }
  };
  ASSERT_EQ(qaicEventAddCallback(event, &Heard::call, &heard), QS_SUCCESS);
  ASSERT_EQ(qaicEnqueueExecObj(queue, many.objects[0], event), QS_SUCCESS);
  many.advance(milliseconds(10));
  EXPECT_EQ(heard.calls, 4);
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

TEST(QaicEvent, WhatACallbackThrowsIsReportedOnce) {
  const Many<1> many("null:generic:2?a=1ms");
  QAicQueue* queue = many.queue();
  QAicEvent* event = many.event();
  Heard heard;
  heard.then = [] { throw std::runtime_error("thrown by a test"); };
  ASSERT_EQ(qaicEventAddCallback(event, &Heard::call, &heard), QS_SUCCESS);
  ASSERT_EQ(qaicEnqueueExecObj(queue, many.objects[0], event), QS_SUCCESS);
  many.advance(milliseconds(1));
  EXPECT_EQ(qaicWaitforEvent(event), QS_SUCCESS);
  EXPECT_THAT(many.errors(), ElementsAre(QIAC_ERROR_EVENT_RUNTIME));
  EXPECT_EQ(qaicReleaseEvent(event), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

/// Real time: nobody else moves it while a callback waits.
struct RealMany : Bench {
  explicit RealMany(const std::string& on = "null:generic:4?a=1ms")
      : Bench(on, nullptr, false), net(program()) {
    for (std::size_t i = 0; i < 2; ++i) {
      objects[i] = exec(net);
      EXPECT_EQ(tensors[i].give(objects[i]), QS_SUCCESS) << text();
    }
  }
  ~RealMany() {
    for (QAicExecObj* one : objects) static_cast<void>(qaicReleaseExecObj(one));
    static_cast<void>(qaicReleaseProgram(net));
  }
  QStatus outcome(std::size_t i) const { return qaicExecObjWaitForCompletion(objects[i], 0); }
  std::array<Tensors, 2> tensors;
  QAicProgram* net;
  std::array<QAicExecObj*, 2> objects{};
};

/// It waited for itself: the thread that ends inferences called it.
TEST(QaicEvent, ACallbackMayRunAnotherInference) {
  RealMany many;
  QAicQueue* queue = many.queue();
  QAicEvent* event = many.event();
  std::promise<QStatus> ran;
  Heard heard;
  heard.then = [&] { ran.set_value(qaicRunExecObj(many.objects[1])); };
  ASSERT_EQ(qaicEventAddCallback(event, &Heard::call, &heard), QS_SUCCESS);
  ASSERT_EQ(qaicEnqueueExecObj(queue, many.objects[0], event), QS_SUCCESS);
  EXPECT_EQ(ran.get_future().get(), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseEvent(event), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

/// Where the inference had ended before enqueue() returned, the object was "used by another
/// thread".
TEST(QaicEvent, ACallbackMayEnqueueItsOwnObjectAgain) {
  constexpr int kTimes = 300;
  RealMany many;
  QAicQueue* queue = many.queue();
  QAicEvent* event = many.event();
  std::promise<void> all;
  Heard heard;
  heard.then = [&] {
    EXPECT_EQ(heard.calls < kTimes ? qaicEnqueueExecObj(queue, many.objects[0], event) : QS_SUCCESS,
              QS_SUCCESS)
        << text();
    if (heard.calls == kTimes) all.set_value();
  };
  ASSERT_EQ(qaicEventAddCallback(event, &Heard::call, &heard), QS_SUCCESS);
  ASSERT_EQ(qaicEnqueueExecObj(queue, many.objects[0], event), QS_SUCCESS);
  all.get_future().get();
  EXPECT_EQ(qaicReleaseEvent(event), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

TEST(QaicEvent, ACallbackThatIsRemovedHasEnded) {
  RealMany many;
  QAicQueue* queue = many.queue();
  for (const bool release : {false, true}) {
    QAicEvent* event = many.event();
    std::promise<void> begun;
    std::promise<void> go;
    std::atomic<bool> ended{false};
    Heard heard;
    heard.then = [&] {
      begun.set_value();
      go.get_future().wait();
      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
      ended = true;
    };
    ASSERT_EQ(qaicEventAddCallback(event, &Heard::call, &heard), QS_SUCCESS);
    ASSERT_EQ(qaicEnqueueExecObj(queue, many.objects[0], event), QS_SUCCESS);
    begun.get_future().wait();
    EXPECT_EQ(qaicWaitforEvent(event), QS_SUCCESS) << "callbacks do not hold it up";
    auto removal = std::async(std::launch::async, [&] {
      const QStatus status =
          release ? qaicReleaseEvent(event) : qaicEventRemoveCallback(event, &Heard::call);
      EXPECT_TRUE(ended);
      return status;
    });
    go.set_value();
    EXPECT_EQ(removal.get(), QS_SUCCESS);
    EXPECT_EQ(heard.calls, 1);
    if (!release) EXPECT_EQ(qaicReleaseEvent(event), QS_SUCCESS);
    EXPECT_EQ(many.outcome(0), QS_SUCCESS);
  }
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

TEST(QaicEvent, OfAnEventThatIsReleasedInFlightNoCallbackIsCalled) {
  const Many<1> many("null:generic:2?a=1ms");
  QAicQueue* queue = many.queue();
  QAicEvent* event = many.event();
  Heard heard;
  ASSERT_EQ(qaicEventAddCallback(event, &Heard::call, &heard), QS_SUCCESS);
  ASSERT_EQ(qaicEnqueueExecObj(queue, many.objects[0], event), QS_SUCCESS);
  ASSERT_EQ(qaicReleaseEvent(event), QS_SUCCESS);
  many.advance(milliseconds(1));
  EXPECT_EQ(many.outcome(0), QS_SUCCESS);
  EXPECT_EQ(heard.calls, 0);
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

/// A slow one delayed what other contexts waited for.
TEST(QaicEvent, AnErrorHandlerThatWaitsHoldsUpItsOwnContextAlone) {
  struct Handler {
    std::promise<void> begun;
    std::promise<void> go;
    static void call(QAicContextID, const char*, QAicErrorType, const void*, std::size_t,
                     void* self) {
      static_cast<Handler*>(self)->begun.set_value();
      static_cast<Handler*>(self)->go.get_future().wait();
    }
  } handler;
  RealMany many("null:generic:4?a=1ms&fail=1");
  const QID number = 0;
  QAicContext* other = nullptr;
  ASSERT_EQ(
      qaicCreateContext(&other, nullptr, 1, &number, nullptr, nullptr, &Handler::call, &handler),
      QS_SUCCESS);
  QAicProgram* net = nullptr;
  ASSERT_EQ(qaicCreateProgram(other, &net, nullptr, 0, "net", many.qpc), QS_SUCCESS);
  QAicExecObj* object = nullptr;
  ASSERT_EQ(qaicCreateExecObj(other, &object, nullptr, net, nullptr, nullptr, nullptr), QS_SUCCESS);
  const Tensors tensors;
  ASSERT_EQ(tensors.give(object), QS_SUCCESS);
  EXPECT_EQ(qaicRunExecObj(object), QS_ERROR);
  handler.begun.get_future().wait();
  EXPECT_EQ(qaicRunExecObj(many.objects[0]), QS_ERROR) << "it fails, too, and ends";
  handler.go.set_value();
  EXPECT_EQ(qaicReleaseExecObj(object), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(net), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseContext(other), QS_SUCCESS);
}

TEST(QaicEvent, OtherTypesAreRefused) {
  const Bench bench;
  QAicEvent* event = nullptr;
  EXPECT_EQ(qaicCreateEvent(bench.context, &event, static_cast<QAicEventCompletionType>(1)),
            QS_INVAL);
  EXPECT_EQ(event, nullptr);
  EXPECT_THAT(bench.errors(), ElementsAre(QIAC_ERROR_EVENT_CREATION));
}

}  // namespace
}  // namespace corelane::qaic::test
