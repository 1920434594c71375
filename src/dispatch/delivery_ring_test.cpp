#include "dispatch/delivery_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

namespace corelane::dispatch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A ring that writes down what it delivers.
struct Notes {
  std::vector<int> seen;
  DeliveryRing<int> ring;
  explicit Notes(std::size_t capacity = 8, std::uint32_t one_in = 1)
      : ring(capacity, one_in, [this](const int& item) { seen.push_back(item); }) {}
};

TEST(DeliveryRing, AsksForADeliveryOnceAndSoonerWhereItMust) {
  Notes notes(4);
  EXPECT_EQ(notes.ring.add_sampled(1), Delivery::kSoon);
  EXPECT_EQ(notes.ring.add_each(2, true), Delivery::kNow) << "half of it is full, too";
  EXPECT_EQ(notes.ring.add_each(3, true), Delivery::kNone);
  notes.ring.deliver();
  EXPECT_THAT(notes.seen, ElementsAre(1, 2, 3));
  EXPECT_EQ(notes.ring.add_each(4, false), Delivery::kSoon);
  notes.ring.not_arranged();
  EXPECT_EQ(notes.ring.add_each(5, false), Delivery::kNow);
}

TEST(DeliveryRing, TheSampleCountsWhatIsSampled) {
  Notes notes(8, 3);
  for (int i = 0; i < 8; ++i) {
    notes.ring.add_sampled(i);
    if (i == 4) notes.ring.add_each(100, true);
  }
  notes.ring.deliver();
  EXPECT_THAT(notes.seen, ElementsAre(0, 3, 100, 6));
}

TEST(DeliveryRing, WhatIsAddedInACallIsDeliveredToo) {
  std::vector<int> seen;
  DeliveryRing<int>* self = nullptr;
  DeliveryRing<int> ring(4, 1, [&](const int& item) {
    seen.push_back(item);
    if (item < 3) self->add_sampled(item + 1);
    EXPECT_FALSE(self->flush(*real_clock(), kNever)) << "in its own call";
  });
  self = &ring;
  ring.add_sampled(1);
  ring.deliver();
  EXPECT_THAT(seen, ElementsAre(1, 2, 3));
}

/// What an observer holds may call the ring when it goes.
TEST(DeliveryRing, FunctionThatEndsItsSubscriptionGoesWithoutTheLock) {
  std::shared_ptr<DeliveryRing<int>> ring;
  bool asked = false;
  const auto last_words = [&](void*) {
    static_cast<void>(ring->add_each(7, false));
    asked = true;
  };
  auto held = std::shared_ptr<void>(nullptr, last_words);
  ring = std::make_shared<DeliveryRing<int>>(4, 1, [&, held](const int&) { ring->close(); });
  held.reset();
  ring->add_sampled(1);
  ring->deliver();
  EXPECT_TRUE(asked);
}

TEST(DeliveryRing, AFullRingDropsAndCounts) {
  Notes notes(2);
  for (int i = 0; i < 5; ++i) notes.ring.add_sampled(i);
  EXPECT_EQ(notes.ring.dropped(), 3U);
  notes.ring.deliver();
  EXPECT_THAT(notes.seen, ElementsAre(0, 1));
}

TEST(DeliveryRing, ClosedItDeliversNothingAndNobodyWaits) {
  Notes notes;
  notes.ring.add_sampled(1);
  EXPECT_FALSE(notes.ring.flush(*real_clock(), TimePoint{}));
  auto flushed = std::async([&] { return notes.ring.flush(*real_clock(), kNever); });
  notes.ring.close();
  EXPECT_TRUE(flushed.get());
  notes.ring.deliver();
  EXPECT_THAT(notes.seen, IsEmpty());
}

}  // namespace
}  // namespace corelane::dispatch
