// Execution objects by the C functions: buffers, runs, time.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <thread>

#include "adapters/qaic/testing/qaic_bench.h"
#include "corelane/device/buffer.h"

namespace corelane::qaic::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

/// An execution object, its program and a queue, released at the end.
struct ExecBench : Bench {
  explicit ExecBench(const std::string& on = "null:generic:4?a=1ms",
                     const std::string& onnx = one_in_one_out(), const ImportOptions& import = {},
                     QAicExecObjProperties_t properties = QAIC_EXECOBJ_PROPERTIES_DEFAULT)
      : Bench(on, nullptr, true, onnx, import),
        net(program()),
        object(exec(net, properties)),
        sender(queue()) {}
  ~ExecBench() {
    static_cast<void>(qaicReleaseExecObj(object));
    static_cast<void>(qaicReleaseProgram(net));
    static_cast<void>(qaicReleaseQueue(sender));
  }
  QStatus send(QAicEvent* event = nullptr) const {
    return qaicEnqueueExecObj(sender, object, event);
  }
  /// Enqueues, lets `time` pass, and gives the outcome.
  QStatus run(Duration time = milliseconds(1)) const {
    const QStatus sent = send();
    if (sent != QS_SUCCESS) return sent;
    advance(time);
    return qaicExecObjWaitForCompletion(object, 0);
  }
  QStatus set(const std::vector<QBuffer>& buffers,
              const std::vector<QBufferDimensions>& dims = {}) const {
    return qaicExecObjSetDataExt(object, static_cast<std::uint32_t>(buffers.size()), buffers.data(),
                                 dims.empty() ? nullptr : dims.data());
  }
  QAicProgram* net;
  QAicExecObj* object;
  QAicQueue* sender;
};

TEST(QaicExec, RunsWithMemoryOfTheProcess) {
  const ExecBench bench;
  Tensors tensors;
  ASSERT_EQ(tensors.give(bench.object), QS_SUCCESS) << text();
  for (int i = 0; i < 3; ++i) {
    tensors.values[0][0] = static_cast<float>(i);
    ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
    EXPECT_EQ(tensors.values[1], tensors.values[0]);
  }
  EXPECT_EQ(qaicExecObjWaitForCompletion(bench.object, 0), QS_SUCCESS) << "the outcome stays";
  std::uint64_t count = 0;
  ASSERT_EQ(qaicProgramGetInferenceCompletedCount(bench.net, &count), QS_SUCCESS);
  EXPECT_EQ(count, 3U);
}

TEST(QaicExec, AnUnsetTypeIsMemoryOfTheProcess) {
  const ExecBench bench;
  Tensors tensors;
  tensors.buffers[0].type = QBUFFER_TYPE_INVAL;
  ASSERT_EQ(tensors.give(bench.object), QS_SUCCESS) << text();
  EXPECT_EQ(bench.run(), QS_SUCCESS);
  EXPECT_EQ(tensors.values[1], tensors.values[0]);
}

/// A8: guard bytes on both sides of buffers that are one byte off.
TEST(QaicExec, AWrongSizeIsRefusedAndNothingIsTouched) {
  const ExecBench bench;
  Tensors good;
  ASSERT_EQ(good.give(bench.object), QS_SUCCESS);
  std::vector<std::uint8_t> memory(64, 0xa5);
  for (const std::size_t wrong : {0U, 1U, 15U, 17U}) {
    for (const std::size_t at : {0U, 1U}) {
      std::vector<QBuffer> buffers = good.buffers;
      buffers[at] = {wrong, memory.data() + 16};
      EXPECT_EQ(bench.set(buffers), QS_INVAL);
      EXPECT_THAT(text(), HasSubstr(at == 0 ? "'x'" : "'y'"));
      EXPECT_THAT(text(), HasSubstr("16 bytes"));
    }
  }
  EXPECT_EQ(bench.set({good.buffers[0]}), QS_INVAL) << "too few";
  EXPECT_EQ(bench.run(), QS_SUCCESS) << "the earlier buffers stay";
  EXPECT_EQ(good.values[1], good.values[0]);
  EXPECT_THAT(memory, Each(0xa5));
}

