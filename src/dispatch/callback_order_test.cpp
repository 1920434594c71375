#include "dispatch/callback_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace corelane::dispatch {
namespace {

using ::testing::ElementsAre;

TEST(CallbackOrder, SequentialHoldsBackWhatIsEarly) {
  CallbackOrder<int> order(true);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(order.draw(), static_cast<std::uint64_t>(i));
  EXPECT_THAT(order.complete(2, 2), ElementsAre());
  EXPECT_THAT(order.complete(1, 1), ElementsAre());
  EXPECT_THAT(order.complete(0, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(order.complete(3, 3), ElementsAre(3));
}

TEST(CallbackOrder, UnorderedGivesThemAsTheyCome) {
  CallbackOrder<int> order(false);
  for (int i = 0; i < 3; ++i) order.draw();
  EXPECT_THAT(order.complete(2, 2), ElementsAre(2));
  EXPECT_THAT(order.complete(0, 0), ElementsAre(0));
}

}  // namespace
}  // namespace corelane::dispatch
