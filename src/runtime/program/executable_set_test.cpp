#include "runtime/program/executable_set.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>
#include <vector>

#include "runtime/testing/fake_program.h"

namespace corelane::runtime {
namespace {

/// A set over a device whose first dimension is open; nothing is prepared yet.
struct Open {
  explicit Open(std::size_t constants = 0, std::size_t limit = device::kReplicateLimit)
      : set(device, {"onnx", graph, {}, {}, {}}, {.replicate_limit = limit}, description) {
    description.constant_bytes = constants;
  }
  testing::FakeConfig config = testing::one_in_one_out({Shape::kOpen, 4});
  std::shared_ptr<testing::FakeDevice> device = std::make_shared<testing::FakeDevice>(config);
  ProgramDescription description = testing::fake_description(config);
  ByteVector graph = ByteVector(16, std::byte{1});
  ExecutableSet set;

  std::shared_ptr<device::Executable> rows(std::int64_t n) {
    auto entry = set.for_shapes(std::vector<Shape>{{n, 4}});
    EXPECT_TRUE(entry) << entry.error().to_string();
    return entry ? entry->executable : nullptr;
  }
};

TEST(ExecutableSet, TwoShapesArePreparedAtTheSameTime) {
  Open open;
  std::latch inside(2);  // Opens only while both are in prepare().
  open.device->on_prepare = [&](const device::PrepareOptions&) {
    inside.arrive_and_wait();
    return Status();
  };
  std::thread other([&] { EXPECT_NE(open.rows(1), nullptr); });
  EXPECT_NE(open.rows(2), nullptr);
  other.join();
  EXPECT_EQ(open.device->prepared.size(), 2U);
}

TEST(ExecutableSet, WhatIsPreparedIsServedWhileAnotherShapeIsPrepared) {
  Open open;
  const auto first = open.rows(1);
  std::latch inside(1);
  std::latch served(1);
  open.device->on_prepare = [&](const device::PrepareOptions&) {
    inside.count_down();
    served.wait();
    return Status();
  };
  std::thread other([&] { EXPECT_NE(open.rows(2), nullptr); });
  inside.wait();
  EXPECT_EQ(open.rows(1), first);
  EXPECT_EQ(open.set.all().size(), 1U);
  served.count_down();
  other.join();
  EXPECT_EQ(open.set.all().size(), 2U);
}

TEST(ExecutableSet, TheSameShapesArePreparedOnce) {
  Open open;
  constexpr int kThreads = 4;
  std::latch asked(kThreads);
  open.device->on_prepare = [&](const device::PrepareOptions&) {
    asked.wait();
    return Status();
  };
  std::vector<std::shared_ptr<device::Executable>> made(kThreads);
  std::vector<std::thread> threads;
  for (auto& executable : made)
    threads.emplace_back([&] {
      asked.count_down();
      executable = open.rows(3);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(open.device->prepared.size(), 1U);
  for (const auto& executable : made) EXPECT_EQ(executable, made[0]);
}

TEST(ExecutableSet, ShapesThatFailedMayBeAskedForAgain) {
  Open open;
  open.device->on_prepare = [](const device::PrepareOptions&) -> Status {
    return error(Code::kOutOfMemory, "none left");
  };
  const std::vector<Shape> shapes{{5, 4}};
  EXPECT_EQ(open.set.for_shapes(shapes).error().code(), Code::kOutOfMemory);
  open.device->on_prepare = nullptr;
  EXPECT_NE(open.rows(5), nullptr);
}

TEST(ExecutableSet, ALostOneIsPreparedAgainAndTheOthersGo) {
  Open open;
  const auto first = open.rows(1);
  const auto second = open.rows(2);
  ASSERT_NE(open.rows(3), nullptr);
  ++*open.device->losses;
  const auto again = open.rows(2);
  EXPECT_NE(again, second);
  EXPECT_FALSE(again->lost());
  EXPECT_EQ(open.rows(2), again);
  EXPECT_EQ(open.device->prepared.size(), 4U);
  EXPECT_EQ(open.set.all().size(), 2U) << "the first, where contexts begin, and this one";
  EXPECT_EQ(open.set.first().executable, first);
  EXPECT_FALSE(open.rows(1)->lost());
  EXPECT_FALSE(open.set.first().executable->lost());
  EXPECT_EQ(open.set.all().size(), 2U);
}

TEST(ExecutableSet, AFailureThatOtherShapesWouldNotChangeIsHandedOn) {
  for (const Code code : {Code::kDeviceLost, Code::kOutOfMemory, Code::kTimeout}) {
    Open open;
    int asked = 0;
    open.device->on_prepare = [&](const device::PrepareOptions&) -> Status {
      return ++asked == 1 ? Status(error(code, "for now")) : Status();
    };
    const Status failed = open.set.prepare_first();
    EXPECT_EQ(failed.code(), code) << "with the batch fixed";
    EXPECT_EQ(failed.message(), "for now");
  }
}

TEST(ExecutableSet, TheLeastRecentlyUsedGoBeyondTheLimitOfCopies) {
  Open open(100, 250);  // Two sets of constants beside the first.
  for (const std::int64_t n : {1, 2, 3, 2, 4}) ASSERT_NE(open.rows(n), nullptr);
  EXPECT_EQ(open.device->prepared.size(), 4U);
  EXPECT_EQ(open.set.all().size(), 3U);
  for (const std::int64_t n : {1, 2, 4}) ASSERT_NE(open.rows(n), nullptr);
  EXPECT_EQ(open.device->prepared.size(), 4U) << "these stayed";
  ASSERT_NE(open.rows(3), nullptr);
  EXPECT_EQ(open.device->prepared.size(), 5U);
  EXPECT_EQ(open.set.all().size(), 3U);
}

TEST(ExecutableSet, WithoutRoomForCopiesTheFirstAndTheLastStay) {
  Open open(100, 0);
  const auto first = open.rows(1);
  for (const std::int64_t n : {2, 3, 3}) ASSERT_NE(open.rows(n), nullptr);
  EXPECT_EQ(open.set.all().size(), 2U);
  EXPECT_EQ(open.set.first().executable, first);
  EXPECT_EQ(open.device->prepared.size(), 3U);
}

TEST(ExecutableSet, WithoutConstantsALimitedNumberStays) {
  Open open;
  for (std::int64_t n = 1; n <= 40; ++n) ASSERT_NE(open.rows(n), nullptr);
  EXPECT_EQ(open.set.all().size(), 32U);
}

}  // namespace
}  // namespace corelane::runtime
