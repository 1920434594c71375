/// The checking mode, each case in a process of its own: the variable is read once.
#include "adapters/qaic/checks/qaic_check.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "adapters/qaic/testing/qaic_bench.h"

namespace corelane::qaic::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class QaicCheck : public ::testing::Test {
 protected:
  QaicCheck() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

void start() { setenv("CORELANE_QAIC_CHECK", "1", 1); }

/// Ends a child process with what its checks say.
[[noreturn]] void leave() { std::exit(::testing::Test::HasFailure() ? 1 : 0); }

/// What `child` writes, as the only thing of its process.
#define EXPECT_CHECKED(child, matcher) \
  EXPECT_EXIT((start(), (child)(), leave()), ::testing::ExitedWithCode(0), matcher)

/// A set of two handles that have buffers.
struct Checked : Bench {
  Checked() : made(set(2)) {
    for (std::uint32_t i = 0; i < 2; ++i) EXPECT_EQ(tensors[i].give(made, i), QS_SUCCESS);
  }
  std::uint32_t take() const {
    std::uint32_t handle = 0;
    EXPECT_EQ(qaicInferenceSetGetAvailable(made, 0, &handle), QS_SUCCESS) << text();
    return handle;
  }
  std::uint32_t collect() const {
    clock->advance(std::chrono::milliseconds(1));
    std::uint32_t handle = 0;
    EXPECT_EQ(qaicInferenceSetGetCompleted(made, 0, &handle), QS_SUCCESS) << text();
    return handle;
  }
  void end() const { EXPECT_EQ(qaicReleaseInferenceSet(made), QS_SUCCESS); }

