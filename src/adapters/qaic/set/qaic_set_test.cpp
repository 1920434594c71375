// Inference sets by the C functions: statements 15 to 26 of the contract, times, ends.
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <numeric>
#include <thread>

#include "adapters/qaic/testing/qaic_bench.h"
#include "corelane/driver/forwarding_device.h"

namespace corelane::qaic::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A set, with buffers for each of its handles.
struct SetBench : Bench {
  SetBench(const std::string& on, std::uint32_t size, std::uint32_t activations = 1,
           std::uint32_t timeout_ms = 0, std::uint32_t retries = 5)
      : Bench(on), handles(size * activations), made(set(size, activations, timeout_ms, retries)) {
    for (std::uint32_t i = 0; i < handles; ++i) {
      tensors.push_back(std::make_unique<Tensors>());
      EXPECT_EQ(tensors[i]->give(made, i), QS_SUCCESS) << text();
    }
  }
  ~SetBench() {
    static_cast<void>(qaicReleaseInferenceSet(made));
    clock->run_all();
  }
  std::uint32_t take() const {
    std::uint32_t handle = kNone;
    EXPECT_EQ(qaicInferenceSetGetAvailable(made, 0, &handle), QS_SUCCESS) << text();
    return handle;
  }
  QStatus submit(std::uint32_t handle, std::uint64_t id) const {
    return qaicInferenceSetSubmit(made, handle, id);
  }
  QStatus collect(std::uint32_t& handle, std::uint64_t us = 0) const {
    return qaicInferenceSetGetCompleted(made, us, &handle);
  }
  QStatus collect_id(std::uint64_t id, std::uint32_t& handle, std::uint64_t us = 0) const {
    return qaicInferenceSetGetCompletedId(made, id, us, &handle);
  }
  QStatus put(std::uint32_t handle) const { return qaicInferenceSetPutCompleted(made, handle); }

  const std::uint32_t handles;
  QAicInferenceSet* made;
  std::vector<std::unique_ptr<Tensors>> tensors;
};

TEST(QaicSet, HasAHandleForEachActivationAndSize) {
  const SetBench bench("null:generic:4?a=1ms", 3, 4);
  std::vector<std::uint32_t> taken;
  for (int i = 0; i < 12; ++i) taken.push_back(bench.take());
  std::sort(taken.begin(), taken.end());
  std::vector<std::uint32_t> all(12);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(taken, all);
  std::uint32_t handle = 5;
  EXPECT_EQ(qaicInferenceSetGetAvailable(bench.made, 0, &handle), QS_TIMEDOUT) << "statement 16";
  EXPECT_EQ(bench.free_cores(), 0) << "each activation holds a core";
}

TEST(QaicSet, WhatTheDeviceCannotHoldIsRefused) {
  const Bench bench("null:generic:4");
  QAicInferenceSetConfig config;
  QAicInferenceSet* set = nullptr;
  const auto create = [&] {
    return qaicCreateInferenceSet(bench.context, &set, &config, bench.qpc);
  };
  config.device = 0;
  config.numActivations = 5;
  EXPECT_EQ(create(), QS_NOSPC);
  EXPECT_THAT(text(), HasSubstr("need 5 cores"));
  config.device = -1;
  EXPECT_EQ(create(), QS_NODEV);
  config = {};
  config.setSize = 0;
  EXPECT_EQ(create(), QS_INVAL);
  config = {};
  config.numActivations = 0;
  EXPECT_EQ(create(), QS_INVAL);
  config = {};
  config.programIndex = 1;
  EXPECT_EQ(create(), QS_INVAL);
  config = {};
  config.device = 7;
  EXPECT_EQ(create(), QS_NODEV);
  QAicProgramProperties properties;
  properties.devMapping = "0:1";
  config = {};
  config.programProperties = &properties;
  EXPECT_EQ(create(), QS_UNSUPPORTED) << "statement 26";
  QAicQueueProperties queue;
  queue.numThreadsPerQueue = 0;
  config = {};
  config.queueProperties = &queue;
  EXPECT_EQ(create(), QS_INVAL);
  EXPECT_EQ(set, nullptr);
  EXPECT_EQ(bench.free_cores(), 4);
  EXPECT_EQ(bench.errors(), std::vector<int>(8, QAIC_ERROR_PROGRAM_CREATION));
}

