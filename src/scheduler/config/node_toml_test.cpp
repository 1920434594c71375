#include "scheduler/config/node_toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "scheduler/config/testing/named_backends.h"

namespace corelane::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class NodeToml : public ::testing::Test {
 protected:
  Result<NodeSettings> read(std::string_view text) const {
    return read_node_toml(text, "node.toml", *registry_);
  }
  std::string refusal(std::string_view text, Code code = Code::kInvalidArgument) const {
    const auto settings = read(text);
    if (settings) return "accepted";
    EXPECT_EQ(settings.error().code(), code) << settings.error().to_string();
    return settings.error().message();
  }

  std::unique_ptr<BackendRegistry> registry_ = testing::named_backends();
};

TEST_F(NodeToml, TheExampleOfThreeProgramsHasThreeGroups) {  // A1
  const auto s = read(testing::kThreePrograms);
  ASSERT_TRUE(s) << s.error().to_string();
  EXPECT_EQ(s->name, "model");
  EXPECT_EQ(s->scheduler, "BaselineSchedule");
  ASSERT_EQ(s->groups.size(), 3U);
  const std::vector<std::string> sizes = {"1", "4", "8"};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(s->groups[i].instance_num, 2U);
    const Config expected = {{"backend", "SyncTensor"},
                             {"SyncTensor::backend", "TensorrtTensor"},
                             {"model", "batch" + sizes[i] + ".onnx"},
                             {"instance_num", "2"},
                             {"min", sizes[i]},
                             {"max", sizes[i]}};
    EXPECT_EQ(s->groups[i].config, expected);
  }
}