  Tensors tensors[2];
  QAicInferenceSet* made;
};

TEST_F(QaicCheck, ACorrectProgramGetsNoReports) {
  const auto child = [] {
    const Checked p;
    EXPECT_EQ(qaicInferenceSetSubmit(p.made, p.take(), 1), QS_SUCCESS);
    const std::uint32_t kept = p.collect();
    EXPECT_EQ(qaicInferenceSetPutCompleted(p.made, kept), QS_SUCCESS);
    EXPECT_EQ(qaicInferenceSetSubmit(p.made, kept, 2), QS_SUCCESS) << "a kept one";
    EXPECT_EQ(qaicInferenceSetPutCompleted(p.made, p.collect()), QS_SUCCESS);
    p.end();
  };
  EXPECT_CHECKED(child, Not(HasSubstr("check:")));
}

TEST_F(QaicCheck, AHandleThatIsNotPutBackIsReportedWithTheCallThatTookIt) {
  const auto child = [] {
    const Checked p;
    EXPECT_EQ(qaicInferenceSetSubmit(p.made, p.take(), 1), QS_SUCCESS);
    p.collect();
    p.end();
  };
  EXPECT_CHECKED(child, AllOf(HasSubstr("check: handle"), HasSubstr("was not put back"),
                              HasSubstr("caused by qaicInferenceSetGetCompleted")));
}

TEST_F(QaicCheck, AThreadThatWaitsForItsOwnHandleIsRefused) {
  const auto child = [] {
    const Checked p;
    const std::uint32_t held[] = {p.take(), p.take()};
    std::thread clock([&] {
      p.clock->await(1);
      p.clock->advance(std::chrono::seconds(2));
    });
    std::uint32_t handle = 0;
    EXPECT_EQ(qaicInferenceSetGetAvailable(p.made, QAIC_WAIT_FOREVER, &handle), QS_AGAIN);
    EXPECT_THAT(text(), HasSubstr("waits for one"));
    clock.join();
    for (const std::uint32_t one : held)
      EXPECT_EQ(qaicInferenceSetPutCompleted(p.made, one), QS_SUCCESS);
    p.end();
  };
  EXPECT_CHECKED(child, ::testing::_);
}

TEST_F(QaicCheck, WhatAClassRefusesIsReportedWithItsPlace) {
  const auto child = [] {
    EXPECT_EQ(qaicGetFunctionTable()->qaicSetLastErrorText(QS_INVAL, "Set: the handle is null"),
              QS_INVAL);
  };
  EXPECT_CHECKED(child,
                 HasSubstr("Set: the handle is null; caused by a method of the classes (call"));
}

TEST_F(QaicCheck, WhatEndsWithWorkInFlightIsReported) {
  const auto of_set = [] {
    const Checked p;
    EXPECT_EQ(qaicInferenceSetSubmit(p.made, p.take(), 1), QS_SUCCESS);
    p.end();
    p.clock->run_all();
  };
  EXPECT_CHECKED(of_set, AllOf(HasSubstr("ends with 1 inferences in flight"),
                               HasSubstr("caused by qaicReleaseInferenceSet")));
  const auto of_exec = [] {
    const Bench p;
    QAicProgram* const program = p.program();
    QAicExecObj* const exec = p.exec(program);
    QAicQueue* const queue = p.queue();
    Tensors tensors;
    EXPECT_EQ(tensors.give(exec), QS_SUCCESS);
    EXPECT_EQ(qaicEnqueueExecObj(queue, exec, nullptr), QS_SUCCESS) << text();
    EXPECT_EQ(qaicReleaseExecObj(exec), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
    p.clock->run_all();
  };
  EXPECT_CHECKED(of_exec, AllOf(HasSubstr("is released while its inference is in flight"),
                                HasSubstr("caused by qaicReleaseExecObj")));
}

TEST_F(QaicCheck, ResultsThatAreReadTooEarlyAreNoNumbers) {
  const auto child = [] {
    const Checked p;
    const std::uint32_t handle = p.take();
    EXPECT_EQ(qaicInferenceSetSubmit(p.made, handle, 1), QS_SUCCESS);
    EXPECT_TRUE(std::isnan(p.tensors[handle].values[1][0]));
    EXPECT_EQ(qaicInferenceSetPutCompleted(p.made, p.collect()), QS_SUCCESS);
    EXPECT_EQ(p.tensors[handle].values[1][0], p.tensors[handle].values[0][0]);
    p.end();
  };
  EXPECT_CHECKED(child, Not(HasSubstr("check:")));
}

/// An execution object with memory of the process, and a queue.
struct Running : Bench {
  explicit Running(std::uint32_t queue_bits = QAIC_QUEUE_PROPERTIES_DEFAULT,
                   QAicExecObjProperties_t properties = QAIC_EXECOBJ_PROPERTIES_DEFAULT)
      : net(program()), object(exec(net, properties)), sender(queue(queue_bits)) {
    if (properties == QAIC_EXECOBJ_PROPERTIES_DEFAULT) EXPECT_EQ(tensors.give(object), QS_SUCCESS);
  }
  ~Running() {
    EXPECT_EQ(qaicReleaseExecObj(object), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseProgram(net), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseQueue(sender), QS_SUCCESS);
  }
  void send(QAicEvent* event = nullptr) const {
    EXPECT_EQ(qaicEnqueueExecObj(sender, object, event), QS_SUCCESS) << text();
  }
  void end() const { advance(std::chrono::milliseconds(1)); }
  void wait() const {
    end();
    EXPECT_EQ(qaicExecObjWaitForCompletion(object, 0), QS_SUCCESS) << text();
  }
  std::vector<QBuffer> ask() const {
    std::uint32_t count = 0;
    QBuffer* found = nullptr;
    EXPECT_EQ(qaicExecObjGetIoBuffers(object, &count, &found), QS_SUCCESS) << text();
    return {found, found + count};
  }
  Tensors tensors;
  QAicProgram* net;
  QAicExecObj* object;
  QAicQueue* sender;
};

constexpr QAicExecObjProperties_t kOwnBuffers =
    QAIC_EXECOBJ_PROPERTIES_DEFAULT | QAIC_EXECOBJ_PROPERTIES_ZERO_COPY_BUFFERS;

TEST_F(QaicCheck, OutputsOfAnObjectThatAreAskedForTooEarlyAreReported) {
  const auto in_flight = [] {
    const Running p;
    p.send();
    p.ask();
    p.wait();
  };
  const auto reported =
      AllOf(HasSubstr("check: outputs read before completion: buffer 1"),
            HasSubstr("begun by qaicEnqueueExecObj"), HasSubstr("by qaicExecObjGetIoBuffers"));
  EXPECT_CHECKED(in_flight, reported);
  const auto never_waited_for = [] {
    const Running p;
    p.send();
    p.end();
    p.ask();
  };
  EXPECT_CHECKED(never_waited_for, reported);
  const auto of_the_device = [] {
    const Running p(QAIC_QUEUE_PROPERTIES_DEFAULT, kOwnBuffers);
    p.ask();
    p.send();
    p.ask();
    p.wait();
  };
  EXPECT_CHECKED(of_the_device, reported);
}

TEST_F(QaicCheck, OutputsOfAnObjectThatAreAskedForInTimeAreNotReported) {
  const auto child = [] {
    const Running p(QAIC_QUEUE_PROPERTIES_DEFAULT, kOwnBuffers);
    p.ask();
    for (int i = 0; i < 2; ++i) {
      p.send();
      p.wait();
      p.ask();
    }
    const Running other;
    other.ask();
    other.send();
    p.ask();
    other.wait();
    other.ask();
  };
  EXPECT_CHECKED(child, Not(HasSubstr("check:")));
}

TEST_F(QaicCheck, WhoLearnsOfTheEndInAnotherWayIsNotReported) {
  const auto by_event = [] {
    const Running p;
    QAicEvent* const event = p.event();
    p.send(event);
    p.end();
    EXPECT_EQ(qaicWaitforEvent(event), QS_SUCCESS);
    p.ask();
    EXPECT_EQ(qaicReleaseEvent(event), QS_SUCCESS);
  };
  EXPECT_CHECKED(by_event, Not(HasSubstr("check:")));
  const auto by_count = [] {
    const Running p;
    p.send();
    p.end();
    std::uint64_t count = 0;
    EXPECT_EQ(qaicProgramGetInferenceCompletedCount(p.net, &count), QS_SUCCESS);
    EXPECT_EQ(count, 1U);
    p.ask();
  };
  EXPECT_CHECKED(by_count, Not(HasSubstr("check:")));
  const auto by_order = [] {
    const Running p(QAIC_QUEUE_PROPERTIES_ENABLE_SINGLE_THREADED_QUEUES);
    const Tensors tensors;
    QAicExecObj* const last = p.exec(p.net);
    EXPECT_EQ(tensors.give(last), QS_SUCCESS);
    p.send();
    EXPECT_EQ(qaicEnqueueExecObj(p.sender, last, nullptr), QS_SUCCESS);
    p.end();
    p.end();
    EXPECT_EQ(qaicExecObjWaitForCompletion(last, 0), QS_SUCCESS);
    p.ask();
    EXPECT_EQ(qaicReleaseExecObj(last), QS_SUCCESS);
  };
  EXPECT_CHECKED(by_order, Not(HasSubstr("check:")));
}

TEST_F(QaicCheck, OutputsOfAHandleThatAreAskedForTooEarlyAreReported) {
  // What the classes call where a user asks for the buffers of a handle or of a vector.
  static const auto ask = [](const Checked& p, std::uint32_t handle) {
    const std::vector<QBuffer>& buffers = p.tensors[handle].buffers;
    EXPECT_EQ(qaicBuffersAsked("getBuffers", 2, buffers.data()), QS_SUCCESS);
  };
  const auto early = [] {
    const Checked p;
    const std::uint32_t handle = p.take();
    EXPECT_EQ(qaicInferenceSetSubmit(p.made, handle, 1), QS_SUCCESS);
    ask(p, handle);
    EXPECT_EQ(qaicInferenceSetPutCompleted(p.made, p.collect()), QS_SUCCESS);
    p.end();
  };
  EXPECT_CHECKED(early, AllOf(HasSubstr("check: outputs read before completion: buffer 1"),
                              HasSubstr("begun by qaicInferenceSetSubmit"),
                              HasSubstr("caused by getBuffers")));
  const auto in_time = [] {
    const Checked p;
    const std::uint32_t handle = p.take();
    ask(p, handle);
    EXPECT_EQ(qaicInferenceSetSubmit(p.made, handle, 1), QS_SUCCESS);
    ask(p, 1 - handle);
    p.advance(std::chrono::milliseconds(1));
    EXPECT_EQ(qaicInferenceSetWaitForCompletion(p.made, 0), QS_SUCCESS);
    ask(p, handle);
    EXPECT_EQ(qaicInferenceSetPutCompleted(p.made, p.collect()), QS_SUCCESS);
    EXPECT_EQ(qaicInferenceSetSubmit(p.made, handle, 2), QS_SUCCESS);
    EXPECT_EQ(qaicInferenceSetPutCompleted(p.made, p.collect()), QS_SUCCESS);
    ask(p, handle);
    p.end();
  };
  EXPECT_CHECKED(in_time, Not(HasSubstr("check:")));
}

/// Bytes of a descriptor, mapped.
struct Descriptor {
  Descriptor() : fd(memfd_create("qaic-check", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd, 64), 0);
    data = static_cast<float*>(mmap(nullptr, 64, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    data[0] = 5;
  }
  ~Descriptor() {
    munmap(data, 64);
    close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  QBuffer at(std::uint32_t offset) const {
    return {16, nullptr, static_cast<std::uint64_t>(fd), offset, QBUFFER_TYPE_DMABUF};
  }
  int fd;
  float* data;
};

TEST_F(QaicCheck, ResultsInBuffersOfTheDeviceAreNoNumbersBeforeTheEnd) {
  const auto own = [] {
    const Running p(QAIC_QUEUE_PROPERTIES_DEFAULT, kOwnBuffers);
    const std::vector<QBuffer> buffers = p.ask();
    const auto* const y = reinterpret_cast<const float*>(buffers[1].buf);
    const float x = 7;
    std::memcpy(buffers[0].buf, &x, sizeof x);
    p.send();
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[3]));
    p.wait();
    EXPECT_EQ(y[0], 7);
  };
  EXPECT_CHECKED(own, Not(HasSubstr("check:")));
  const auto of_a_descriptor = [] {
    const Running p;
    const Descriptor shared;
    const QBuffer buffers[2] = {shared.at(0), shared.at(32)};
    EXPECT_EQ(qaicExecObjSetData(p.object, 2, buffers), QS_SUCCESS) << text();
    p.send();
    EXPECT_EQ(shared.data[0], 5) << "an input";
    EXPECT_TRUE(std::isnan(shared.data[8]) && std::isnan(shared.data[11]));
    EXPECT_FALSE(std::isnan(shared.data[12])) << "after the output";
    p.wait();
    EXPECT_EQ(shared.data[8], 5);
  };
  EXPECT_CHECKED(of_a_descriptor, Not(HasSubstr("check:")));
}

TEST_F(QaicCheck, AResultThatReplacesItsInputIsNotMarked) {
  const auto child = [] {
    const Running p;
    const Descriptor shared;
    const QBuffer places[2][2] = {{shared.at(0), shared.at(0)},
                                  {p.tensors.buffers[0], p.tensors.buffers[0]}};
    for (const auto& buffers : places) {
      EXPECT_EQ(qaicExecObjSetData(p.object, 2, buffers), QS_SUCCESS) << text();
      p.send();
      p.wait();
    }
    EXPECT_EQ(shared.data[0], 5);
    EXPECT_EQ(p.tensors.values[0], (std::vector<float>{1, 2, 3, 4}));
  };
  EXPECT_CHECKED(child, Not(HasSubstr("check:")));
}

/// In a queue's order the inference before may still have to read what the next one writes.
TEST_F(QaicCheck, WhatWaitsInAQueueIsNotMarkedBeforeItsTurn) {
  const auto child = [] {
    const Bench bench;
    QAicQueue* const queue = bench.queue(QAIC_QUEUE_PROPERTIES_ENABLE_SINGLE_THREADED_QUEUES);
    QAicProgram* const net = bench.program();
    Tensors all(4);
    const QBuffer pairs[3][2] = {{all.buffers[0], all.buffers[3]},
                                 {all.buffers[1], all.buffers[2]},
                                 {all.buffers[0], all.buffers[1]}};
    all.values[1] = {5, 6, 7, 8};
    QAicExecObj* objects[3];
    for (std::size_t i = 0; i < 3; ++i) {
      objects[i] = bench.exec(net);
      EXPECT_EQ(qaicExecObjSetData(objects[i], 2, pairs[i]), QS_SUCCESS) << text();
      EXPECT_EQ(qaicEnqueueExecObj(queue, objects[i], nullptr), QS_SUCCESS) << text();
    }
    bench.advance(std::chrono::milliseconds(3));
    EXPECT_EQ(all.values[2], (std::vector<float>{5, 6, 7, 8}));
    EXPECT_EQ(all.values[1], (std::vector<float>{1, 2, 3, 4}));
    for (QAicExecObj* one : objects) {
      EXPECT_EQ(qaicExecObjWaitForCompletion(one, 0), QS_SUCCESS);
      EXPECT_EQ(qaicReleaseExecObj(one), QS_SUCCESS);
    }
    EXPECT_EQ(qaicReleaseProgram(net), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
  };
  EXPECT_CHECKED(child, ::testing::_);
}

TEST_F(QaicCheck, SizesThatDoNotFitAreReported) {
  const auto child = [] {
    const Checked p;
    QBuffer buffers[2] = {{3, nullptr}, {16, nullptr}};
    EXPECT_EQ(qaicInferenceSetSetData(p.made, 0, 2, buffers, nullptr), QS_INVAL);
    p.end();
  };
  EXPECT_CHECKED(child, AllOf(HasSubstr("check: qaicInferenceSetSetData"), HasSubstr("3 bytes"),
                              HasSubstr("caused by qaicInferenceSetSetData")));
}

TEST_F(QaicCheck, ObjectsThatAreLeftAtExitAreListedOldestFirst) {
  const auto child = [] {
    const Bench p;
    static_cast<void>(p.event());
    static_cast<void>(p.queue());
  };
  EXPECT_CHECKED(child,
                 AllOf(::testing::ContainsRegex("event .*was not released at exit.*\n.*queue "
                                                ".*was not released at exit"),
                       HasSubstr("caused by qaicCreateEvent")));
}

}  // namespace
}  // namespace corelane::qaic::test