/// What an engine needs besides the program's own memory, only loading tells.
TEST(QaicSet, WithoutADeviceTheFirstThatTakesTheProgramIsTaken) {
  struct Full : device::ForwardingDevice {
    using ForwardingDevice::ForwardingDevice;
    Result<std::shared_ptr<device::Executable>> prepare(const device::Image&,
                                                        const device::PrepareOptions&) override {
      return error(Code::kOutOfMemory, "the device has no memory left");
    }
  };
  const Bench bench("null:generic:4");
  set_devices({std::make_shared<Full>(bench.device), bench.device});
  const QID numbers[] = {0, 1};
  QAicContext* both = nullptr;
  ASSERT_EQ(qaicCreateContext(&both, nullptr, 2, numbers, nullptr, nullptr, nullptr, nullptr),
            QS_SUCCESS);
  QAicInferenceSetConfig config;
  QAicInferenceSet* set = nullptr;
  config.device = 0;
  EXPECT_EQ(qaicCreateInferenceSet(both, &set, &config, bench.qpc), QS_NOMEM);
  config.device = -2;
  EXPECT_EQ(qaicCreateInferenceSet(both, &set, &config, bench.qpc), QS_NODEV) << "-1 alone is none";
  config.device = -1;
  ASSERT_EQ(qaicCreateInferenceSet(both, &set, &config, bench.qpc), QS_SUCCESS) << text();
  QAicProgramInfoV2 info;
  EXPECT_EQ(qaicInferenceSetGetProgramInfo(set, &info), QS_SUCCESS);
  EXPECT_EQ(info.qid[0], 1);
  EXPECT_EQ(qaicReleaseInferenceSet(set), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseContext(both), QS_SUCCESS);
}

TEST(QaicSet, EachInferenceHasTheResultOfItsOwnBuffers) {
  const SetBench bench("null:generic:4?a=1ms", 2, 2);
  for (std::uint64_t id = 0; id < 4; ++id) {
    const std::uint32_t handle = bench.take();
    bench.tensors[handle]->values[0][0] = static_cast<float>(id) + 100;
    ASSERT_EQ(bench.submit(handle, id), QS_SUCCESS) << text();
  }
  bench.advance(milliseconds(2));
  for (const std::uint64_t id : {2, 0, 3, 1}) {
    std::uint32_t handle = kNone;
    ASSERT_EQ(bench.collect_id(id, handle), QS_SUCCESS) << text();
    EXPECT_EQ(bench.tensors[handle]->values[1][0], static_cast<float>(id) + 100);
    EXPECT_EQ(bench.put(handle), QS_SUCCESS);
  }
  EXPECT_THAT(bench.errors(), IsEmpty());
}

/// It gave QS_BUSY at once; execution objects wait.
TEST(QaicSet, AFullDeviceIsWaitedForAsLongAsTheTriesTake) {
  const SetBench bench("null:generic:1?a=10s&depth=1", 3, 1, 60000, 0);
  ASSERT_EQ(bench.submit(0, 0), QS_SUCCESS);
  ASSERT_EQ(bench.submit(1, 1), QS_SUCCESS);
  const auto third = [&] {
    return std::async(std::launch::async, [&] { return bench.submit(2, 2); });
  };
  auto refused = third();
  bench.clock->await(1);
  bench.advance(milliseconds(6375) - nanoseconds(1));
  bench.clock->await(1);
  bench.advance(nanoseconds(1));
  EXPECT_EQ(refused.get(), QS_BUSY);
  EXPECT_EQ(bench.errors(), std::vector<int>{QAIC_ERROR_QUEUE_RUNTIME}) << "as of an object";
  auto taken = third();
  bench.clock->await(1);
  bench.advance(milliseconds(3625));
  EXPECT_EQ(taken.get(), QS_SUCCESS) << "the first has ended";
}

