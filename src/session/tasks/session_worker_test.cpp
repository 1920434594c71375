#include "session/tasks/session_worker.h"

#include <gtest/gtest.h>

namespace corelane::session {
namespace {

using std::chrono::milliseconds;

Code code_of_run(Code code, TimePoint deadline, const Clock& clock) {
  return SessionWorker::of_run(error(code, "the driver said so"), deadline, clock).code();
}

TEST(SessionRunFailure, ADriversCodeIsNeitherTheCallersArgumentNorTheCallersTimeLimit) {
  const VirtualClock clock;
  for (const Code code : {Code::kInvalidArgument, Code::kNotFound, Code::kOutOfRange,
                          Code::kWrongState, Code::kUnsupported, Code::kTimeout}) {
    for (const TimePoint deadline : {kNever, clock.now() + milliseconds(1)}) {
      const Status status =
          SessionWorker::of_run(error(code, "the driver said so"), deadline, clock);
      EXPECT_EQ(status.code(), Code::kEngineFailed) << code_name(code);
      EXPECT_EQ(status.cause().code(), code);
    }
  }
}

TEST(SessionRunFailure, TheCallersTimeLimitStays) {
  const VirtualClock clock;
  EXPECT_EQ(code_of_run(Code::kTimeout, clock.now(), clock), Code::kTimeout);
}

TEST(SessionRunFailure, WhatSaysSomethingOfTheRunStays) {
  const VirtualClock clock;
  for (const Code code : {Code::kShapeMismatch, Code::kCancelled, Code::kDeviceReset,
                          Code::kDeviceLost, Code::kBadResult, Code::kEngineFailed,
                          Code::kHostOperatorFailed, Code::kOutOfMemory, Code::kForeignImage})
    EXPECT_EQ(code_of_run(code, kNever, clock), code) << code_name(code);
  EXPECT_TRUE(SessionWorker::of_run({}, kNever, clock).ok());
}

}  // namespace
}  // namespace corelane::session
