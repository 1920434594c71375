// Sets and execution objects under load: faults, losses, many threads.
#include <atomic>
#include <thread>

#include "adapters/qaic/testing/qaic_bench.h"

namespace corelane::qaic::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A part of the runs crashes, and the device is lost every two seconds for 30 ms.
class FaultMix final : public device::FaultPoint {
 public:
  explicit FaultMix(const Clock* clock) : clock_(clock) {}
  device::Fault at_run(std::uint64_t, std::uint64_t) override {
    const std::int64_t now = clock_->now().time_since_epoch() / seconds(2);
    if (now > periods_.exchange(now)) {
      ++losses;
      return device::Fault::kLost;
    }
    // 1 %: the cores are reset and the attempt is repeated.
    return ++runs_ % 100 == 0 ? device::Fault::kCrash : device::Fault::kNone;
  }
  Duration slow_by() const override { return {}; }
  Duration lost_for() const override { return milliseconds(30); }
  std::atomic<int> losses{0};

 private:
  const Clock* const clock_;
  std::atomic<std::int64_t> periods_{0};
  std::atomic<std::uint64_t> runs_{0};
};

/// Reaches the bench's clock, which is made after the faults.
struct LateFaults final : device::FaultPoint {
  device::Fault at_run(std::uint64_t job, std::uint64_t cores) override {
    return mix == nullptr ? device::Fault::kNone : mix->at_run(job, cores);
  }
  Duration slow_by() const override { return {}; }
  Duration lost_for() const override { return milliseconds(30); }
  std::unique_ptr<FaultMix> mix;
};

/// Statements 21 and 22: a client that puts back whatever it gets and submits it again loses no
/// handle, and goes on after each loss.
TEST(QaicLoad, AClientThatGoesOnAfterFailuresLosesNothing) {
  auto faults = std::make_shared<LateFaults>();
  Bench bench("null:generic:4?a=1ms&fail=97", faults);
  faults->mix = std::make_unique<FaultMix>(bench.clock.get());
  QAicInferenceSet* set = bench.set(2, 4);
  std::vector<std::unique_ptr<Tensors>> tensors;
  for (std::uint32_t i = 0; i < 8; ++i) {
    tensors.push_back(std::make_unique<Tensors>());
    ASSERT_EQ(tensors[i]->give(set, i), QS_SUCCESS);
  }
  int good = 0;
  int failed = 0;
  int refused = 0;
  std::uint64_t id = 0;
  std::vector<bool> in_flight(8);
  const TimePoint end = TimePoint{seconds(9)};
  while (bench.now() < end) {
    for (std::uint32_t i = 0; i < 8; ++i) {
      if (in_flight[i]) continue;
      tensors[i]->values[0][0] = static_cast<float>(++id);
      const QStatus sent = qaicInferenceSetSubmit(set, i, id);
      ASSERT_TRUE(sent == QS_SUCCESS || sent == QS_DEV_ERROR) << text();
      in_flight[i] = sent == QS_SUCCESS;
      if (sent != QS_SUCCESS) ++refused;
    }
    bench.advance(milliseconds(1));
    for (;;) {
      std::uint32_t handle = kNone;
      const QStatus status = qaicInferenceSetGetCompleted(set, 0, &handle);
      if (handle == kNone) break;
      in_flight[handle] = false;
      status == QS_SUCCESS ? ++good : ++failed;
      if (status == QS_SUCCESS)
        ASSERT_EQ(tensors[handle]->values[1][0], tensors[handle]->values[0][0]);
      ASSERT_EQ(qaicInferenceSetPutCompleted(set, handle), QS_SUCCESS);
    }
  }
  EXPECT_EQ(faults->mix->losses, 4);
  EXPECT_GT(failed, 0);
  EXPECT_GT(refused, 0);
  // 4 cores for 9 s, of which 4 times 30 ms are lost.
  EXPECT_GT(good, 4 * 9000 * 95 / 100);
  bench.advance(seconds(1));
  for (std::uint32_t i = 0, handle = 0; i < 8; ++i)
    if (in_flight[i]) static_cast<void>(qaicInferenceSetGetCompleted(set, 0, &handle));
  for (std::uint32_t i = 0; i < 8; ++i) static_cast<void>(qaicInferenceSetPutCompleted(set, i));
  std::uint32_t handle = kNone;
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(qaicInferenceSetGetAvailable(set, 0, &handle), QS_SUCCESS) << i;
  EXPECT_EQ(qaicReleaseInferenceSet(set), QS_SUCCESS);
}