/// It was taken from the list, and nobody had it to put it back.
TEST(QaicSet, ARefusedSubmissionOfAKeptHandleLeavesItAvailable) {
  const SetBench bench("null:generic:1?a=10s&depth=1", 3, 1, 60000, 0);
  ASSERT_EQ(bench.submit(0, 0), QS_SUCCESS);
  ASSERT_EQ(bench.submit(1, 1), QS_SUCCESS);
  auto refused = std::async(std::launch::async, [&] { return bench.submit(2, 2); });
  bench.clock->await(1);
  EXPECT_EQ(qaicInferenceSetCancel(bench.made, 2), QS_SUCCESS) << "it waits for room";
  while (refused.wait_for(milliseconds(1)) != std::future_status::ready)
    bench.advance(milliseconds(10));
  EXPECT_EQ(refused.get(), QS_ERROR);
  EXPECT_EQ(qaicInferenceSetCancel(bench.made, 2), QS_INVAL);
  EXPECT_EQ(bench.take(), 2U);
}

TEST(QaicSet, ASubmissionThatWaitsForRoomTakesNoneThatTheEndOfItsSetMakes) {
  const SetBench bench("null:generic:1?a=10s&depth=1", 3, 1, 60000, 0);
  ASSERT_EQ(bench.submit(0, 0), QS_SUCCESS);
  ASSERT_EQ(bench.submit(1, 1), QS_SUCCESS);
  auto refused = std::async(std::launch::async, [&] { return bench.submit(2, 2); });
  bench.clock->await(1);
  EXPECT_EQ(qaicInferenceSetShutdown(bench.made), QS_SUCCESS);
  EXPECT_EQ(refused.get(), QS_ERROR);
  std::uint32_t handle = kNone;
  EXPECT_EQ(bench.collect_id(1, handle), QS_ERROR) << "it was cancelled";
  EXPECT_EQ(handle, 1U);
  EXPECT_EQ(bench.collect_id(2, handle), QS_ERROR);
  EXPECT_EQ(handle, kNone) << "it was never submitted";
}

