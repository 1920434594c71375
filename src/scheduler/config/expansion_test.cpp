#include "scheduler/config/expansion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace corelane::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<std::string> expand(std::string_view text, Config& config) {
  return expand_backend(parse_backend(text).value(), config);
}

TEST(Expansion, AChainBecomesOneKeyForEachBackend) {
  Config config;
  EXPECT_EQ(expand("A[B[C]]", config).value(), "A");
  EXPECT_EQ(config, (Config{{"A::backend", "B"}, {"B::backend", "C"}}));
}

TEST(Expansion, ParametersBecomeKeysOfTheirBackend) {
  Config config = {{"k", "of the node"}};
  EXPECT_EQ(expand("A(k=v)[B(l=w)]", config).value(), "A");
  EXPECT_EQ(config,
            (Config{{"k", "of the node"}, {"A::k", "v"}, {"A::backend", "B"}, {"B::l", "w"}}));
}

TEST(Expansion, StagesStayOneText) {
  Config config;
  EXPECT_EQ(expand("A[S[a(k=v), (swap)b[c]]]", config).value(), "A");
  EXPECT_EQ(config, (Config{{"A::backend", "S"}, {"S::backend", "a(k=v),(swap)b[c]"}}));
}

TEST(Expansion, AKeyThatIsThereIsExpandedToo) {
  Config config = {{"A::backend", "B[C]"}};
  EXPECT_EQ(expand("A", config).value(), "A");
  EXPECT_EQ(config, (Config{{"A::backend", "B"}, {"B::backend", "C"}}));
  const Config before = config;
  EXPECT_EQ(expand("A", config).value(), "A");
  EXPECT_EQ(config, before);
}

TEST(Expansion, ContradictionsAreRefused) {
  Config config = {{"A::backend", "C"}};
  const auto inner = expand("A[B]", config);
  ASSERT_FALSE(inner);
  EXPECT_EQ(inner.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(inner.error().message(), HasSubstr("key 'A::backend': given \"C\", and \"B\""));
  config = {{"A::k", "1"}};
  const auto parameter = expand("A(k=2)", config);
  ASSERT_FALSE(parameter);
  EXPECT_THAT(parameter.error().message(), HasSubstr("key 'A::k'"));
  EXPECT_EQ(parameter.error().detail(Detail::kKey), "A::k");
  EXPECT_EQ(parameter.error().detail(Detail::kGiven), "1");
}

TEST(Expansion, AKeyThatCannotBeReadKeepsWhy) {
  Config config = {{"A::backend", "B["}};
  const auto refused = expand("A", config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(refused.error().message(), "key 'A::backend'");
  EXPECT_EQ(refused.error().detail(Detail::kKey), "A::backend");
  EXPECT_EQ(refused.error().cause().code(), Code::kMalformed);
  EXPECT_THAT(refused.error().cause().message(), HasSubstr("found the end"));
}

TEST(Expansion, AStageWinsOverItsSurroundings) {
  Config config = {{"A::k", "1"}, {"A::backend", "C"}};
  EXPECT_EQ(expand_stage(parse_backend("A(k=2)[B]").value(), config).value(), "A");
  EXPECT_EQ(config, (Config{{"A::k", "2"}, {"A::backend", "B"}}));
}

TEST(Expansion, ANameInsideOfItselfIsRefused) {
  Config config;
  EXPECT_FALSE(expand("A[A]", config));
  config = {{"A::backend", "B"}, {"B::backend", "A"}};
  EXPECT_FALSE(expand("A", config));
  NamedBackends found;
  const Status status = name_backends(parse_backend("A").value(), config, found);
  EXPECT_THAT(status.message(), HasSubstr("'A' stands inside of itself"));
}

TEST(Expansion, NamesOfAllStagesAreFound) {
  NamedBackends found;
  const Config config = {{"b::backend", "d,e(x=1)"}};
  ASSERT_TRUE(name_backends(parse_backend("S[a(k=v),b]").value(), config, found).ok());
  EXPECT_THAT(found.names, ElementsAre("S", "a", "b", "d", "e"));
  EXPECT_THAT(found.keys, ElementsAre("S::backend", "a::k", "e::x"));
}

TEST(Expansion, WidthTimesDepthHasALimit) {
  Config config;  // A tree of 2^30 leaves in 30 keys.
  for (int i = 0; i < 30; ++i) {
    const std::string next = "a" + std::to_string(i + 1);
    config["a" + std::to_string(i) + "::backend"] = next + "," + next;
  }
  NamedBackends found;
  EXPECT_THAT(name_backends(parse_backend("a0").value(), config, found).message(),
              HasSubstr("1000 names"));
  config.clear();
  for (int i = 0; i < 100'000; ++i)
    config["a" + std::to_string(i) + "::backend"] = "a" + std::to_string(i + 1);
  EXPECT_FALSE(name_backends(parse_backend("a0").value(), config, found).ok());
  EXPECT_FALSE(expand("a0", config));
}

TEST(Expansion, ABackendGetsItsOwnKeysInPlaceOfTheNodes) {
  const Config config = {{"A::backend", "B"}, {"A::k", "1"}, {"AB::k", "2"}, {"k", "0"}};
  const Config mine = config_for("A", config);
  EXPECT_EQ(mine.at("k"), "1");
  EXPECT_EQ(mine.at("A::backend"), "B");
  EXPECT_FALSE(mine.contains("backend"));
  EXPECT_EQ(config_for("C", config), config);
}

}  // namespace
}  // namespace corelane::scheduler
