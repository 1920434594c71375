// The built-in backends below a pipeline, with the settings that users write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corelane/scheduler/scheduler.h"

namespace corelane::scheduler {
namespace {

using ::testing::HasSubstr;

/// What a list of these data comes to: results, "-" for those without.
std::string run(const Config& config, const std::vector<std::string>& data) {
  const auto pipeline = Pipeline::create(config);
  if (!pipeline) return pipeline.error().to_string();
  std::vector<Dict> requests;
  for (const std::string& one : data) requests.push_back({{kData, one}});
  const std::vector<Status> ended = pipeline->run(requests);
  std::string seen;
  for (std::size_t i = 0; i < data.size(); ++i)
    seen += ended[i].ok() ? std::any_cast<std::string>(requests[i].at(kResult)) : "-";
  return seen;
}

TEST(BuiltinPipeline, RunsExpressions) {
  EXPECT_EQ(run({}, {"a", "b"}), "ab");
  EXPECT_EQ(run({{"backend", "S[Identity,(swap)Sleep(a=0.1),SyncTensor[Identity]]"}}, {"a", "b"}),
            "ab");
  EXPECT_EQ(run({{"backend", "Range[Identity]"}, {"range", "1,8"}, {"Identity::max", "2"}},
                {"a", "b", "c", "d", "e"}),
            "abcde");
}

TEST(BuiltinPipeline, BadItemIsIsolated) {
  const Config config = {{"backend", "Faulty[Identity]"}, {"max", "8"}, {"bad_item", "b"}};
  EXPECT_EQ(run(config, {"a", "b", "c", "d", "e"}), "a-cde");
  // A max of the node would be that of both stages, which S refuses.
  const Config chain = {{"backend", "S[Identity,Faulty[Sleep(max=8)]]"}, {"bad_item", "b"}};
  EXPECT_EQ(run(chain, {"a", "b", "c", "d", "e"}), "a-cde");
}

TEST(BuiltinPipeline, WrongSettingsEndItsCreation) {
  EXPECT_THAT(run({{"backend", "S[Identity,Slep]"}}, {}), HasSubstr("Sleep"));
  EXPECT_THAT(run({{"backend", "Sleep"}, {"a", "x"}}, {}), HasSubstr("'a'"));
  EXPECT_THAT(run({{"backend", "Range[Identity(min=8,max=8)]"}, {"range", "10,10"}}, {}),
              HasSubstr("10 items"));
}

TEST(BuiltinPipeline, AnUnknownFilterIsNamedWithThoseThatThereAre) {
  const std::string text = run({{"backend", "S[Identity,(swop)Identity]"}}, {});
  EXPECT_THAT(text, HasSubstr("'(swop)Identity'"));
  EXPECT_THAT(text, HasSubstr("SubGraphSkip, swap"));
}

TEST(BuiltinPipeline, AFileWithoutAnEndIsRefused) {
  const auto endless = Pipeline::from_file("/dev/zero");
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code(), Code::kMalformed);
}

}  // namespace
}  // namespace corelane::scheduler