TEST(QaicSet, WaitingForCompletionIsForWhatWasSubmittedBefore) {
  const SetBench bench("null:generic:2?a=10ms", 2);
  ASSERT_EQ(bench.submit(0, 0), QS_SUCCESS);
  const auto wait = [&](std::uint64_t us) {
    return qaicInferenceSetWaitForCompletion(bench.made, us);
  };
  auto waited = std::async(std::launch::async, [&] { return wait(9'000'000); });
  bench.clock->await(1);
  bench.advance(milliseconds(5));
  ASSERT_EQ(bench.submit(1, 1), QS_SUCCESS);
  bench.advance(milliseconds(5));
  EXPECT_EQ(waited.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(wait(0), QS_TIMEDOUT) << "the second is in flight";
  bench.advance(std::chrono::seconds(9));
  EXPECT_EQ(waited.get(), QS_SUCCESS);
  EXPECT_EQ(wait(QAIC_WAIT_FOREVER), QS_SUCCESS);
}

TEST(QaicSet, TheErrorHandlerHearsOfAFailureThatNobodyCollects) {
  const SetBench bench("null:generic:1?a=1ms&fail=1", 2);
  ASSERT_EQ(bench.submit(0, 1), QS_SUCCESS);
  ASSERT_EQ(bench.submit(1, 2), QS_SUCCESS);
  bench.advance(milliseconds(2));
  EXPECT_EQ(qaicInferenceSetWaitForCompletion(bench.made, QAIC_WAIT_FOREVER), QS_SUCCESS);
  const std::vector<int> twice(2, QIAC_ERROR_EXECOBJ_RUNTIME);
  EXPECT_EQ(bench.errors(), twice);
  std::uint32_t handle = kNone;
  EXPECT_EQ(bench.collect(handle), QS_ERROR);
  EXPECT_EQ(bench.errors(), twice) << "once each";
}

// --- Statement 23: decisions.

TEST(QaicSet, AHandleInFlightIsBusy) {
  const SetBench bench("null:generic:4?a=1ms", 1);
  const std::uint32_t handle = bench.take();
  ASSERT_EQ(bench.submit(handle, 1), QS_SUCCESS);
  EXPECT_EQ(bench.submit(handle, 2), QS_BUSY);
  EXPECT_EQ(bench.tensors[0]->give(bench.made, handle), QS_BUSY);
  EXPECT_EQ(bench.put(handle), QS_INVAL) << "it is not taken";
  bench.advance(milliseconds(1));
  EXPECT_EQ(bench.submit(handle, 2), QS_BUSY) << "completed and not collected";
  EXPECT_EQ(bench.put(handle), QS_INVAL);
  std::uint32_t got = kNone;
  EXPECT_EQ(bench.collect_id(2, got), QS_INVAL) << "what was refused has no id";
  EXPECT_EQ(bench.collect_id(1, got), QS_SUCCESS);
  EXPECT_EQ(got, handle);
}

TEST(QaicSet, PutTwiceIsRefusedAndTheListUnchanged) {
  const SetBench bench("null:generic:4?a=1ms", 2);
  const std::uint32_t handle = bench.take();
  EXPECT_EQ(bench.put(handle), QS_SUCCESS);
  EXPECT_EQ(bench.put(handle), QS_INVAL);
  const std::uint32_t first = bench.take();
  const std::uint32_t second = bench.take();
  EXPECT_NE(first, second);
  std::uint32_t third = 9;
  EXPECT_EQ(qaicInferenceSetGetAvailable(bench.made, 0, &third), QS_TIMEDOUT);
}

TEST(QaicSet, NumbersThatAreNoHandleAreRefused) {
  const SetBench bench("null:generic:4?a=1ms", 2);
  for (const std::uint32_t handle : {2U, kNone}) {
    EXPECT_EQ(bench.submit(handle, 1), QS_INVAL);
    EXPECT_EQ(bench.put(handle), QS_INVAL);
    EXPECT_EQ(bench.tensors[0]->give(bench.made, handle), QS_INVAL);
  }
}

TEST(QaicSet, AnIdThatWasNeverSubmittedIsRefusedAtOnce) {
  const SetBench bench("null:generic:4?a=1ms", 2);
  std::uint32_t handle = 5;
  EXPECT_EQ(bench.collect_id(77, handle, QAIC_WAIT_FOREVER), QS_INVAL);
  EXPECT_EQ(handle, kNone);
}

TEST(QaicSet, OfTwoWithOneIdTheFirstIsCollectedFirst) {
  const SetBench bench("null:generic:1?a=1ms", 2);
  ASSERT_EQ(bench.submit(1, 5), QS_SUCCESS);
  ASSERT_EQ(bench.submit(0, 5), QS_SUCCESS);
  bench.advance(milliseconds(2));
  std::uint32_t handle = kNone;
  EXPECT_EQ(bench.collect_id(5, handle), QS_SUCCESS);
  EXPECT_EQ(handle, 1U);
  EXPECT_EQ(bench.collect_id(5, handle), QS_SUCCESS);
  EXPECT_EQ(handle, 0U);
  EXPECT_EQ(bench.collect_id(5, handle), QS_INVAL);
}

TEST(QaicSet, WithNothingInFlightOnlyAWaitWithALimitIsAllowed) {
  const SetBench bench("null:generic:1?a=1ms", 1);
  std::uint32_t handle = 3;
  EXPECT_EQ(bench.collect(handle, QAIC_WAIT_FOREVER), QS_INVAL);
  EXPECT_EQ(handle, kNone);
  auto waits = std::async(std::launch::async, [&] { return bench.collect(handle, 4000); });
  bench.clock->await(1);
  bench.advance(milliseconds(4));
  EXPECT_EQ(waits.get(), QS_TIMEDOUT);
}

TEST(QaicSet, WithoutBuffersNothingIsSubmitted) {
  const Bench bench("null:generic:1?a=1ms");
  QAicInferenceSet* set = bench.set(1);
  EXPECT_EQ(qaicInferenceSetSubmit(set, 0, 1), QS_INVAL);
  EXPECT_THAT(text(), HasSubstr("no buffers"));
  EXPECT_EQ(qaicReleaseInferenceSet(set), QS_SUCCESS);
}

/// One thread that takes a handle it would have to give back itself.
/// It gave QS_AGAIN after two seconds, though the other thread was about to put the handle back.
TEST(QaicSet, AWaitThatSeemsNeverToEndGoesOn) {
  const SetBench bench("null:generic:1?a=1ms", 1);
  const std::uint32_t held = bench.take();
  std::thread other([&] {
    for (int i = 0; i < 3; ++i) {
      bench.clock->await(1);
      bench.advance(std::chrono::seconds(2));
    }
    EXPECT_EQ(bench.put(held), QS_SUCCESS);
  });
  std::uint32_t handle = kNone;
  EXPECT_EQ(qaicInferenceSetGetAvailable(bench.made, QAIC_WAIT_FOREVER, &handle), QS_SUCCESS);
  EXPECT_EQ(handle, held);
  other.join();
}

TEST(QaicSet, OneWhoCollectsWithNothingLeftIsToldSo) {
  const SetBench bench("null:generic:1?a=1ms", 2);
  ASSERT_EQ(bench.submit(0, 1), QS_SUCCESS);
  std::atomic<int> begun{0};
  const auto collect = [&] {
    ++begun;
    std::uint32_t handle = kNone;
    return qaicInferenceSetGetCompleted(bench.made, QAIC_WAIT_FOREVER, &handle);
  };
  std::future<QStatus> collectors[] = {std::async(std::launch::async, collect),
                                       std::async(std::launch::async, collect)};
  while (begun < 2) std::this_thread::yield();
  bench.advance(milliseconds(1));
  std::vector<int> given;
  for (auto& one : collectors) given.push_back(one.get());
  EXPECT_THAT(given, ::testing::UnorderedElementsAre(QS_SUCCESS, QS_INVAL));
}

// --- Statements 20 to 22, and 25.

TEST(QaicSet, WaitingForCompletionTakesNothing) {
  const SetBench bench("null:generic:1?a=1ms", 2);
  EXPECT_EQ(qaicInferenceSetWaitForCompletion(bench.made, QAIC_WAIT_FOREVER), QS_SUCCESS)
      << "nothing was submitted";
  ASSERT_EQ(bench.submit(0, 1), QS_SUCCESS);
  ASSERT_EQ(bench.submit(1, 2), QS_SUCCESS);
  EXPECT_EQ(qaicInferenceSetWaitForCompletion(bench.made, 0), QS_TIMEDOUT);
  bench.advance(milliseconds(2));
  EXPECT_EQ(qaicInferenceSetWaitForCompletion(bench.made, QAIC_WAIT_FOREVER), QS_SUCCESS);
  std::uint32_t handle = kNone;
  EXPECT_EQ(bench.collect(handle), QS_SUCCESS);
  EXPECT_EQ(bench.collect(handle), QS_SUCCESS);
  EXPECT_EQ(bench.collect(handle), QS_TIMEDOUT);
}

TEST(QaicSet, AFailedInferenceGivesItsHandleBack) {
  const SetBench bench("null:generic:1?a=1ms&fail=2", 1);
  ASSERT_EQ(bench.submit(0, 1), QS_SUCCESS);
  bench.advance(milliseconds(1));
  std::uint32_t handle = kNone;
  ASSERT_EQ(bench.collect(handle), QS_SUCCESS);
  // A kept handle is submitted again, with and without having been put back.
  ASSERT_EQ(bench.submit(handle, 2), QS_SUCCESS);
  bench.advance(milliseconds(1));
  handle = kNone;
  EXPECT_EQ(bench.collect_id(2, handle), QS_ERROR);
  EXPECT_THAT(text(), HasSubstr("fails by its script"));
  ASSERT_EQ(handle, 0U);
  EXPECT_THAT(bench.errors(), ElementsAre(QIAC_ERROR_EXECOBJ_RUNTIME));
  EXPECT_EQ(bench.put(handle), QS_SUCCESS);
  ASSERT_EQ(bench.submit(handle, 3), QS_SUCCESS) << "it is taken off the list";
  std::uint32_t other = kNone;
  EXPECT_EQ(qaicInferenceSetGetAvailable(bench.made, 0, &other), QS_TIMEDOUT);
  bench.advance(milliseconds(1));
  EXPECT_EQ(bench.collect_id(3, handle), QS_SUCCESS);
}

class QaicSetTime : public ::testing::TestWithParam<Grid> {};

/// A5: the handle of an inference that timed out is given, put back and submitted again.
TEST_P(QaicSetTime, AnInferenceMayTakeTimeoutTimesAttempts) {
  const SetBench bench("null:generic:1?a=3600s", 1, 1, GetParam().timeout_ms, GetParam().retries);
  const std::uint32_t timeout = GetParam().timeout_ms == 0 ? 5000 : GetParam().timeout_ms;
  const Duration whole = milliseconds(timeout) * (GetParam().retries + 1);
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(bench.submit(0, 1), QS_SUCCESS) << text();
    bench.advance(whole - nanoseconds(1));
    std::uint32_t handle = kNone;
    EXPECT_EQ(bench.collect(handle), QS_TIMEDOUT);
    EXPECT_EQ(handle, kNone) << "not before";
    bench.advance(nanoseconds(1));
    EXPECT_EQ(bench.collect(handle), QS_TIMEDOUT);
    EXPECT_EQ(handle, 0U);
    EXPECT_EQ(bench.put(handle), QS_SUCCESS);
  }
}

