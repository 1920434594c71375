#include "dispatch/delivery_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace corelane::dispatch {
namespace {

using testing::ElementsAre;

struct Bench {
  explicit Bench(std::shared_ptr<Clock> clock)
      : thread(std::make_shared<DeliveryThread>(std::move(clock), "a-thread", "a-part")) {}
  ~Bench() { thread->stop_and_join(); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  std::vector<int> seen;
  std::shared_ptr<DeliveryThread> thread;
  std::shared_ptr<DeliveryRing<int>> ring =
      std::make_shared<DeliveryRing<int>>(8, 1, [this](const int& item) {
        EXPECT_TRUE(thread->is_current());
        seen.push_back(item);
      });
};

TEST(DeliveryThread, UnderAVirtualClockNothingWaitsForOthers) {
  Bench bench(std::make_shared<VirtualClock>());
  ASSERT_TRUE(bench.thread->start().ok());
  bench.thread->arrange(bench.ring, bench.ring->add_sampled(1));
  EXPECT_TRUE(bench.ring->flush(*real_clock(), kNever));
  EXPECT_THAT(bench.seen, ElementsAre(1));
}

TEST(DeliveryThread, ItemsComeInTimeByThemselves) {
  Bench bench(real_clock());
  bench.thread->arrange(bench.ring, bench.ring->add_sampled(1));
  bench.thread->arrange(bench.ring, bench.ring->add_sampled(2));
  EXPECT_TRUE(bench.ring->flush(*real_clock(), kNever));
  EXPECT_THAT(bench.seen, ElementsAre(1, 2));
}

TEST(DeliveryThread, AFlushDeliversWhatNobodyArranged) {
  Bench bench(std::make_shared<VirtualClock>());
  bench.ring->add_sampled(1);
  EXPECT_TRUE(bench.thread->flush(bench.ring, kNever));
  EXPECT_THAT(bench.seen, ElementsAre(1));
}

TEST(DeliveryThread, ItMayGoWhileADeliveryIsArranged) {
  auto ring = std::make_shared<DeliveryRing<int>>(8, 1, [](const int&) {});
  {
    const auto thread = std::make_shared<DeliveryThread>(real_clock(), "a-thread", "a-part");
    thread->arrange(ring, ring->add_sampled(1));
    thread->stop();
  }
  EXPECT_EQ(ring->dropped(), 0U);
}

}  // namespace
}  // namespace corelane::dispatch
