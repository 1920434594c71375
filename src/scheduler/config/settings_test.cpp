#include "scheduler/config/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/config/key_errors.h"
#include "scheduler/config/key_table.h"
#include "scheduler/config/testing/named_backends.h"

namespace corelane::scheduler {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Settings : public ::testing::Test {
 protected:
  Result<NodeSettings> read(const Config& config) const {
    return read_settings(config, *registry_);
  }
  /// The failure's message; the code must be kInvalidArgument.
  std::string refusal(const Config& config, Code code = Code::kInvalidArgument) const {
    const auto settings = read(config);
    if (settings) return "accepted";
    EXPECT_EQ(settings.error().code(), code) << settings.error().to_string();
    return settings.error().message();
  }

  std::unique_ptr<BackendRegistry> registry_ = testing::named_backends();
};

TEST_F(Settings, DefaultsAreThoseOfTheTable) {
  const auto s = read({});
  ASSERT_TRUE(s) << s.error().to_string();
  EXPECT_EQ(s->scheduler, "BaselineSchedule");
  ASSERT_EQ(s->groups.size(), 1U);
  EXPECT_EQ(s->groups[0].config, (Config{{"backend", "Identity"}}));
  EXPECT_EQ(s->groups[0].instance_num, 1U);
  EXPECT_FALSE(s->groups[0].padding);
  EXPECT_EQ(s->batching, Batching::kIdle);
  EXPECT_EQ(s->batching_timeout, milliseconds(2));
  EXPECT_EQ(s->plan, Plan::kGreedy);
  EXPECT_EQ(s->deadlines, Deadlines::kPredict);
  EXPECT_EQ(s->oversize, Oversize::kSplit);
  EXPECT_EQ(s->queue_policy, QueuePolicy::kBlock);
  EXPECT_EQ(s->max_batch, 0U);
  EXPECT_EQ(s->queue_items, 65536U);
  EXPECT_EQ(s->queue_bytes, 0U);
  EXPECT_EQ(s->max_in_flight, 0U);
  EXPECT_EQ(s->ageing, milliseconds(100));
  EXPECT_TRUE(s->isolate);
  EXPECT_EQ(s->weight, 1.0);
  EXPECT_EQ(s->records, 1024U);
}

TEST_F(Settings, EveryKeyIsRead) {
  const auto s = read({{"backend", "Identity"},
                       {"instance_num", "1024"},
                       {"min", "1"},
                       {"max", "4294967295"},
                       {"padding", "true"},
                       {"batching", "learned"},
                       {"batching_timeout", "2.5"},
                       {"max_batch", "16"},
                       {"plan", "cost"},
                       {"deadlines", "expire"},
                       {"oversize", "refuse"},
                       {"queue_policy", "drop_oldest"},
                       {"queue_items", "0"},
                       {"queue_bytes", "18446744073709551615"},
                       {"max_in_flight", "7"},
                       {"ageing", "0.25"},
                       {"isolate", "0"},
                       {"weight", "0.5"},
                       {"records", "0"}});
  ASSERT_TRUE(s) << s.error().to_string();
  EXPECT_EQ(s->groups[0].instance_num, 1024U);
  EXPECT_TRUE(s->groups[0].padding);
  EXPECT_EQ(s->batching, Batching::kLearned);
  EXPECT_EQ(s->batching_timeout, microseconds(2500));
  EXPECT_EQ(s->max_batch, 16U);
  EXPECT_EQ(s->plan, Plan::kCost);
  EXPECT_EQ(s->deadlines, Deadlines::kExpire);
  EXPECT_EQ(s->oversize, Oversize::kRefuse);
  EXPECT_EQ(s->queue_policy, QueuePolicy::kDropOldest);
  EXPECT_EQ(s->queue_items, 0U);
  EXPECT_EQ(s->queue_bytes, ~std::uint64_t{0});
  EXPECT_EQ(s->max_in_flight, 7U);
  EXPECT_EQ(s->ageing, microseconds(250));
  EXPECT_FALSE(s->isolate);
  EXPECT_EQ(s->weight, 0.5);
  EXPECT_EQ(s->records, 0U);
  EXPECT_EQ(read({{"batching", "full"}, {"queue_policy", "reject"}})->batching, Batching::kFull);
}

TEST_F(Settings, ShortListsRepeatTheirLastPart) {  // A3
  const auto s = read({{"backend", "SyncTensor[TensorrtTensor] & Identity"},
                       {"model", "a&b&c"},
                       {"device", "x"},
                       {"instance_num", "1&2"}});
  ASSERT_TRUE(s) << s.error().to_string();
  ASSERT_EQ(s->groups.size(), 3U);
  const Config first = {{"backend", "SyncTensor"},
                        {"SyncTensor::backend", "TensorrtTensor"},
                        {"model", "a"},
                        {"device", "x"},
                        {"instance_num", "1"}};
  const Config second = {
      {"backend", "Identity"}, {"model", "b"}, {"device", "x"}, {"instance_num", "2"}};
  EXPECT_EQ(s->groups[0].config, first);
  EXPECT_EQ(s->groups[1].config, second);
  EXPECT_EQ(s->groups[2].config.at("model"), "c");
  EXPECT_EQ(s->groups[2].config.at("backend"), "Identity");
  EXPECT_EQ(s->groups[2].instance_num, 2U);
  EXPECT_EQ(s->settings.at("backend"), "SyncTensor[TensorrtTensor] & Identity");
}

TEST_F(Settings, ValuesOfNoCompositeAreDividedToo) {
  const auto s = read({{"backend", "TensorrtTensor"}, {"model", "x&y"}});
  ASSERT_TRUE(s) << s.error().to_string();
  ASSERT_EQ(s->groups.size(), 2U);
  EXPECT_EQ(s->groups[1].config.at("model"), "y");
}

TEST_F(Settings, TheTextOfADeviceIsNotDivided) {
  const auto s = read({{"backend", "TensorrtTensor"}, {"device", "virtual:rk3588?name=a&depth=4"}});
  ASSERT_TRUE(s) << s.error().to_string();
  ASSERT_EQ(s->groups.size(), 1U);
  EXPECT_EQ(s->groups[0].config.at("device"), "virtual:rk3588?name=a&depth=4");
}

TEST_F(Settings, OneGroupServesRequestsOfOneItem) {  // A3
  const std::string message = refusal({{"min", "4&8"}, {"max", "4&8"}});
  EXPECT_THAT(message, AllOf(HasSubstr("key 'min': given \"4&8\""), HasSubstr("padding=true")));
  EXPECT_EQ(refusal({{"min", "2"}, {"max", "4"}}).substr(0, 9), "key 'min'");
  EXPECT_TRUE(read({{"min", "4&1"}, {"max", "4&1"}}));
  EXPECT_TRUE(read({{"min", "4&8"}, {"max", "4&8"}, {"padding", "true&false"}}));
}

TEST_F(Settings, KeysOfTheWholeNodeTakeNoParts) {  // A3
  for (const Key& key : key_table()) {
    if (key.parts) continue;
    EXPECT_THAT(refusal({{std::string(key.name), "1&2"}}),
                AllOf(HasSubstr("key '" + std::string(key.name) + "': given \"1&2\""),
                      HasSubstr("without '&'")));
  }
}

TEST_F(Settings, AMisspeltKeyIsAnsweredByTheNearest) {  // A23
  EXPECT_EQ(refusal({{"instnce_num", "2"}}),
            "key 'instnce_num': given \"2\"; allowed is a key of a node or of its backends "
            "(Identity, BaselineSchedule, ContrastInstances, Fusion, InstanceThread); the nearest "
            "key is 'instance_num': correct the name; docs/apis/scheduler-keys.md lists all "
            "keys");
  EXPECT_THAT(refusal({{"batch_timeout", "2"}}), HasSubstr("'batching_timeout'"));
  EXPECT_THAT(refusal({{"backend", "TensorrtTensor"}, {"modle", "x"}}), HasSubstr("'model'"));
  EXPECT_THAT(refusal({{"zzzzzzzz", "1"}}), HasSubstr("no key is near"));
  EXPECT_THAT(refusal({{"model", "x"}}), HasSubstr("key 'model'"));  // Identity reads no model.
  EXPECT_THAT(refusal({{"", "x"}}), HasSubstr("key ''"));
}

TEST_F(Settings, BadNumbersAreRefused) {  // A23
  struct Bad {
    const char* key;
    std::vector<std::string> values;
    const char* allowed;
  };
  const std::vector<Bad> all = {
      {"instance_num",
       {"x", "0", "-1", "1025", "nan", "NaN", "inf", "2.5", "2.0", "1e2", "+1", "0x2", "1 2",
        "18446744073709551617", "2;"},
       "a whole number from 1 to 1024"},
      {"min", {"0", "-1", "x", "4294967296"}, "a whole number from 1 to 4294967295"},
      {"max", {"0", "2.5"}, "a whole number from 1 to 4294967295"},
      {"batching_timeout",
       {"-5", "x", "nan", "inf", "-0", "1e400", "2.5ms", "3600001", ""},
       "milliseconds from 0 to 3600000, fractions too"},
      {"ageing", {"-1", "nan"}, "milliseconds from 0"},
      {"queue_items", {"-1", "1.5", "18446744073709551616"}, "a whole number from 0"},
      {"weight", {"0", "-1", "0.0", "nan", "1000001"}, "a number above 0, at most 1000000"},
      {"padding", {"yes", "2", "True"}, "true or false"},
      {"isolate", {"", "on"}, "true or false"},
      {"batching", {"Idle", "idle|full", "", "none"}, "one of idle, full, learned"},
      {"queue_policy", {"drop"}, "one of block, reject, drop_oldest"}};
  for (const auto& [key, values, allowed] : all) {
    for (const std::string& value : values) {
      EXPECT_THAT(refusal({{key, value}}), HasSubstr("key '" + std::string(key) + "': given"))
          << value;
      if (!value.empty()) EXPECT_THAT(refusal({{key, value}}), HasSubstr(allowed)) << value;
    }
  }
  EXPECT_THAT(refusal({{"instance_num", "1&0"}}), HasSubstr("given \"0\""));
}

TEST_F(Settings, FractionsOfAMillisecondAreKept) {
  EXPECT_EQ(read({{"batching_timeout", "0.0005"}})->batching_timeout, Duration(500));
  EXPECT_EQ(read({{"batching_timeout", "0"}})->batching_timeout, Duration(0));
  EXPECT_EQ(read({{"batching_timeout", "3600000"}})->batching_timeout, std::chrono::hours(1));
}

TEST_F(Settings, ImpossibleRangesAreRefused) {  // A23
  EXPECT_THAT(refusal({{"min", "1&5"}, {"max", "1&4"}}),
              HasSubstr("key 'min': given \"5 with max=4 in group 2\"; allowed is 1 to 4"));
  EXPECT_THAT(refusal({{"min", "1&4"}, {"max", "1&4"}, {"max_batch", "2"}}),
              HasSubstr("key 'max_batch': given \"2 with min=4 in group 2\""));
}

TEST_F(Settings, EmptyPartsAreRefused) {  // A23
  for (const char* value : {"", "&", "1&", "1&&2"})
    EXPECT_THAT(refusal({{"instance_num", value}}),
                AllOf(HasSubstr("key 'instance_num'"), HasSubstr("is empty")));
  EXPECT_THAT(refusal({{"backend", ""}}), HasSubstr("is empty"));
}

TEST_F(Settings, ExpressionsAreReadAndTheirNamesKnown) {
  EXPECT_THAT(refusal({{"backend", "A["}}),
              AllOf(HasSubstr("key 'backend'"), HasSubstr("found the end")));
  EXPECT_THAT(refusal({{"backend", "SyncTensor[TensorrtTenso]"}}),
              AllOf(HasSubstr("key 'backend': given \"TensorrtTenso\""),
                    HasSubstr("the nearest name is 'TensorrtTensor'")));
  EXPECT_THAT(refusal({{"backend", "S"}, {"S::backend", "a,B2"}}),
              HasSubstr("key 'S::backend': given \"B2\""));
  EXPECT_THAT(refusal({{"backend", "A[B&C]"}}), HasSubstr("key 'backend'"));
  EXPECT_THAT(refusal({{"backend", "(swap)a"}}), HasSubstr("without a filter"));
  EXPECT_THAT(refusal({{"backend", "S[S[a]]"}}), HasSubstr("inside of itself"));
  EXPECT_THAT(refusal({{"backend", "a,b"}}), HasSubstr("2 backends"));
}

TEST_F(Settings, KeysOfOneBackend) {
  const auto s = read({{"backend", "SyncTensor[TensorrtTensor]"},
                       {"TensorrtTensor::model", "a&b"},
                       {"SyncTensor::max", "4"}});
  ASSERT_TRUE(s) << s.error().to_string();
  EXPECT_EQ(s->groups[1].config.at("TensorrtTensor::model"), "b");
  EXPECT_TRUE(read({{"backend", "S[a(k=1),(swap)b]"}}));
  EXPECT_THAT(refusal({{"backend", "S[a(q=1),b]"}}), HasSubstr("key 'a::q'"));
  EXPECT_THAT(refusal({{"backend", "S[a,b]"}, {"b::k", "1"}}), HasSubstr("a key that 'b' reads"));
  EXPECT_THAT(refusal({{"TensorrtTensor::model", "a"}}),
              AllOf(HasSubstr("key 'TensorrtTensor::model'"),
                    HasSubstr("a backend of the expression or of the chain before '::'")));
  EXPECT_THAT(refusal({{"Identity::batching", "full"}}),
              HasSubstr("write it without 'Identity::'"));
  EXPECT_THAT(refusal({{"backend", "a"}, {"a::modle", "1"}, {"a::k", "1"}}), HasSubstr("a::modle"));
}

TEST(KeyErrors, DetailsAndCausesOfWhatIsRefusedStay) {
  const KeyErrors errors([](std::string_view key) { return std::string(key) + ":3:1: "; });
  const Status first = error(Code::kIo, "no disk").with(Detail::kLimit, 7);
  const Status why = first.wrap(Code::kMalformed, "it is cut off").with(Detail::kNode, "n");
  const Status plain = errors.refuse("min", why);
  EXPECT_EQ(plain.code(), Code::kInvalidArgument);
  EXPECT_EQ(plain.message(), "min:3:1: key 'min': it is cut off");
  EXPECT_EQ(plain.detail(Detail::kKey), "min");
  EXPECT_EQ(plain.detail(Detail::kNode), "n");
  EXPECT_EQ(plain.detail(Detail::kLimit), "7");
  EXPECT_EQ(plain.cause().code(), Code::kIo);
  const Status named = errors.refuse("min", why.with(Detail::kKey, "a::k"), Code::kUnsupported);
  EXPECT_EQ(named.code(), Code::kUnsupported);
  EXPECT_EQ(named.message(), "min:3:1: it is cut off") << "the text names its key already";
  EXPECT_EQ(named.detail(Detail::kKey), "a::k");
  EXPECT_EQ(named.cause().code(), Code::kIo);
}

TEST_F(Settings, FailuresNameTheirKeyForPrograms) {
  const std::vector<std::pair<std::string, Config>> wrong = {
      {"min", {{"min", "0"}}},
      {"instance_num", {{"instance_num", "1&&2"}}},
      {"", {{"", "1&&2"}}},
      {"backend", {{"backend", "A["}}},
      {"A::backend", {{"A::backend", "a["}, {"backend", "A"}}},
      {"Mine::backend", {{"Interpreter::backend", "Mine"}, {"Mine::backend", "a&b"}}},
      {"Interpreter::env", {{"Interpreter::env", "x"}}}};
  for (const auto& [key, config] : wrong) {
    const auto settings = read(config);
    ASSERT_FALSE(settings) << key;
    const Status& why = settings.error();
    EXPECT_EQ(why.detail(Detail::kKey), key) << why.to_string();
    const std::string begin = "key '" + key + "'";
    EXPECT_TRUE(why.message().starts_with(begin)) << why.to_string();
    EXPECT_EQ(why.message().find(begin, 1), std::string::npos) << why.to_string();
  }
}

TEST_F(Settings, DuplicatesAreRefused) {  // A23
  EXPECT_THAT(refusal({{"backend", "SyncTensor[TensorrtTensor]"}, {"SyncTensor::backend", "a"}}),
              HasSubstr("keep one of them"));
  const Status twice = read({{"backend", "a(k=1)"}, {"a::k", "2"}}).error();
  EXPECT_TRUE(twice.message().starts_with("key 'a::k': given \"2\"")) << twice.message();
  EXPECT_EQ(twice.detail(Detail::kKey), "a::k");
  EXPECT_EQ(twice.detail(Detail::kGiven), "2");
  EXPECT_THAT(refusal({{"backend", "a(k=1,k=2)"}}), HasSubstr("stands twice"));
}

TEST_F(Settings, ReservedAndOtherNodesKeys) {  // A23
  EXPECT_THAT(refusal({{kThreadIndex, "0"}}), HasSubstr("from the scheduler"));
  for (const std::string_view name : reserved_names())
    EXPECT_THAT(refusal({{std::string(name), "x"}}), HasSubstr("reserved"));
  for (const char* key : {"next", "map", "Interpreter::env"})
    EXPECT_THAT(refusal({{key, "x"}}, Code::kUnsupported), HasSubstr("not there yet"));
}

TEST_F(Settings, TheSchedulerIsReplaceable) {  // A24, as far as settings go
  EXPECT_EQ(read({{"PipelineV3::backend", "Mine"}, {"speed", "1"}})->scheduler, "Mine");
  const auto both = read({{"PipelineV3::backend", "Identity"}, {"Interpreter::backend", "Mine"}});
  EXPECT_EQ(both->scheduler, "Mine");
  EXPECT_EQ(read({{"Interpreter::backend", "PipelineV3[Mine]"}})->scheduler, "Mine");
  const auto chain = read({{"Interpreter::backend", "BaselineSchedule[Fusion[Mine]]"}});
  ASSERT_TRUE(chain) << chain.error().to_string();
  EXPECT_EQ(chain->scheduler, "BaselineSchedule");
  EXPECT_EQ(chain->settings.at("BaselineSchedule::backend"), "Fusion");
  EXPECT_EQ(chain->settings.at("Fusion::backend"), "Mine");
  EXPECT_TRUE(read({{"ContrastInstances::backend", "Mine"}, {"Mine::speed", "1"}}));
  const auto layer = read({{"BaselineSchedule::backend", "Fusion[Mine]"}});
  ASSERT_TRUE(layer) << layer.error().to_string();
  EXPECT_EQ(layer->settings.at("BaselineSchedule::backend"), "Fusion");
  EXPECT_EQ(layer->settings.at("Fusion::backend"), "Mine");
}

TEST_F(Settings, BadSchedulersAreRefused) {
  EXPECT_THAT(refusal({{"Interpreter::backend", "Yours"}}),
              AllOf(HasSubstr("key 'Interpreter::backend': given \"Yours\""), HasSubstr("Mine")));
  EXPECT_THAT(refusal({{"Interpreter::backend", "Interpreter"}}), HasSubstr("without a filter"));
  EXPECT_THAT(refusal({{"PipelineV3::backend", "PipelineV3"}}), HasSubstr("PipelineV3::backend"));
  EXPECT_THAT(refusal({{"PipelineV3::backend", "Mine["}}), HasSubstr("found the end"));
  EXPECT_THAT(refusal({{"BaselineSchedule::backend", "BaselineSchedule"}}), HasSubstr("itself"));
  EXPECT_THAT(refusal({{"BaselineSchedule::backend", "(swap)Fusion"}}), HasSubstr("filter"));
}

TEST_F(Settings, ReadingWhatWasReadChangesNothing) {
  for (const Config& config :
       {Config{}, Config{{"backend", "S(min=1)[a(k=v),(swap)b]"}, {"batching_timeout", "0.5"}},
        Config{{"backend", "SyncTensor[TensorrtTensor]&a"}, {"model", "x"}},
        Config{{"Interpreter::backend", "PipelineV3[BaselineSchedule[Fusion[Mine(speed=3)]]]"}}}) {
    const auto once = read(config);
    ASSERT_TRUE(once) << once.error().to_string();
    const auto twice = read(once->settings);
    ASSERT_TRUE(twice) << twice.error().to_string();
    EXPECT_EQ(twice->settings, once->settings);
    EXPECT_EQ(twice->scheduler, once->scheduler);
    ASSERT_EQ(twice->groups.size(), once->groups.size());
    for (std::size_t i = 0; i < once->groups.size(); ++i)
      EXPECT_EQ(twice->groups[i].config, once->groups[i].config);
  }
}

TEST_F(Settings, LiveKeysChangeAndTheRestStays) {
  auto s = read({{"backend", "SyncTensor[TensorrtTensor]"}, {"model", "a&b"}, {"records", "5"}});
  ASSERT_TRUE(s);
  s->name = "mine";
  const auto changed =
      change_settings(*s, {{"batching_timeout", "7"}, {"instance_num", "3"}}, *registry_);
  ASSERT_TRUE(changed) << changed.error().to_string();
  EXPECT_EQ(changed->name, "mine");
  EXPECT_EQ(changed->batching_timeout, milliseconds(7));
  EXPECT_EQ(changed->groups[1].instance_num, 3U);
  EXPECT_EQ(changed->groups[1].config.at("model"), "b");
  EXPECT_EQ(changed->records, 5U);
  EXPECT_TRUE(change_settings(*changed, {}, *registry_));
}

TEST_F(Settings, OtherChangesAreRefused) {
  const NodeSettings s = read({}).value();
  const auto change = [&](const Config& changes) {
    const auto changed = change_settings(s, changes, *registry_);
    if (changed) return std::string("accepted");
    EXPECT_EQ(changed.error().code(), Code::kInvalidArgument);
    return changed.error().message();
  };
  EXPECT_THAT(change({{"backend", "a"}}),
              AllOf(HasSubstr("key 'backend'"), HasSubstr("new pipeline")));
  EXPECT_THAT(change({{"batching_timeot", "1"}}), HasSubstr("'batching_timeout'"));
  EXPECT_THAT(change({{"batching_timeout", "-1"}}), HasSubstr("key 'batching_timeout'"));
  EXPECT_THAT(change({{"instance_num", "1&2"}}), HasSubstr("1 to 1 parts"));
  for (const Key& key : key_table())
    if (!key.live)
      EXPECT_NE(change({{std::string(key.name), std::string(key.default_text)}}), "accepted");
}

TEST_F(Settings, OnlyABackendThatRunsAnotherOneHasBrackets) {
  for (const char* text :
       {"Identity[a(k=300)]", "TensorrtTensor[Identity]&b", "SyncTensor[Identity[a]]"})
    EXPECT_THAT(refusal({{"backend", text}}), HasSubstr("without brackets")) << text;
  EXPECT_THAT(
      refusal({{"backend", "Identity"}, {"Identity::backend", "a"}}),
      AllOf(HasSubstr("key 'Identity::backend': given \"a\""), HasSubstr("without this key")));
  for (const char* text : {"SyncTensor[Identity]", "S[Identity,a(k=3)]"})
    EXPECT_EQ(refusal({{"backend", text}}), "accepted") << text;
}

TEST_F(Settings, MessagesHoldNoControlCharactersAndHaveALimit) {
  for (const char* key : {"backend", "instance_num", "batching", "weight"}) {
    for (const std::string& value : {std::string("\x1b[31m\n"), std::string(1'000'000, 'x'),
                                     std::string("\0", 1), std::string("\xff")}) {
      const std::string message = refusal({{key, value}});
      EXPECT_NE(message, "accepted");
      EXPECT_EQ(message.find_first_of(std::string("\n\x1b\0\xff", 4)), std::string::npos) << key;
      EXPECT_LT(message.size(), 600U);
    }
  }
}

}  // namespace
}  // namespace corelane::scheduler