INSTANTIATE_TEST_SUITE_P(Grid, QaicSetTime,
                         ::testing::Values(Grid{0, 0}, Grid{0, 1}, Grid{0, 5}, Grid{1, 0},
                                           Grid{1, 1}, Grid{1, 5}, Grid{10, 0}, Grid{10, 1},
                                           Grid{10, 5}),
                         [](const auto& param) {
                           return std::to_string(param.param.timeout_ms) + "x" +
                                  std::to_string(param.param.retries);
                         });

// --- Ends.

TEST(QaicSet, TheOwnerOfAHandlesBuffersIsReleasedOnceNoInferenceUsesThem) {
  SetBench bench("null:generic:1?a=1ms", 2);
  const QAicApiFunctionTable& api = *qaicGetFunctionTable();
  CountedOwner owners[2];
  const auto give = [&](std::uint32_t count, CountedOwner& owner) {
    return api.qaicInferenceSetSetOwnedData(bench.made, 0, count, bench.tensors[0]->buffers.data(),
                                            nullptr, &owner, &CountedOwner::release);
  };
  EXPECT_EQ(give(1, owners[0]), QS_INVAL) << "of two";
  EXPECT_EQ(give(2, owners[0]), QS_SUCCESS);
  EXPECT_EQ(give(2, owners[1]), QS_SUCCESS);
  EXPECT_EQ(owners[0].releases, 1) << "other buffers are set";
  ASSERT_EQ(bench.submit(0, 1), QS_SUCCESS);
  EXPECT_EQ(give(2, owners[0]), QS_BUSY);
  ASSERT_EQ(qaicInferenceSetShutdown(bench.made), QS_SUCCESS);
  std::uint32_t in_flight = 0;
  EXPECT_EQ(api.qaicInferenceSetGetInFlight(bench.made, &in_flight), QS_SUCCESS);
  EXPECT_EQ(in_flight, 1U) << "it runs on";
  ASSERT_EQ(qaicReleaseInferenceSet(bench.made), QS_SUCCESS);
  EXPECT_EQ(owners[1].releases, 0);
  bench.advance(milliseconds(1));
  EXPECT_EQ(owners[1].releases, 1);
  EXPECT_EQ(owners[0].releases, 1) << "a failure leaves it to the caller";
}