TEST(QaicExec, WhatIsNoBufferIsRefused) {
  const ExecBench bench;
  const Tensors tensors;
  std::vector<QBuffer> buffers = tensors.buffers;
  buffers[0].buf = nullptr;
  EXPECT_EQ(bench.set(buffers), QS_INVAL);
  buffers = tensors.buffers;
  buffers[1].type = QBUFFER_TYPE_PMEM;
  EXPECT_EQ(bench.set(buffers), QS_UNSUPPORTED);
  buffers[1].type = static_cast<QBufferType>(77);
  EXPECT_EQ(bench.set(buffers), QS_INVAL);
  for (const std::uint64_t handle : {std::uint64_t{987654}, UINT64_MAX}) {
    buffers[1] = {16, nullptr, handle, 0, QBUFFER_TYPE_DMABUF};
    EXPECT_EQ(bench.set(buffers), QS_BADFD);
  }
  EXPECT_EQ(qaicExecObjSetData(bench.object, 2, nullptr), QS_INVAL);
  EXPECT_EQ(bench.send(), QS_INVAL) << "none was set";
  EXPECT_THAT(text(), HasSubstr("no buffers"));
}

/// A descriptor's memory, mapped for the test.
struct Shared {
  explicit Shared(std::size_t size) : fd(memfd_create("qaic-test", MFD_CLOEXEC)), bytes(size) {
    EXPECT_EQ(ftruncate(fd, static_cast<off_t>(size)), 0);
    data = static_cast<float*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  }
  ~Shared() {
    munmap(data, bytes);
    close(fd);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  QBuffer at(std::uint32_t offset) const {
    return {16, nullptr, static_cast<std::uint64_t>(fd), offset, QBUFFER_TYPE_DMABUF};
  }
  int fd;
  std::size_t bytes;
  float* data;
};

TEST(QaicExec, DescriptorsAreReadAndWrittenInPlace) {
  const ExecBench bench;
  const Shared shared(8192);
  const std::vector<QBuffer> buffers{shared.at(64), shared.at(4096)};
  ASSERT_EQ(bench.set(buffers), QS_SUCCESS) << text();
  for (int i = 0; i < 3; ++i) {
    // Set anew, and changed after that: it is not copied.
    ASSERT_EQ(bench.set(buffers), QS_SUCCESS);
    shared.data[16] = static_cast<float>(i) + 0.5F;
    ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
    EXPECT_EQ(shared.data[1024], static_cast<float>(i) + 0.5F);
  }
  EXPECT_EQ(bench.set({shared.at(64), shared.at(8192)}), QS_INVAL) << "past the end";
  EXPECT_EQ(bench.run(), QS_SUCCESS) << "the earlier descriptors stay";
}

TEST(QaicExec, ADescriptorIsImportedOnce) {
  const ExecBench bench;
  const Shared shared(8192);
  const Shared other(8192);
  ASSERT_EQ(bench.set({shared.at(0), shared.at(4096)}), QS_SUCCESS);
  const int before = dup(shared.fd);
  close(before);
  const int twin = dup(shared.fd);
  for (int i = 0; i < 100; ++i) {
    QBuffer again = shared.at(0);
    again.handle = static_cast<std::uint64_t>(i % 2 == 0 ? shared.fd : twin);
    ASSERT_EQ(bench.set({again, shared.at(4096)}), QS_SUCCESS);
  }
  // Buffers that are not used any more are given back at once.
  ASSERT_EQ(bench.set({other.at(0), other.at(4096)}), QS_SUCCESS);
  ASSERT_EQ(bench.set({shared.at(0), shared.at(4096)}), QS_SUCCESS);
  const int after = dup(shared.fd);
  EXPECT_LE(after, before + 2) << "descriptors are left over";
  close(after);
  close(twin);
}

TEST(QaicExec, ItsOwnBuffersAreUsedWithoutACopy) {
  const ExecBench bench(
      "null:generic:4?a=1ms", one_in_one_out(), {},
      QAIC_EXECOBJ_PROPERTIES_DEFAULT | QAIC_EXECOBJ_PROPERTIES_ZERO_COPY_BUFFERS);
  std::uint32_t count = 0;
  QBuffer* own = nullptr;
  ASSERT_EQ(qaicExecObjGetIoBuffers(bench.object, &count, &own), QS_SUCCESS);
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(own[0].size, 16U);
  EXPECT_EQ(own[0].type, QBUFFER_TYPE_DMABUF);
  const float x[4] = {9, 8, 7, 6};
  std::memcpy(own[0].buf, x, sizeof x);
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  float y[4] = {};
  std::memcpy(y, own[1].buf, sizeof y);
  EXPECT_THAT(y, ElementsAreArray(x));
  // A client may set them again, and give others in their place.
  const std::vector<QBuffer> copy(own, own + count);
  ASSERT_EQ(bench.set(copy), QS_SUCCESS) << text();
  EXPECT_EQ(bench.run(), QS_SUCCESS);
  const Tensors tensors;
  ASSERT_EQ(bench.set({copy[0], tensors.buffers[1]}), QS_SUCCESS);
  ASSERT_EQ(bench.run(), QS_SUCCESS);
  EXPECT_EQ(tensors.values[1], (std::vector<float>{9, 8, 7, 6}));
}

TEST(QaicExec, IoBuffersAreThoseThatWereSet) {
  const ExecBench bench;
  std::uint32_t count = 7;
  QBuffer* found = nullptr;
  ASSERT_EQ(qaicExecObjGetIoBuffers(bench.object, &count, &found), QS_SUCCESS);
  EXPECT_EQ(count, 0U);
  const Tensors tensors;
  ASSERT_EQ(tensors.give(bench.object), QS_SUCCESS);
  ASSERT_EQ(qaicExecObjGetIoBuffers(bench.object, &count, &found), QS_SUCCESS);
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(found[1].buf, tensors.buffers[1].buf);
}

// --- In flight.

TEST(QaicExec, WhatIsInFlightIsNotTouched) {
  const ExecBench bench;
  const Tensors tensors;
  EXPECT_EQ(qaicExecObjWaitForCompletion(bench.object, 0), QS_INVAL) << "nothing was enqueued";
  ASSERT_EQ(tensors.give(bench.object), QS_SUCCESS);
  ASSERT_EQ(bench.send(), QS_SUCCESS);
  EXPECT_EQ(bench.send(), QS_BUSY);
  EXPECT_EQ(tensors.give(bench.object), QS_BUSY);
  EXPECT_EQ(qaicRunExecObj(bench.object), QS_BUSY);
  bench.advance(milliseconds(1));
  EXPECT_EQ(qaicExecObjWaitForCompletion(bench.object, 0), QS_SUCCESS);
  EXPECT_EQ(tensors.give(bench.object), QS_SUCCESS);
}

TEST(QaicExec, ReleasedInFlightItsWorkGoesOn) {
  const ExecBench bench;
  Tensors tensors;
  QAicExecObj* object = bench.exec(bench.net);
  ASSERT_EQ(tensors.give(object), QS_SUCCESS);
  ASSERT_EQ(qaicEnqueueExecObj(bench.sender, object, nullptr), QS_SUCCESS);
  ASSERT_EQ(qaicReleaseExecObj(object), QS_SUCCESS);
  EXPECT_EQ(qaicExecObjWaitForCompletion(object, 0), QS_INVAL);
  bench.advance(milliseconds(1));
  EXPECT_EQ(tensors.values[1], tensors.values[0]);
  std::uint64_t count = 0;
  ASSERT_EQ(qaicProgramGetInferenceCompletedCount(bench.net, &count), QS_SUCCESS);
  EXPECT_EQ(count, 1U);
}

/// A6.
TEST(QaicExec, AllThatWaitReturnWhenItIsReleased) {
  const Tensors tensors;  // Used until the end: the work goes on.
  const ExecBench bench("null:generic:1?a=3600s");
  QAicProgram* net = bench.program(3'000'000, 100);
  QAicExecObj* object = bench.exec(net);
  QAicEvent* event = bench.event();
  ASSERT_EQ(tensors.give(object), QS_SUCCESS);
  ASSERT_EQ(qaicEnqueueExecObj(bench.sender, object, event), QS_SUCCESS) << text();
  std::vector<std::future<QStatus>> waits;
  for (int i = 0; i < 64; ++i)
    waits.push_back(std::async(std::launch::async, [&, i] {
      if (i % 4 == 0) return qaicWaitforEvent(event);
      return qaicExecObjWaitForCompletion(object, i % 2 == 0 ? 0 : 60'000'000);
    }));
  bench.clock->await(32);
  ASSERT_EQ(qaicReleaseExecObj(object), QS_SUCCESS);
  ASSERT_EQ(qaicReleaseEvent(event), QS_SUCCESS);
  for (auto& one : waits) {
    const QStatus status = one.get();
    // Those that had not begun to wait find no object.
    EXPECT_TRUE(status == QS_ERROR || status == QS_INVAL) << status;
  }
  EXPECT_EQ(bench.now(), TimePoint{});
  EXPECT_EQ(qaicReleaseProgram(net), QS_SUCCESS);
}

TEST(QaicExec, TheOwnerOfItsBuffersIsReleasedOnceNoInferenceUsesThem) {
  const ExecBench bench("null:generic:4?a=10ms");
  const QAicApiFunctionTable& api = *qaicGetFunctionTable();
  QAicProgram* net = bench.program();
  QAicExecObj* object = bench.exec(net);
  const Tensors tensors;
  CountedOwner first;
  CountedOwner second;
  const auto give = [&](std::uint32_t count, CountedOwner& owner) {
    return api.qaicExecObjSetOwnedData(object, count, tensors.buffers.data(), nullptr, &owner,
                                       &CountedOwner::release);
  };
  const auto in_flight = [&] {
    std::uint32_t count = 77;
    EXPECT_EQ(api.qaicExecObjGetInFlight(object, &count), QS_SUCCESS);
    return count;
  };
  EXPECT_EQ(give(1, first), QS_INVAL) << "of two";
  EXPECT_EQ(give(2, first), QS_SUCCESS);
  EXPECT_EQ(give(2, second), QS_SUCCESS);
  EXPECT_EQ(first.releases, 1) << "other buffers are set";
  EXPECT_EQ(in_flight(), 0U);
  ASSERT_EQ(qaicEnqueueExecObj(bench.sender, object, nullptr), QS_SUCCESS);
  EXPECT_EQ(in_flight(), 1U);
  EXPECT_EQ(give(2, first), QS_BUSY);
  ASSERT_EQ(qaicReleaseExecObj(object), QS_SUCCESS);
  ASSERT_EQ(qaicReleaseProgram(net), QS_SUCCESS);
  EXPECT_EQ(second.releases, 0) << "its inference runs";
  bench.advance(milliseconds(10));
  EXPECT_EQ(second.releases, 1);
  EXPECT_EQ(first.releases, 1) << "a failure leaves it to the caller";
}

// --- Time.

TEST(QaicExec, AWaitThatIsTooShortLeavesTheInference) {
  const ExecBench bench("null:generic:4?a=10ms");
  Tensors tensors;
  ASSERT_EQ(tensors.give(bench.object), QS_SUCCESS);
  ASSERT_EQ(bench.send(), QS_SUCCESS);
  auto waits = std::async(std::launch::async,
                          [&] { return qaicExecObjWaitForCompletion(bench.object, 3000); });
  bench.clock->await(1);
  bench.advance(microseconds(3000));
  EXPECT_EQ(waits.get(), QS_TIMEDOUT);
  EXPECT_EQ(bench.send(), QS_BUSY) << "it goes on";
  bench.advance(milliseconds(7));
  EXPECT_EQ(qaicExecObjWaitForCompletion(bench.object, QAIC_WAIT_FOREVER), QS_SUCCESS);
  EXPECT_EQ(tensors.values[1], tensors.values[0]);
}

class QaicExecTime : public ::testing::TestWithParam<Grid> {};

/// A5, statement 25.
TEST_P(QaicExecTime, AnInferenceMayTakeTimeoutTimesAttempts) {
  const ExecBench bench("null:generic:1?a=3600s");
  QAicProgram* net = bench.program(GetParam().timeout_ms, GetParam().retries);
  QAicExecObj* object = bench.exec(net);
  const Tensors tensors;
  ASSERT_EQ(tensors.give(object), QS_SUCCESS);
  ASSERT_EQ(qaicEnqueueExecObj(bench.sender, object, nullptr), QS_SUCCESS) << text();
  const std::uint32_t timeout = GetParam().timeout_ms == 0 ? 5000 : GetParam().timeout_ms;
  const Duration whole = milliseconds(timeout) * (GetParam().retries + 1);
  bench.advance(whole - nanoseconds(1));
  EXPECT_EQ(qaicEnqueueExecObj(bench.sender, object, nullptr), QS_BUSY) << "not before";
  bench.advance(nanoseconds(1));
  EXPECT_EQ(qaicExecObjWaitForCompletion(object, 0), QS_TIMEDOUT);
  EXPECT_THAT(bench.errors(), ElementsAre(QIAC_ERROR_EXECOBJ_RUNTIME));
  EXPECT_EQ(qaicReleaseExecObj(object), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(net), QS_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(Grid, QaicExecTime,
                         ::testing::Values(Grid{0, 0}, Grid{0, 1}, Grid{0, 5}, Grid{1, 0},
                                           Grid{1, 1}, Grid{1, 5}, Grid{10, 0}, Grid{10, 1},
                                           Grid{10, 5}),
                         [](const auto& param) {
                           return std::to_string(param.param.timeout_ms) + "x" +
                                  std::to_string(param.param.retries);
                         });

}  // namespace
}  // namespace corelane::qaic::test
