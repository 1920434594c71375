// Observers of a device with threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "lanes/testing/lane_engine_fake.h"

namespace corelane::lanes {
namespace {

using device::JobRecord;
using device::ObserverOptions;

/// Collects the ids of records; read after a flush.
struct Ids {
  ObserverOptions options() {
    ObserverOptions made;
    made.on_record = [this](const JobRecord& record) { all.push_back(record.id); };
    return made;
  }
  std::vector<std::uint64_t> all;
};

TEST(LaneObserver, AllSeeTheSameAndTakeNothingFromEachOther) {
  FakeDevice fake(2);
  Ids one;
  Ids two;
  auto first = *fake.device->observe(one.options());
  ASSERT_TRUE(fake.device->set_trace(100).ok());
  const auto second = *fake.device->observe(two.options());
  for (int i = 0; i < 20; ++i) {
    const auto job = fake.job();
    ASSERT_TRUE(i % 2 == 0 ? fake.queue->run(job).ok() : (*fake.queue->submit(job))->wait());
  }
  EXPECT_TRUE(first->flush() && second->flush());
  EXPECT_EQ(one.all.size(), 20U);
  EXPECT_EQ(one.all, two.all);
  EXPECT_EQ(fake.device->read_trace()->size(), 20U);
  first.reset();
  ASSERT_TRUE(fake.queue->run(fake.job()).ok());
  EXPECT_TRUE(second->flush());
  EXPECT_EQ(one.all.size(), 20U);
  EXPECT_EQ(two.all.size(), 21U);
  EXPECT_EQ(second->dropped(), 0U);
}

TEST(LaneObserver, RecordsOfOneQueue) {
  FakeDevice fake(1);
  const auto other = *fake.device->make_queue({});
  Ids ids;
  ObserverOptions options = ids.options();
  options.queue = other->id();
  const auto observation = *fake.device->observe(std::move(options));
  ASSERT_TRUE(fake.queue->run(fake.job()).ok());
  ASSERT_TRUE(other->run(fake.job()).ok());
  ASSERT_TRUE((*other->submit(fake.job()))->wait());
  EXPECT_TRUE(observation->flush());
  EXPECT_EQ(ids.all.size(), 2U);
}

TEST(LaneObserver, ASlowOneHoldsUpNoJob) {
  FakeDevice fake(1);
  Gate gate;
  std::atomic<std::uint64_t> delivered{0};
  ObserverOptions options;
  options.ring = 2;
  options.on_record = [&](const JobRecord&) {
    ++delivered;
    gate.pass();
  };
  const auto observation = *fake.device->observe(std::move(options));
  ASSERT_TRUE(fake.queue->run(fake.job()).ok());
  ASSERT_TRUE(fake.queue->run(fake.job()).ok());
  gate.await(1);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(fake.queue->run(fake.job()).ok());
  // The call that waits has the first record, or the first two, and the ring two more at most.
  EXPECT_GE(observation->dropped(), 8U);
  EXPECT_FALSE(observation->flush(TimePoint{}));
  gate.open();
  EXPECT_TRUE(observation->flush());
  EXPECT_EQ(delivered + observation->dropped(), 12U);
}

TEST(LaneObserver, ItsEndWaitsForACallThatRuns) {
  FakeDevice fake(1);
  Gate gate;
  std::atomic<bool> returned = false;
  ObserverOptions options;
  options.on_event = [&](const device::Event&) {
    gate.pass();
    returned = true;
  };
  auto observation = *fake.device->observe(std::move(options));
  ASSERT_TRUE(fake.device->reset(device::CoreSet::of({0})).ok());
  ASSERT_TRUE(fake.device->reset(device::CoreSet::of({0})).ok());
  gate.await(1);
  std::thread opens([&] { gate.open(); });
  observation.reset();
  EXPECT_TRUE(returned);
  opens.join();
}

TEST(LaneObserver, MayEndInItsOwnCallAndTakeTheDeviceAlong) {
  auto done = std::make_shared<device::Fence>();
  {
    auto fake = std::make_unique<FakeDevice>(1);
    auto held = std::make_shared<std::shared_ptr<device::Observation>>();
    ObserverOptions options;
    options.on_event = [held, done](const device::Event&) {
      EXPECT_FALSE((*held)->flush());
      held->reset();
      done->signal();
    };
    *held = *fake->device->observe(std::move(options));
    ASSERT_TRUE(fake->device->reset(device::CoreSet::of({0})).ok());
  }
  EXPECT_TRUE(done->wait());
}

TEST(LaneObserver, OptionsThatCannotBeAreRefused) {
  FakeDevice fake(1);
  const auto refused = [&](ObserverOptions options) {
    return fake.device->observe(std::move(options)).error().code() == Code::kInvalidArgument;
  };
  Ids ids;
  EXPECT_TRUE(refused({}));
  ObserverOptions options = ids.options();
  options.one_in = 0;
  EXPECT_TRUE(refused(options));
  options = ids.options();
  options.ring = 0;
  EXPECT_TRUE(refused(options));
}

}  // namespace
}  // namespace corelane::lanes