TEST(QaicSet, WhatHasNotStartedIsCancelled) {
  const SetBench bench("null:generic:1?a=1ms", 2);
  ASSERT_EQ(bench.submit(0, 1), QS_SUCCESS);
  ASSERT_EQ(bench.submit(1, 2), QS_SUCCESS);
  EXPECT_EQ(qaicInferenceSetCancel(bench.made, 1), QS_BUSY) << "it runs";
  EXPECT_EQ(qaicInferenceSetCancel(bench.made, 2), QS_SUCCESS);
  EXPECT_EQ(qaicInferenceSetCancel(bench.made, 3), QS_INVAL);
  std::uint32_t handle = kNone;
  EXPECT_EQ(bench.collect_id(2, handle), QS_ERROR);
  EXPECT_EQ(handle, 1U);
  bench.advance(milliseconds(1));
  EXPECT_EQ(qaicInferenceSetCancel(bench.made, 1), QS_INVAL) << "it has completed";
  EXPECT_EQ(bench.collect_id(1, handle), QS_SUCCESS);
}

TEST(QaicSet, ItsDescriptorPollsReadableWhileSomethingHasCompleted) {
  const SetBench bench("null:generic:1?a=1ms", 1);
  int fd = -1;
  ASSERT_EQ(qaicInferenceSetGetFd(bench.made, &fd), QS_SUCCESS);
  const auto readable = [&] {
    pollfd one{fd, POLLIN, 0};
    return poll(&one, 1, 0) == 1;
  };
  ASSERT_EQ(bench.submit(0, 1), QS_SUCCESS);
  EXPECT_FALSE(readable());
  bench.advance(milliseconds(1));
  EXPECT_TRUE(readable());
  std::uint32_t handle = kNone;
  EXPECT_EQ(bench.collect(handle), QS_SUCCESS);
  EXPECT_FALSE(readable());
}

