#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "scheduler/backends/testing/backend_bench.h"

namespace corelane::scheduler {
namespace {

using ::testing::AllOf;
using testing::BackendBench;
using testing::Batch;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kMost;
using testing::requests_of;
using testing::results_of;
using testing::text_at;

/// With backends a and b of no limit, `one` of [1, 1] and `net` of [1, 4].
class Sequential : public ::testing::Test {
 protected:
  Sequential() {
    for (const char* name : {"a", "b"}) bench.add(name, {.range = {1, kMost}, .repeatable = true});
    bench.add("one", {.range = {1, 1}, .repeatable = true});
    bench.add("net", {.range = {1, 4}, .repeatable = true});
  }

  std::vector<std::string> run(std::string_view expression, const std::vector<std::string>& data,
                               const Config& config = {}) {
    batch = requests_of(data);
    auto opened = bench.open(expression, config);
    if (!opened) throw std::invalid_argument(opened.error().to_string());
    status = (*opened)->forward(batch);
    return results_of(batch);
  }

  Range range_of(std::string_view expression) {
    const auto opened = bench.open(expression);
    return opened ? (*opened)->range() : Range{0, 0};
  }

  BackendBench bench;
  std::vector<RequestPtr> batch;
  Status status;
};

TEST_F(Sequential, RunsLeftToRightAndInitialisesRightToLeft) {
  EXPECT_THAT(run("S[a,b,net]", {"x", "y"}), ElementsAre("xabnet", "yabnet"));
  EXPECT_TRUE(status.ok());
  EXPECT_THAT(bench.inits, ElementsAre("net", "b", "a"));
  EXPECT_THAT(bench.calls, ElementsAre("a:x,y", "b:xa,ya", "net:xab,yab"));
  EXPECT_THAT(run("Sequential[a,b]", {"x"}), ElementsAre("xab"));
}

TEST_F(Sequential, RangeIsThatOfTheStagesThatTakeSeveral) {
  bench.add("four", {.range = {4, 4}});
  bench.add("two", {.range = {1, 2}});
  bench.add("least", {.range = {3, kMost}});
  EXPECT_EQ(range_of("S[one,one]"), (Range{1, 1}));
  EXPECT_EQ(range_of("S[one]"), (Range{1, 1}));
  EXPECT_EQ(range_of("S[a,b]"), (Range{1, kMost}));
  EXPECT_EQ(range_of("S[one,(swap)net,SyncTensor]"), (Range{1, 4}));
  EXPECT_EQ(range_of("S[one,four]"), (Range{4, 4}));
  EXPECT_EQ(range_of("S[least,net]"), (Range{3, 4}));
  EXPECT_EQ(range_of("S[S[one,net],a]"), (Range{1, 4}));
  EXPECT_EQ(range_of("Sequential[S[one,net],a]"), (Range{1, 4}));

  EXPECT_EQ(bench.refusal_code("S[two,net]"), Code::kInvalidArgument);
  EXPECT_THAT(bench.refusal("S[two,net]"), AllOf(HasSubstr("'two'"), HasSubstr("'net'")));
  EXPECT_EQ(bench.refusal_code("S[net,net]"), Code::kInvalidArgument);
  EXPECT_EQ(bench.refusal_code("S[least,two]"), Code::kInvalidArgument);
}

TEST_F(Sequential, StageOfOneIsCalledForEachItem) {
  EXPECT_THAT(run("S[one,net]", {"x", "y", "z"}), ElementsAre("xonenet", "yonenet", "zonenet"));
  EXPECT_THAT(bench.calls, ElementsAre("one:x", "one:y", "one:z", "net:xone,yone,zone"));
}

TEST_F(Sequential, ARequestHasItsOwnDataAfterACallForWhatFailsLater) {
  bench.add("picky", {.range = {1, 2}, .repeatable = true, .forward = [](Batch items) -> Status {
                        for (const RequestPtr& one : items)
                          if (text_at(*one, kData).starts_with("bad"))
                            return error(Code::kEngineFailed, "a bad item");
                        for (const RequestPtr& one : items)
                          one->values[kResult] = text_at(*one, kData) + "p";
                        return {};
                      }});
  for (const char* text : {"Range(range=\"1,8\")[S[a,picky]]", "S[S[a,one],picky]"}) {
    const std::vector<std::string> data = {"x", "y", "z", "bad"};
    run(text, data);
    EXPECT_FALSE(status.ok()) << "the scheduler runs each again, alone";
    for (std::size_t i = 0; i < data.size(); ++i)
      EXPECT_EQ(text_at(*batch[i], kData), data[i]) << text;
  }
  EXPECT_THAT(run("S[a,b]", {"x"}), ElementsAre("xab"));
  EXPECT_EQ(text_at(*batch[0], kData), "x");
}

TEST_F(Sequential, BrokenFirstItemDoesNotStopTheOthers) {
  bench.add("decode", {.range = {1, 1}, .forward = [](Batch one) {
                         const std::string data = text_at(*one[0], kData);
                         if (data != "damaged") one[0]->values[kResult] = data + "d";
                         return Status();
                       }});
  EXPECT_THAT(run("S[decode,net,b]", {"damaged", "x", "damaged", "y"}),
              ElementsAre("-", "xdnetb", "-", "ydnetb"));
  EXPECT_TRUE(status.ok());
  EXPECT_THAT(bench.calls, ElementsAre("decode:damaged", "decode:x", "decode:damaged", "decode:y",
                                       "net:xd,yd", "b:xdnet,ydnet"));
  EXPECT_THAT(run("S[decode,net]", {"damaged"}), ElementsAre("-"));
}

TEST_F(Sequential, FiltersActOnTheirItem) {
  const auto action = std::make_shared<FilterAction>();
  bench.add_filter("mine", [action](Request& request) {
    return text_at(request, kData) == "x" ? *action : FilterAction::kRun;
  });
  // `mine` leaves the data as the user gave it: b has its own result for it.
  *action = FilterAction::kRun;
  EXPECT_THAT(run("S[a,(mine)b,net]", {"x", "y"}), ElementsAre("xbnet", "ybnet"));
  *action = FilterAction::kSkip;
  EXPECT_THAT(run("S[a,(mine)b,net]", {"x", "y"}), ElementsAre("xanet", "ybnet"));
  for (const FilterAction end :
       {FilterAction::kBreak, FilterAction::kSerialSkip, FilterAction::kSubGraphSkip}) {
    *action = end;
    EXPECT_THAT(run("S[a,(mine)b,net]", {"x", "y"}), ElementsAre("xa", "ybnet"));
    EXPECT_TRUE(status.ok());
  }
}

TEST_F(Sequential, BuiltinFiltersSayWhatTheirNamesSay) {
  EXPECT_THAT(run("S[a,(Run)b]", {"x"}), ElementsAre("xb"));
  EXPECT_THAT(run("S[a,(swap)b]", {"x"}), ElementsAre("xab"));
  EXPECT_THAT(run("S[a,(Skip)b,net]", {"x"}), ElementsAre("xanet"));
  for (const char* end : {"Break", "SerialSkip", "SubGraphSkip"})
    EXPECT_THAT(run(fmt::format("S[a,({})b,net]", end), {"x"}), ElementsAre("xa")) << end;
}

TEST_F(Sequential, ErrorFailsTheCall) {
  EXPECT_THAT(run("S[a,(Error)b]", {"x", "y"}), ElementsAre("-", "-"));
  EXPECT_EQ(status.code(), Code::kEngineFailed);
  EXPECT_THAT(status.to_string(), AllOf(HasSubstr("'Error'"), HasSubstr("'b'")));
  bench.add_filter("wild", [](Request&) { return static_cast<FilterAction>(77); });
  run("S[a,(wild)b]", {"x"});
  EXPECT_EQ(status.code(), Code::kEngineFailed);
}

TEST_F(Sequential, FilterThatThrowsOrFailsAnItemLeavesTheOthers) {
  bench.add_filter("picky", [](Request& request) -> FilterAction {
    const std::string data = text_at(request, kData);
    if (data == "throw") throw std::runtime_error("picky");
    if (data == "fail") request.fail(error(Code::kMalformed, "no picture"));
    return FilterAction::kRun;
  });
  EXPECT_THAT(run("S[a,(picky)b]", {"throw", "x", "fail"}), ElementsAre("-", "xb", "-"));
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(batch[0]->failure().code(), Code::kEngineFailed);
  EXPECT_THAT(batch[0]->failure().to_string(), HasSubstr("filter 'picky' threw: picky"));
  EXPECT_EQ(batch[2]->failure().code(), Code::kMalformed);
}

TEST_F(Sequential, FirstStageTakesNoFilter) {
  for (const char* filter : {"swap", "Run", "Skip", "nobody"}) {
    const std::string text = fmt::format("S[({})a,b]", filter);
    EXPECT_EQ(bench.refusal_code(text), Code::kInvalidArgument) << text;
    EXPECT_THAT(bench.refusal(text), HasSubstr("first stage"));
  }
}

TEST_F(Sequential, WrongExpressionsAreRefusedBeforeAnyInit) {
  EXPECT_EQ(bench.refusal_code("S"), Code::kInvalidArgument);
  EXPECT_EQ(bench.refusal_code("S[nobody,a]"), Code::kNotFound);
  EXPECT_EQ(bench.refusal_code("S[a,(nobody)b]"), Code::kNotFound);
  EXPECT_EQ(bench.refusal_code("S", {{"S::backend", "a,,b"}}), Code::kInvalidArgument);
  EXPECT_THAT(bench.inits, IsEmpty());
}

TEST_F(Sequential, ParametersOfAStageAreItsOwn) {
  std::vector<std::string> seen;
  const auto note = [&seen](const Config& config) {
    const auto found = config.find("k");
    seen.push_back(found == config.end() ? "-" : found->second);
    return Status();
  };
  bench.add("p", {.init = note});
  bench.add("q", {.init = note});
  ASSERT_EQ(bench.refusal("S[p(k=1),q]"), "ok");
  EXPECT_THAT(seen, ElementsAre("-", "1"));  // Right to left.
  seen.clear();
  ASSERT_EQ(bench.refusal("S[p(k=1),p(k=2),q]", {{"k", "node"}}), "ok");
  EXPECT_THAT(seen, ElementsAre("node", "2", "1"));
  seen.clear();
  ASSERT_EQ(bench.refusal("S[p,q]", {{"k", "1 || 2"}}), "ok");
  EXPECT_THAT(seen, ElementsAre("2", "1"));
  seen.clear();
  ASSERT_EQ(bench.refusal("S[p(k=own),q]", {{"k", "1||2"}}), "ok");
  EXPECT_THAT(seen, ElementsAre("2", "own"));
}

TEST_F(Sequential, WrongCountOfStageValuesIsRefused) {
  for (const char* wrong : {"1||2||3", "1||", "||2", "||"}) {
    EXPECT_EQ(bench.refusal_code("S[a,b]", {{"k", wrong}}), Code::kInvalidArgument) << wrong;
    EXPECT_THAT(bench.refusal("S[a,b]", {{"k", wrong}}), HasSubstr("'k'"));
  }
  EXPECT_EQ(bench.refusal("S[a,b]", {{"k", "1|2"}}), "ok");
}

TEST_F(Sequential, FilterReadsTheSettingsOfItsStage) {
  struct Reader final : Filter {
    explicit Reader(std::string* where) : seen(where) {}
    Status init(const Config& config, const SharedDict&) override {
      *seen = config.at("k");  // Throws where it is not there.
      return {};
    }
    FilterAction apply(Request&) override { return FilterAction::kRun; }
    std::string* seen;
  };
  std::string seen;
  ASSERT_TRUE(
      bench.registry.add_filter("reader", [&seen] { return std::make_unique<Reader>(&seen); })
          .ok());
  EXPECT_EQ(bench.refusal("S[a,(reader)b(k=5)]"), "ok");
  EXPECT_EQ(seen, "5");
  EXPECT_EQ(bench.refusal_code("S[a,(reader)b]"), Code::kEngineFailed);
  EXPECT_THAT(bench.refusal("S[a,(reader)b]"), HasSubstr("'reader'"));
}

TEST_F(Sequential, InitOfAStageThatFailsEndsTheOthers) {
  bench.add("bad", {.init = [](const Config&) -> Status { throw std::bad_alloc(); }});
  EXPECT_EQ(bench.refusal_code("S[a,bad,b]"), Code::kEngineFailed);
  EXPECT_THAT(bench.refusal("S[a,bad,b]"), HasSubstr("'bad'"));
  EXPECT_THAT(bench.inits, ElementsAre("b", "bad", "b", "bad"));
}

TEST_F(Sequential, StageOfOneThatFailsFailsItsItemAlone) {
  bench.add("picky", {.range = {1, 1}, .forward = [](Batch one) -> Status {
                        const std::string data = text_at(*one[0], kData);
                        if (data == "bad") throw std::runtime_error("no");
                        one[0]->values[kResult] = data;
                        return {};
                      }});
  EXPECT_THAT(run("S[picky,b]", {"bad", "x"}), ElementsAre("-", "xb"));
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(batch[0]->failure().code(), Code::kEngineFailed);
  EXPECT_THAT(batch[0]->failure().to_string(), HasSubstr("'picky'"));
  EXPECT_EQ(run("S[picky,b]", {"bad"}), std::vector<std::string>{"-"});
  EXPECT_EQ(status.code(), Code::kEngineFailed);
}

testing::Script failing(bool repeatable) {
  return {.range = {1, kMost}, .repeatable = repeatable, .forward = [](Batch) -> Status {
            return error(Code::kBadResult, "short");
          }};
}

TEST_F(Sequential, FailedCallGivesTheDataBackSoThatItCanRunAgain) {
  bench.add("failing", failing(true));
  EXPECT_THAT(run("S[a,b,failing]", {"x", "y"}), ElementsAre("-", "-"));
  EXPECT_EQ(status.code(), Code::kBadResult);
  EXPECT_EQ(text_at(*batch[0], kData), "x");
  EXPECT_EQ(text_at(*batch[1], kData), "y");
  EXPECT_TRUE(bench.open("S[a,b,failing]").value()->repeatable());
}

TEST_F(Sequential, FailureOfAPartOfTheBatchStaysWithIt) {
  bench.add("failing", failing(false));
  bench.add_filter("odd", [](Request& request) {
    return text_at(request, kData) == "y" ? FilterAction::kBreak : FilterAction::kRun;
  });
  EXPECT_THAT(run("S[a,(odd)failing]", {"x", "y", "z"}), ElementsAre("-", "ya", "-"));
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(batch[0]->failure().code(), Code::kBadResult);
  EXPECT_TRUE(batch[1]->failure().ok());
  EXPECT_EQ(text_at(*batch[0], kData), "x");
}

TEST_F(Sequential, RepeatableWhereAllStagesAreAndNoFilterIsTheUsers) {
  bench.add("once", {.range = {1, kMost}});
  bench.add_filter("mine", [](Request&) { return FilterAction::kRun; });
  EXPECT_TRUE(bench.open("S[a,(Run)b,one]").value()->repeatable());
  EXPECT_FALSE(bench.open("S[a,once]").value()->repeatable());
  EXPECT_FALSE(bench.open("S[a,(mine)b]").value()->repeatable());
}

TEST_F(Sequential, TooFewThatAreLeftFailAlone) {
  bench.add("four", {.range = {4, 4}});
  bench.add_filter("odd", [](Request& request) {
    return text_at(request, kData) == "y" ? FilterAction::kBreak : FilterAction::kRun;
  });
  EXPECT_THAT(run("S[a,(odd)four]", {"x", "y", "z", "z"}), ElementsAre("-", "ya", "-", "-"));
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(batch[0]->failure().code(), Code::kOutOfRange);
  EXPECT_THAT(bench.calls, ElementsAre("a:x,y,z,z"));
}

TEST_F(Sequential, RequestOfSeveralItemsDoesNotFitAStageOfOne) {
  const auto chain = bench.open("S[one,net]").value();
  const std::vector<RequestPtr> mixed = {testing::request_of("x", 2), testing::request_of("y", 1)};
  ASSERT_TRUE(chain->forward(mixed).ok());
  EXPECT_EQ(mixed[0]->failure().code(), Code::kOutOfRange);
  EXPECT_EQ(text_at(*mixed[1], kResult), "yonenet");
}

TEST_F(Sequential, CancelledRequestIsLeftOutWhereTheStageAllowsIt) {
  bench.add("cancels", {.range = {1, kMost}, .forward = [](Batch all) {
                          for (const RequestPtr& one : all) one->values[kResult] = std::string("c");
                          all[0]->cancel();
                          return Status();
                        }});
  bench.add("two", {.range = {2, 2}});
  EXPECT_THAT(run("S[cancels,b]", {"x", "y"}), ElementsAre("c", "cb"));
  EXPECT_THAT(run("S[cancels,two]", {"x", "y"}), ElementsAre("ctwo", "ctwo"));
}

TEST_F(Sequential, ChainsNest) {
  EXPECT_THAT(run("Sequential[Faulty(leave_out_every=2)[S[a,one]],net]", {"x", "y", "z"}),
              ElementsAre("xaonenet", "-", "zaonenet"));
}

}  // namespace
}  // namespace corelane::scheduler
