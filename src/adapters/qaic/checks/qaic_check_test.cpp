/// The checking mode, each case in a process of its own: the variable is read once.
#include "adapters/qaic/checks/qaic_check.h"

#include <cmath>
#include <cstdlib>

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