TEST_F(NodeToml, TheLongFormsOfTheExampleAreTheSame) {  // A1
  std::string text = testing::kThreePrograms;
  const auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("\"SyncTensor[TensorrtTensor]\"",
          "'SyncTensor[TensorrtTensor]&SyncTensor[TensorrtTensor]'");
  replace("= 2 #", "= '2&2&2' #");
  const auto s = read(text);
  ASSERT_TRUE(s) << s.error().to_string();
  const auto short_form = read(testing::kThreePrograms);
  ASSERT_EQ(s->groups.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(s->groups[i].config, short_form->groups[i].config);
}

TEST_F(NodeToml, ValuesBecomeTextsAndTheNodeWins) {
  const auto s = read(R"(
    batching_timeout = 7
    instance_num = 3
    isolate = false
    weight = 2
    "Interpreter::backend" = "PipelineV3[Mine]"
    [my-node.1]
    )");
  EXPECT_FALSE(s);  // [a.b] is a table inside of a table.
  const auto t = read(R"(
    batching_timeout = 7
    instance_num = 3
    isolate = false
    weight = 2
    "Interpreter::backend" = "PipelineV3[Mine]"
    [my-node]
    batching_timeout = 2.5
    padding = true
    ageing = 1e-1
    backend = "TensorrtTensor"
    "TensorrtTensor::model" = 'x'
  )");
  ASSERT_TRUE(t) << t.error().to_string();
  EXPECT_EQ(t->name, "my-node");
  EXPECT_EQ(t->batching_timeout, std::chrono::microseconds(2500));
  EXPECT_EQ(t->ageing, std::chrono::microseconds(100));
  EXPECT_EQ(t->groups[0].instance_num, 3U);
  EXPECT_TRUE(t->groups[0].padding);
  EXPECT_FALSE(t->isolate);
  EXPECT_EQ(t->scheduler, "Mine");
  EXPECT_EQ(read("[n]\nbatching_timeout = \"2.5\"")->batching_timeout,
            std::chrono::microseconds(2500));
  EXPECT_TRUE(read("\"n.1\" = {backend = 'Identity'}"));
}

struct WrongFile {
  const char* text;
  const char* begins;
  const char* says;
};

TEST_F(NodeToml, FailuresNameTheirPlaceAndKey) {  // A23
  const std::vector<WrongFile> all = {
      {"[n]\ninstnce_num = 2", "node.toml:2:1: key 'instnce_num'", "nearest key is 'instance_num'"},
      {"[n]\n  instance_num = 0", "node.toml:2:3: key 'instance_num'", "from 1 to 1024"},
      {"[n]\ninstance_num = -1", "node.toml:2:1: key 'instance_num'", "given \"-1\""},
      {"[n]\ninstance_num = 'x'", "node.toml:2:1: key 'instance_num'", "given \"x\""},
      {"[n]\ninstance_num = 1025", "node.toml:2:1: key 'instance_num'", "given \"1025\""},
      {"[n]\ninstance_num = nan", "node.toml:2:1: key 'instance_num'", "given \"nan\""},
      {"[n]\ninstance_num = 2.5", "node.toml:2:1: key 'instance_num'", "given \"2.5\""},
      {"[n]\ninstance_num = 2.0", "node.toml:2:1: key 'instance_num'", "given \"2.0\""},
      {"[n]\ninstance_num = '1&'", "node.toml:2:1: key 'instance_num'", "part 2 is empty"},
      {"[n]\nbatching_timeout = -5", "node.toml:2:1: key 'batching_timeout'", "given \"-5\""},
      {"[n]\nbatching_timeout = -2.5", "node.toml:2:1: key 'batching_timeout'", "\"-2.5\""},
      {"instance_num = 0\n[n]", "node.toml:1:1: key 'instance_num'", "given \"0\""},
      {"[n]\nmax = 2\nmin = 3", "node.toml:3:1: key 'min'", "3 with max=2"},
      {"[n]\nmin = 2\nmax = 3", "node.toml:2:1: key 'min'", "1 in one group"},
      {"[n]\nbackend = 'A['", "node.toml:2:1: key 'backend'", "found the end"},
      {"[n]\nbackend = 'Identty'", "node.toml:2:1: key 'backend'", "'Identity'"},
      {"[n]\n\nbackend = 'a(q=1)'", "node.toml:3:1: key 'a::q'", "nearest key is 'a::k'"},
      {"[n]\nmodel = [1, 2]", "node.toml:2:1: key 'model'", "an array"},
      {"d = 1979-05-27\n[n]", "node.toml:1:1: key 'd'", "a date"},
      {"[n]\nd = 07:32:00", "node.toml:2:1: key 'd'", "a time"},
      {"[n]\nd = 1979-05-27T07:32:00Z", "node.toml:2:1: key 'd'", "a date with a time"},
      {"[[n]]\nbackend = 'a'", "node.toml:1:3: key 'n'", "an array"},
      {"[n]\n\"Interpreter::backend\" = 'a'", "node.toml:2:1: key 'Interpreter::backend'",
       "above all tables"},
      {"", "node.toml:1:1: ", "no table"},
      {"instance_num = 1", "node.toml:1:1: ", "no table"},
      {"[data]", "node.toml:1:2: table \"data\"", "reserved"},
      {"x = 1\n[global]", "node.toml:2:2: table \"global\"", "reserved"},
      {"['']", "node.toml:1:2: table \"\"", "1 to 128 letters"},
      {"['a b']", "node.toml:1:2: table \"a b\"", "choose another name"}};
  for (const auto& [text, begins, says] : all)
    EXPECT_THAT(refusal(text), AllOf(StartsWith(begins), HasSubstr(says))) << text;
}

TEST_F(NodeToml, SeveralNodesAreNotThereYet) {
  EXPECT_THAT(refusal("[b]\n[a]\n", Code::kUnsupported),
              AllOf(StartsWith("node.toml:2:2: table \"a\""),
                    HasSubstr("pipelines of several nodes are not there yet")));
  EXPECT_THAT(refusal("[a]\n[a.b]\n", Code::kUnsupported),
              AllOf(StartsWith("node.toml:2:4: table \"b\""), HasSubstr("inside of table \"a\"")));
  EXPECT_THAT(refusal("[a]\nnext = 'b'\n", Code::kUnsupported),
              StartsWith("node.toml:2:1: key 'next'"));
}

TEST_F(NodeToml, DuplicatesAndBrokenTextsAreNoToml) {
  EXPECT_THAT(refusal("[n]\nmin = 1\nmin = 1", Code::kMalformed),
              AllOf(StartsWith("node.toml:3:"), HasSubstr("'min'")));
  EXPECT_THAT(refusal("[n]\n[n]\n", Code::kMalformed), StartsWith("node.toml:2:"));
  for (const std::string& text :
       {std::string("[n"), std::string("[(n]"), std::string("[[(n]]"), std::string("\xd0\xa2 = 1"),
        std::string("[n]\nx"), std::string("[n]\nx = 'a"), std::string("\xff"),
        std::string("[n]\nx = \"a\0b\"", 13), std::string("\0", 1), std::string("x = \"\\q\"")})
    EXPECT_THAT(refusal(text, Code::kMalformed), StartsWith("node.toml:"));
}

TEST_F(NodeToml, AKeyWithScopeMustBeInQuotes) {
  EXPECT_EQ(refusal("Interpreter::backend = \"Mine\"\n[n]\n", Code::kMalformed),
            "node.toml:1:12: a key with '::' must be in quotes; write \"A::key\" = \"value\"");
  EXPECT_THAT(refusal("[n]\na::k = 1", Code::kMalformed), HasSubstr("must be in quotes"));
  // Another mistake in a line that has `::` in a value.
  EXPECT_THAT(refusal("[n]\nk = a::b", Code::kMalformed), HasSubstr("no TOML"));
}

TEST_F(NodeToml, DeepTextsDoNotExhaustTheStack) {
  std::string dots;
  for (int i = 0; i < 200'000; ++i) dots += "a.";
  EXPECT_THAT(refusal(dots + "a = 1"), HasSubstr("more than 32 dots in one line"));
  EXPECT_THAT(refusal("[" + dots + "a]"), HasSubstr("dots"));
  const std::string open(200'000, '[');
  EXPECT_THAT(refusal("a = " + open, Code::kMalformed), HasSubstr("depth"));
  std::string tables = "a = ";
  for (int i = 0; i < 50'000; ++i) tables += "{a=";
  EXPECT_THAT(refusal(tables, Code::kMalformed), HasSubstr("depth"));
  EXPECT_TRUE(read("# ....................................................\n[n]\n"));
}

TEST_F(NodeToml, LongTextsAreReadOrRefused) {
  std::string text = "[n]\n";
  while (text.size() < kMaxToml - 80) text += "# a comment\n";
  EXPECT_TRUE(read(text));
  EXPECT_THAT(refusal(text + std::string(100, '\n')), HasSubstr("at most 1048576 are allowed"));
  std::string keys = "[n]\n";
  for (int i = 0; keys.size() < 100'000; ++i) keys += "k" + std::to_string(i) + " = 1\n";
  EXPECT_THAT(refusal(keys), HasSubstr("a node of at most 1000 keys"));
  const std::string value(kMaxToml - 80, 'x');
  EXPECT_LT(refusal("[n]\ninstance_num = '" + value + "'").size(), 600U);
  EXPECT_LT(refusal("[n]\n" + value + " = 1").size(), 1000U);
}

TEST_F(NodeToml, AnyBytesAreReadOrRefused) {
  std::mt19937_64 random(16);
  const std::string seed =
      std::string("\"PipelineV3::backend\" = 'Mine'\n") + testing::kThreePrograms;
  for (int i = 0; i < 3000; ++i) {
    std::string text = seed;
    for (auto left = 1 + random() % 4; left > 0; --left) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        default:
          text.insert(at, 1, "&[](),=\"'.:\n0"[random() % 13]);
          break;
      }
      if (text.empty()) text = seed;
    }
    const auto settings = read(text);
    if (settings) continue;
    EXPECT_THAT(settings.error().message(), StartsWith("node.toml:")) << text;
    EXPECT_NE(settings.error().code(), Code::kInternal);
  }
}

}  // namespace
}  // namespace corelane::scheduler
