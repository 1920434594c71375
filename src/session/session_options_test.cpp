#include "corelane/session/session_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corelane/session/session.h"

namespace corelane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Schedule, ListsWithCommasBlanksAndBracketsAreRead) {
  EXPECT_THAT(*parse_schedule("0,1,2"), ElementsAre(0, 1, 2));
  EXPECT_THAT(*parse_schedule("[0, 1]"), ElementsAre(0, 1));
  EXPECT_THAT(*parse_schedule("0 1"), ElementsAre(0, 1));
  EXPECT_THAT(*parse_schedule("  2  "), ElementsAre(2));
  EXPECT_THAT(*parse_schedule("0 , 0,\t1"), ElementsAre(0, 0, 1));
  EXPECT_THAT(*parse_schedule("[ 3 ]"), ElementsAre(3));
}

TEST(Schedule, EverythingElseIsRefusedByItsToken) {
  for (const char* text : {"", " ", "[]", "[ ]", "abc", "-1", "0,-1", "0;1", "0,x,1", "0,,1", ",0",
                           "0,", "1.5", "[0", "0]", "[", "+1", "0x1", "99999999999999999999999"}) {
    const auto cores = parse_schedule(text);
    ASSERT_FALSE(cores) << "'" << text << "'";
    EXPECT_EQ(cores.error().code(), Code::kInvalidArgument);
  }
  EXPECT_THAT(parse_schedule("0,x,1").error().message(), HasSubstr("'x'"));
  EXPECT_THAT(parse_schedule("0;1").error().message(), HasSubstr("'0;1'"));
  EXPECT_THAT(parse_schedule("").error().message(), HasSubstr("must not be empty"));
}

TEST(TpModeText, SevenModesAndTheirCores) {
  using device::CoreSet;
  const std::vector<std::pair<const char*, CoreSet>> known = {
      {"auto", CoreSet::any()},   {"all", CoreSet::platform()}, {"0", CoreSet::mask(1)},
      {"1", CoreSet::mask(2)},    {"2", CoreSet::mask(4)},      {"0,1", CoreSet::mask(3)},
      {"0,1,2", CoreSet::mask(7)}};
  for (const auto& [text, cores] : known) {
    const auto mode = parse_tp_mode(text);
    ASSERT_TRUE(mode) << text;
    EXPECT_EQ(cores_of(*mode), cores) << text;
    EXPECT_EQ(tp_mode_name(*mode), text);
  }
  EXPECT_EQ(parse_tp_mode(" AUTO "), TpMode::kAuto);
  EXPECT_EQ(parse_tp_mode("0, 1"), TpMode::kCores01);
}

TEST(TpModeText, UnknownSetsAreRefused) {
  for (const char* text : {"", "1,0", "0,2", "1,2", "3", "none", "0,1,2,3"})
    EXPECT_FALSE(parse_tp_mode(text)) << text;
}

TEST(TpModeText, AutoIsAnyCoreAndNotCoreZero) {
  EXPECT_EQ(cores_of(TpMode::kAuto), device::CoreSet::any());
  EXPECT_EQ(cores_of(TpMode::kAll), device::CoreSet::platform());
  EXPECT_EQ(cores_of(TpMode::kCores012), device::CoreSet::of({0, 1, 2}));
}

TEST(LayoutText, NamesAndTheirOtherNames) {
  EXPECT_EQ(parse_input_layout("Original"), InputLayout::kNchw);
  EXPECT_EQ(parse_input_layout("nchw"), InputLayout::kNchw);
  EXPECT_EQ(parse_input_layout("NCHW_SOFTWARE"), InputLayout::kNchwSoftware);
  EXPECT_EQ(parse_input_layout("original_software"), InputLayout::kNchwSoftware);
  EXPECT_EQ(parse_input_layout("nhwc"), InputLayout::kNhwc);
  EXPECT_EQ(parse_input_layout("any"), InputLayout::kAny);
  EXPECT_FALSE(parse_input_layout("nwhc"));
  EXPECT_EQ(parse_placement("Least_Loaded"), PlacementPolicy::kLeastLoaded);
  EXPECT_FALSE(parse_placement("random"));
}

TEST(SessionOptionsCheck, ARunsTimeIsNoneOrMore) {
  SessionOptions options;
  EXPECT_EQ(options.run_timeout, Duration{0});
  options.run_timeout = Duration{1};
  EXPECT_TRUE(check(options, 1).ok());
  options.run_timeout = Duration{-1};
  EXPECT_EQ(check(options, 1).code(), Code::kInvalidArgument);
}

TEST(SessionOptionsCheck, DefaultsFitEveryDevice) {
  EXPECT_TRUE(check(SessionOptions{}, 1).ok());
  EXPECT_TRUE(check(SessionOptions{}, 16).ok());
}

TEST(SessionOptionsCheck, NumbersOutOfRangeAreRefused) {
  const auto refused = [](auto change) {
    SessionOptions options;
    change(options);
    return check(options, 3).code() == Code::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](auto& o) { o.threads_per_core = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.threads_per_core = -1; }));
  EXPECT_TRUE(refused([](auto& o) { o.threads_per_core = 65; }));
  EXPECT_TRUE(refused([](auto& o) { o.max_queue_size = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.max_queue_size = -1; }));
  EXPECT_TRUE(refused([](auto& o) { o.max_pending_callbacks = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.submit_timeout = Duration{0}; }));
  EXPECT_TRUE(refused([](auto& o) { o.tp_mode = TpMode{99}; }));
  EXPECT_TRUE(refused([](auto& o) { o.placement = PlacementPolicy{3}; }));
  EXPECT_TRUE(refused([](auto& o) { o.layout = InputLayout{50}; }));
  EXPECT_TRUE(refused([](auto& o) { o.input_rules = InputRules{2}; }));
  EXPECT_TRUE(refused([](auto& o) { o.output_form = OutputForm{3}; }));
  EXPECT_TRUE(refused([](auto& o) {
    o.schedule = {0};
    o.tp_mode = TpMode::kAuto;
  }));
  SessionOptions unlimited;
  unlimited.max_queue_size = kUnlimited;
  EXPECT_TRUE(check(unlimited, 3).ok());
}

TEST(SessionOptionsCheck, CoresThatAreNotThereAreNamed) {
  SessionOptions options;
  options.schedule = {0, 5};
  const Status status = check(options, 3);
  EXPECT_EQ(status.code(), Code::kOutOfCores);
  EXPECT_THAT(status.message(), HasSubstr("core 5"));
  options.schedule = {0, 1};
  EXPECT_EQ(check(options, 1).code(), Code::kOutOfCores);
  options.schedule = {64};
  EXPECT_EQ(check(options, 64).code(), Code::kOutOfCores);
  SessionOptions tp;
  tp.tp_mode = TpMode::kCores012;
  EXPECT_EQ(check(tp, 2).code(), Code::kOutOfCores);
  EXPECT_EQ(check(tp, 2).detail(Detail::kGiven), "tp_mode 0,1,2");
  EXPECT_EQ(check(tp, 2).detail(Detail::kLimit), "2 cores");
  EXPECT_TRUE(check(tp, 3).ok());
  tp.tp_mode = TpMode::kAll;
  EXPECT_TRUE(check(tp, 2).ok());
  EXPECT_EQ(check(tp, 1).code(), Code::kOutOfCores);
  EXPECT_EQ(check(tp, 1).detail(Detail::kGiven), "tp_mode all");
  EXPECT_EQ(check(tp, 1).detail(Detail::kLimit), "1 core");
}

}  // namespace
}  // namespace corelane