/// Execution objects: the client loads the program again after each loss.
TEST(QaicLoad, AProgramIsLoadedAgainAfterEachLoss) {
  auto faults = std::make_shared<LateFaults>();
  Bench bench("null:generic:2?a=1ms", faults);
  faults->mix = std::make_unique<FaultMix>(bench.clock.get());
  QAicProgram* program = bench.program();
  QAicExecObj* exec = bench.exec(program);
  QAicQueue* queue = bench.queue();
  Tensors tensors;
  ASSERT_EQ(tensors.give(exec), QS_SUCCESS);
  int good = 0;
  int loads = 0;
  while (bench.now() < TimePoint{seconds(9)}) {
    QStatus status = qaicEnqueueExecObj(queue, exec, nullptr);
    bench.advance(milliseconds(1));
    if (status == QS_SUCCESS) status = qaicExecObjWaitForCompletion(exec, 0);
    good += status == QS_SUCCESS ? 1 : 0;
    if (status == QS_DEV_ERROR && qaicLoadProgram(program) == QS_SUCCESS) ++loads;
  }
  EXPECT_EQ(faults->mix->losses, 4);
  EXPECT_GE(loads, 4);
  EXPECT_GT(good, 9000 * 95 / 100);
  EXPECT_EQ(qaicReleaseExecObj(exec), QS_SUCCESS);
  EXPECT_EQ(bench.free_cores(), 2);
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

/// Statements 17 to 19 and 23: one thread submits, several collect; each inference ends once.
TEST(QaicLoad, ThreadsThatSubmitAndCollectLoseNothing) {
  constexpr std::uint64_t kAll = 20000;
  const Bench bench("null:generic:4?threads=1&fail=100", nullptr, false);
  QAicInferenceSet* set = bench.set(4, 4);
  std::vector<std::unique_ptr<Tensors>> tensors;
  for (std::uint32_t i = 0; i < 16; ++i) {
    tensors.push_back(std::make_unique<Tensors>());
    ASSERT_EQ(tensors[i]->give(set, i), QS_SUCCESS);
  }
  std::atomic<std::uint64_t> collected{0};
  std::atomic<int> failed{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (collected.fetch_add(1) < kAll) {
        std::uint32_t handle = kNone;
        const QStatus status = qaicInferenceSetGetCompleted(set, 3'600'000'000, &handle);
        if (handle == kNone) {
          ++wrong;
          return;
        }
        if (status != QS_SUCCESS)
          ++failed;
        else if (tensors[handle]->values[1] != tensors[handle]->values[0])
          ++wrong;
        if (qaicInferenceSetPutCompleted(set, handle) != QS_SUCCESS) ++wrong;
      }
    });
  for (std::uint64_t id = 0; id < kAll; ++id) {
    std::uint32_t handle = kNone;
    ASSERT_EQ(qaicInferenceSetGetAvailable(set, QAIC_WAIT_FOREVER, &handle), QS_SUCCESS) << text();
    tensors[handle]->values[0][0] = static_cast<float>(id);
    ASSERT_EQ(qaicInferenceSetSubmit(set, handle, id), QS_SUCCESS) << text();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(failed, static_cast<int>(kAll / 100));
  EXPECT_EQ(qaicReleaseInferenceSet(set), QS_SUCCESS);
}

/// 32 objects on 8 threads, a program that is activated and deactivated by their coming and going.
TEST(QaicLoad, ObjectsThatComeAndGoShareTheProgram) {
  const Bench bench("null:generic:2?threads=1", nullptr, false);
  QAicProgram* program = bench.program();
  QAicQueue* queue = bench.queue();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        Tensors tensors;
        QAicExecObj* exec = bench.exec(program);
        if (tensors.give(exec) != QS_SUCCESS) ++wrong;
        for (int run = 0; run < 3; ++run) {
          tensors.values[0][0] = static_cast<float>(run);
          const QStatus sent = qaicEnqueueExecObj(queue, exec, nullptr);
          if (sent != QS_SUCCESS || qaicExecObjWaitForCompletion(exec, 0) != QS_SUCCESS) ++wrong;
          if (tensors.values[1] != tensors.values[0]) ++wrong;
        }
        if (qaicReleaseExecObj(exec) != QS_SUCCESS) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(bench.info(program).status, QAIC_PROGRAM_LOADED);
  std::uint64_t count = 0;
  ASSERT_EQ(qaicProgramGetInferenceCompletedCount(program, &count), QS_SUCCESS);
  EXPECT_EQ(count, 2400U);
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

}  // namespace
}  // namespace corelane::qaic::test
