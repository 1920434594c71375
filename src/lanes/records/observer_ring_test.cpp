#include "lanes/records/observer_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace corelane::lanes {
namespace {

using Delivery = ObserverRing::Delivery;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

device::JobRecord record(std::uint64_t id, std::uint64_t queue = 1) {
  device::JobRecord made;
  made.id = id;
  made.queue = queue;
  return made;
}

/// Options that write down what they are called with: ids of records, and 0 for an event.
struct Notes {
  device::ObserverOptions options() {
    device::ObserverOptions made;
    made.on_event = [this](const device::Event&) { ids.push_back(0); };
    made.on_record = [this](const device::JobRecord& r) { ids.push_back(r.id); };
    return made;
  }
  std::vector<std::uint64_t> ids;
};

TEST(ObserverRing, OrderIsKeptBetweenEventsAndRecords) {
  Notes notes;
  ObserverRing ring(notes.options());
  EXPECT_EQ(ring.note(record(1)), Delivery::kSoon);
  EXPECT_EQ(ring.note(record(2)), Delivery::kNone);
  EXPECT_EQ(ring.note(device::Event{}), Delivery::kNow);
  EXPECT_EQ(ring.note(record(3)), Delivery::kNone);
  ring.deliver();
  EXPECT_THAT(notes.ids, ElementsAre(1, 2, 0, 3));
  EXPECT_EQ(ring.note(record(4)), Delivery::kSoon);
}

TEST(ObserverRing, EventsWaitForOthersOnRequest) {
  Notes notes;
  auto options = notes.options();
  options.group_events = true;
  ObserverRing ring(options);
  EXPECT_EQ(ring.note(device::Event{}), Delivery::kSoon);
  EXPECT_EQ(ring.note(record(1)), Delivery::kNone);
  ring.deliver();
  EXPECT_THAT(notes.ids, ElementsAre(0, 1));
}

TEST(ObserverRing, FilterAndSampleArePerObserver) {
  Notes notes;
  auto options = notes.options();
  options.queue = 7;
  options.one_in = 3;
  ObserverRing ring(options);
  for (std::uint64_t id = 1; id <= 20; ++id) ring.note(record(id, id % 2 == 0 ? 7 : 1));
  ring.deliver();
  // Of 2, 4, ..., 20 the first, fourth, ...
  EXPECT_THAT(notes.ids, ElementsAre(2, 8, 14, 20));
  EXPECT_EQ(ring.dropped(), 0U);
}

TEST(ObserverRing, WhatComesWhileItIsFullIsDroppedAndCounted) {
  Notes notes;
  auto options = notes.options();
  options.ring = 4;
  ObserverRing ring(options);
  EXPECT_EQ(ring.note(record(1)), Delivery::kSoon);
  // Half of it is full: no more waiting for others.
  EXPECT_EQ(ring.note(record(2)), Delivery::kNow);
  for (std::uint64_t id = 3; id <= 6; ++id) ring.note(record(id));
  ring.note(device::Event{});
  EXPECT_EQ(ring.dropped(), 3U);
  ring.deliver();
  EXPECT_THAT(notes.ids, ElementsAre(1, 2, 3, 4));
  ring.note(record(7));
  ring.deliver();
  EXPECT_EQ(notes.ids.back(), 7U);
}

TEST(ObserverRing, AfterItsEndNothingIsDelivered) {
  Notes notes;
  ObserverRing ring(notes.options());
  ring.note(record(1));
  ring.close();
  ring.deliver();
  EXPECT_THAT(notes.ids, IsEmpty());
}

TEST(ObserverRing, WhatIsNotWantedIsNotKept) {
  Notes notes;
  auto options = notes.options();
  options.on_event = nullptr;
  ObserverRing ring(options);
  EXPECT_EQ(ring.note(device::Event{}), Delivery::kNone);
  ring.deliver();
  EXPECT_THAT(notes.ids, IsEmpty());
}

TEST(ObserverRing, AThrowingObserverGetsTheRest) {
  int calls = 0;
  device::ObserverOptions options;
  options.on_record = [&](const device::JobRecord&) {
    if (++calls == 1) throw std::runtime_error("no");
  };
  ObserverRing ring(options);
  ring.note(record(1));
  ring.note(record(2));
  ring.deliver();
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace corelane::lanes