/// A6.
TEST(QaicSet, AllThatWaitReturnWhenItEnds) {
  for (const bool release : {false, true}) {
    const SetBench bench("null:generic:1?a=3600s", 2, 1, 3'000'000, 100);
    QAicInferenceSet* set = bench.made;
    ASSERT_EQ(bench.submit(bench.take(), 1), QS_SUCCESS);
    ASSERT_EQ(bench.submit(bench.take(), 2), QS_SUCCESS);
    std::vector<std::future<QStatus>> waits;
    for (int i = 0; i < 64; ++i)
      waits.push_back(std::async(std::launch::async, [&, i] {
        std::uint32_t handle = kNone;
        const std::uint64_t us = i % 2 == 0 ? QAIC_WAIT_FOREVER : 3'600'000'000;
        switch (i / 2 % 4) {
          case 0:
            return qaicInferenceSetGetAvailable(set, us, &handle);
          case 1:
            return qaicInferenceSetGetCompleted(set, us, &handle);
          case 2:
            return qaicInferenceSetGetCompletedId(set, 1, us, &handle);
          default:
            return qaicInferenceSetWaitForCompletion(set, us);
        }
      }));
    bench.clock->await(32);
    ASSERT_EQ(release ? qaicReleaseInferenceSet(set) : qaicInferenceSetShutdown(set), QS_SUCCESS);
    for (auto& one : waits) {
      const QStatus status = one.get();
      // A collector gets what was cancelled; who had not begun to wait finds no set.
      EXPECT_TRUE(status == QS_ERROR || (release && status == QS_INVAL)) << status;
    }
    EXPECT_EQ(bench.now(), TimePoint{});
  }
}

TEST(QaicSet, AfterTheEndEveryCallThatWouldWaitIsRefusedTheSameWay) {
  const SetBench bench("null:generic:1?a=1ms", 2);
  ASSERT_EQ(bench.submit(0, 1), QS_SUCCESS);
  bench.advance(milliseconds(1));
  ASSERT_EQ(qaicInferenceSetShutdown(bench.made), QS_SUCCESS);
  std::uint32_t handle = kNone;
  EXPECT_EQ(bench.collect(handle, QAIC_WAIT_FOREVER), QS_SUCCESS) << "it had completed";
  EXPECT_EQ(handle, 0U);
  for (const std::uint64_t us : {std::uint64_t{0}, QAIC_WAIT_FOREVER}) {
    EXPECT_EQ(qaicInferenceSetGetAvailable(bench.made, us, &handle), QS_ERROR);
    EXPECT_EQ(bench.collect(handle, us), QS_ERROR);
    EXPECT_EQ(bench.collect_id(1, handle, us), QS_ERROR);
    EXPECT_EQ(bench.collect_id(77, handle, us), QS_ERROR);
    EXPECT_EQ(handle, kNone);
    EXPECT_EQ(qaicInferenceSetWaitForCompletion(bench.made, us), QS_ERROR);
  }
}

TEST(QaicSet, TellsOfItsProgramAndItsDevice) {
  const SetBench bench("null:generic:4?a=1ms", 1);
  QAicProgramInfoV2 info;
  ASSERT_EQ(qaicInferenceSetGetProgramInfo(bench.made, &info), QS_SUCCESS);
  EXPECT_EQ(info.programInfo.status, QAIC_PROGRAM_FULLY_ACTIVATED);
  EXPECT_EQ(info.numQids, 1U);
  EXPECT_EQ(info.qid[0], 0);
  EXPECT_EQ(info.programInfo.numNsp, 1U);
}

}  // namespace
}  // namespace corelane::qaic::test
