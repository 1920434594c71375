#include "drivers/null/null_script.h"

#include <gtest/gtest.h>

namespace corelane::drivers::null {
namespace {

using std::chrono::microseconds;

TEST(NullScript, TimeFollowsBatchCoreAndWidth) {
  const auto spec = *device::parse_device_spec("null:rk3588?a=1ms&b=100us&core2=2");
  const Script script = *read_script(spec, 3);
  EXPECT_EQ(script.time_of(1, 1), microseconds(1100));
  EXPECT_EQ(script.time_of(1, 10), microseconds(2000));
  EXPECT_EQ(script.time_of(4, 1), microseconds(2200));
  EXPECT_EQ(script.time_of(3, 1), microseconds(550));
  EXPECT_EQ(script.time_of(6, 1), microseconds(1100));
}

TEST(NullScript, TimesThatAreTooLongAreTheLongest) {
  const std::string most = "4294967295s";
  const auto script = [](const std::string& options) {
    return *read_script(*device::parse_device_spec("null:rk3588?" + options), 3);
  };
  EXPECT_EQ(script("a=" + most).time_of(1, 1), std::chrono::seconds(4294967295));
  EXPECT_EQ(script("a=" + most + "&core0=1000").time_of(1, 1), Duration::max());
  EXPECT_EQ(script("b=" + most).time_of(1, 3), Duration::max());
  EXPECT_EQ(script("b=" + most).time_of(1, 4294967295), Duration::max());
  EXPECT_EQ(script("a=" + most + "&b=1s").time_of(1, 4294967295), std::chrono::seconds(8589934590));
  EXPECT_EQ(script("a=" + most + "&b=" + most).time_of(1, 2), Duration::max());
  EXPECT_EQ(sum_of(Duration::max(), Duration::max()), Duration::max());
}

TEST(NullScript, DurationsNeedAUnit) {
  EXPECT_EQ(parse_duration("5ns")->count(), 5);
  EXPECT_EQ(*parse_duration("2s"), std::chrono::seconds(2));
  for (const char* text : {"", "5", "ms", "-1ms", "1.5ms", "1 ms", "99999999999ms"})
    EXPECT_EQ(parse_duration(text).error().code(), Code::kInvalidArgument) << text;
}

}  // namespace
}  // namespace corelane::drivers::null
