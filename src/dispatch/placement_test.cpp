#include "dispatch/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace corelane::dispatch {
namespace {

using ::testing::ElementsAre;

TEST(Placement, TaskTGoesToTheScheduleModuloItsLength) {
  for (const std::vector<std::size_t>& schedule :
       std::vector<std::vector<std::size_t>>{{0, 1, 2}, {0, 0, 1}, {2, 0}, {1}}) {
    for (std::uint64_t t = 0; t < 300; ++t)
      EXPECT_EQ(core_of_task(schedule, t), schedule[t % schedule.size()]);
  }
}

TEST(Placement, UniqueCoresRise) {
  const std::vector<std::size_t> schedule = {2, 0, 2, 1, 0};
  EXPECT_THAT(unique_cores(schedule), ElementsAre(0, 1, 2));
  EXPECT_THAT(unique_cores({}), ElementsAre());
}

TEST(Placement, TheLeastLoadedCoreTakesTheTask) {
  const std::vector<IdleContext> idle = {{0, 1}, {1, 0}, {2, 0}};
  EXPECT_EQ(least_loaded(idle, 0), 1U);
  EXPECT_EQ(least_loaded(idle, 2), 2U);  // The formula breaks the tie.
  EXPECT_EQ(least_loaded(idle, -1), 1U);
}

}  // namespace
}  // namespace corelane::dispatch
