#include "base/trust/environment_switch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "corelane/base/log.h"

namespace corelane {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kName = "CORELANE_TEST_SWITCH";

/// What the log gets while it lives; the variable is gone afterwards.
struct EnvironmentSwitchTest : ::testing::Test {
  EnvironmentSwitchTest() {
    log::set_callback(
        [this](log::Level, std::string_view, std::string_view text) { lines.emplace_back(text); });
  }
  ~EnvironmentSwitchTest() override {
    log::set_callback({});
    ::unsetenv(kName);
  }
  std::vector<std::string> lines;
};

TEST_F(EnvironmentSwitchTest, TakesZeroAndOneAndTheDefault) {
  for (const bool by_default : {false, true}) {
    EnvironmentSwitch variable(kName, by_default);
    ::unsetenv(kName);
    EXPECT_EQ(variable.on(), by_default);
    ::setenv(kName, "", 1);
    EXPECT_EQ(variable.on(), by_default);
    ::setenv(kName, "0", 1);
    EXPECT_FALSE(variable.on());
    ::setenv(kName, "1", 1);
    EXPECT_TRUE(variable.on());
  }
  EXPECT_THAT(lines, IsEmpty());
}

TEST_F(EnvironmentSwitchTest, AnotherValueIsTheDefaultAndToldOnce) {
  EnvironmentSwitch on_by_default(kName, true);
  ::setenv(kName, "off", 1);
  EXPECT_TRUE(on_by_default.on());
  EXPECT_TRUE(on_by_default.on());
  EnvironmentSwitch off_by_default(kName, false);
  ::setenv(kName, "yes", 1);
  EXPECT_FALSE(off_by_default.on());
  EXPECT_THAT(lines, ElementsAre("CORELANE_TEST_SWITCH is 'off'; allowed are 0 and 1; using 1",
                                 "CORELANE_TEST_SWITCH is 'yes'; allowed are 0 and 1; using 0"));
}

}  // namespace
}  // namespace corelane
