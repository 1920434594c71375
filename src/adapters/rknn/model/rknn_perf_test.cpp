/// The text of RKNN_QUERY_PERF_DETAIL as programs read it: with regular expressions and by blanks.
#include "adapters/rknn/model/rknn_perf.h"

#include <regex>
#include <sstream>

#include "adapters/rknn/api/rknn_test_support.h"

namespace corelane::rknn::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

/// The rows between the title line of a table and the rule after them.
std::vector<std::vector<std::string>> rows_after(const std::string& text,
                                                 const std::string& title) {
  std::istringstream in(text.substr(text.find(title)));
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(in, line);
  std::getline(in, line);
  for (int rules = 0; std::getline(in, line);) {
    if (line.starts_with("---")) {
      if (++rules == 2) break;
      continue;
    }
    rows.push_back(words(line));
  }
  return rows;
}

device::LayerTime layer(std::string name, std::string type, DType dtype, std::int64_t us,
                        bool executed = true) {
  return {std::move(name), std::move(type), "", dtype, std::chrono::microseconds(us), executed};
}

struct Facts {
  Facts() {
    IoEntry in, out;
    in.desc.name = "data";
    in.desc.dtype = DType::kF32;
    in.reported_dtype = DType::kI8;
    out.desc.name = "prob";
    out.desc.dtype = DType::kF32;
    out.reported_dtype = DType::kF16;
    description.inputs = {in};
    description.outputs = {out};
    facts.description = &description;
    facts.inputs = {Shape({1, 3, 224, 224})};
    facts.outputs = {Shape({1, 1000})};
    facts.bytes_read = 10 * 1024;
    facts.bytes_written = 5 * 1024;
    facts.core_bits = 3;
  }
  ProgramDescription description;
  PerfFacts facts;
};

std::string example() {
  const Facts f;
  return perf_detail_text(
      {layer("conv1", "Convolution", DType::kI8, 120),
       layer("folded", "Add", DType::kF32, 0, false), layer("conv2", "Convolution", DType::kI8, 30),
       layer("a name with blanks", "AnOperatorTypeThatIsLongerThanItsColumn", DType::kI64, 50)},
      f.facts);
}

TEST(RknnPerf, ControlCharactersAreWrittenOut) {
  const Facts f;
  const std::string text =
      perf_detail_text({layer("a\x1b[2Jb\x7f\xc2\x9b", "Add", DType::kF32, 1)}, f.facts);
  EXPECT_NE(text.find("Add:a_[2Jb\\x7f\\xc2\\x9b"), std::string::npos) << text;
}

TEST(RknnPerf, EveryRowHasTheColumnsOfTheTitle) {
  const std::string text = example();
  EXPECT_THAT(text, HasSubstr("Network Layer Information Table"));
  std::istringstream in(text);
  std::string line;
  std::vector<std::string> title;
  while (title.empty() && std::getline(in, line))
    if (line.starts_with("ID ")) title = words(line);
  EXPECT_THAT(title, ElementsAre("ID", "OpType", "DataType", "Target", "InputShape", "OutputShape",
                                 "Cycles(DDR/NPU/Total)", "Time(us)", "MacUsage(%)",
                                 "WorkLoad(0/1/2)", "RW(KB)", "FullName"));
  const auto rows = rows_after(text, "Network Layer Information Table");
  ASSERT_EQ(rows.size(), 6u);  // The title, the input, three layers, the output.
  for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i].size(), title.size()) << i;
  for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_EQ(rows[i][0], std::to_string(i));
  EXPECT_EQ(rows[1][1], "InputOperator");
  EXPECT_EQ(rows[1][2], "INT8");
  EXPECT_EQ(rows[1][4], "\\");
  EXPECT_EQ(rows[1][5], "(1,3,224,224)");
  EXPECT_EQ(rows[1][10], "588.00");
  EXPECT_EQ(rows[1][11], "InputOperator:data");
  EXPECT_EQ(rows[2][3], "NPU");
  EXPECT_EQ(rows[2][7], "120");
  EXPECT_EQ(rows[2][9], "50.0%/50.0%/0.0%");
  EXPECT_EQ(rows[2][11], "Convolution:conv1");
  EXPECT_EQ(rows[4][2], "INT64");
  EXPECT_EQ(rows[4][11], "AnOperatorTypeThatIsLongerThanItsColumn:a_name_with_blanks");
  EXPECT_EQ(rows[5][1], "OutputOperator");
  EXPECT_EQ(rows[5][2], "FLOAT16");
  EXPECT_EQ(rows[5][4], "(1,1000)");
  EXPECT_EQ(rows[5][5], "\\");
}

TEST(RknnPerf, RegularExpressionsOfProgramsFindTheirNumbers) {
  const std::string text = example();
  std::smatch found;
  ASSERT_TRUE(std::regex_search(
      text, found, std::regex(R"(Total Operator Elapsed Per Frame Time\(us\):\s*(\d+))")));
  EXPECT_EQ(found[1], "200");
  ASSERT_TRUE(std::regex_search(
      text, found, std::regex(R"(Total Memory Read/Write Per Frame Size\(KB\):\s*([0-9.]+))")));
  EXPECT_EQ(found[1], "15");
  // id, type, data type, target, shapes, cycles, time, ..., full name.
  const std::regex row(R"((?:^|\n)(\d+)\s+(\w+)\s+(\w+)\s+(CPU|NPU|GPU)\s+(\S+)\s+(\S+)\s+)"
                       R"((\d+)/(\d+)/(\d+)\s+(\d+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\w+):(\S+))");
  std::int64_t sum = 0;
  int rows = 0;
  for (std::sregex_iterator i(text.begin(), text.end(), row), end; i != end; ++i, ++rows) {
    sum += std::stoll((*i)[10]);
    EXPECT_EQ((*i)[2], (*i)[14]);
  }
  EXPECT_EQ(rows, 5);
  EXPECT_EQ(sum, 200);
}

TEST(RknnPerf, TheRankingIsByTimeAndAddsUp) {
  const auto rows = rows_after(example(), "Operator Time Consuming Ranking Table");
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_THAT(rows[0], ElementsAre("OpType", "CallNumber", "CPUTime(us)", "GPUTime(us)",
                                   "NPUTime(us)", "TotalTime(us)", "TimeRatio(%)"));
  EXPECT_THAT(rows[1], ElementsAre("Convolution", "2", "0", "0", "150", "150", "75.00%"));
  EXPECT_THAT(rows[2], ElementsAre("AnOperatorTypeThatIsLongerThanItsColumn", "1", "0", "0", "50",
                                   "50", "25.00%"));
  EXPECT_EQ(rows[3][0], "InputOperator");
  EXPECT_EQ(rows[4][0], "OutputOperator");
  std::smatch total;
  const std::string text = example();
  ASSERT_TRUE(std::regex_search(text, total,
                                std::regex(R"(\nTotal\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+))")));
  EXPECT_EQ(total[1], "5");
  EXPECT_EQ(total[5], "200");
}

TEST(RknnPerf, WithoutLayersTheFrameOfTheTablesIsThere) {
  const Facts f;
  const std::string text = perf_detail_text({}, f.facts);
  EXPECT_EQ(rows_after(text, "Network Layer Information Table").size(), 1u);
  EXPECT_THAT(text, HasSubstr("Total Operator Elapsed Per Frame Time(us): 0\n"));
  EXPECT_THAT(text, HasSubstr("Operator Time Consuming Ranking Table"));
}

TEST(RknnPerf, WithoutCollectPerfTheLayersAreListedWithTimesOfZero) {
  const Model model(doubling({2, 8}));
  for (const bool ran : {false, true}) {
    if (ran) {
      ASSERT_EQ(model.set(ramp(16)), RKNN_SUCC);
      ASSERT_EQ(model.run(), RKNN_SUCC);
    }
    rknn_perf_detail detail{};
    ASSERT_EQ(rknn_query(model.ctx, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail), RKNN_SUCC);
    const auto rows = rows_after(detail.perf_data, "Network Layer Information Table");
    ASSERT_EQ(rows.size(), 4u);
    EXPECT_EQ(rows[1][1], "InputOperator");
    EXPECT_EQ(rows[2][1], "Mul");
    EXPECT_EQ(rows[2][7], "0");
    EXPECT_EQ(rows[3][1], "OutputOperator");
    EXPECT_THAT(detail.perf_data, HasSubstr("Total Operator Elapsed Per Frame Time(us): 0\n"));
  }
}

TEST(RknnPerf, TheQueryTellsTheLayersOfTheLastRun) {
  Model model(doubling({2, 8}), RKNN_FLAG_COLLECT_PERF_MASK);
  ASSERT_EQ(model.set(ramp(16)), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  rknn_perf_detail detail{};
  ASSERT_EQ(rknn_query(model.ctx, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail), RKNN_SUCC);
  ASSERT_NE(detail.perf_data, nullptr);
  EXPECT_EQ(detail.data_len, std::strlen(detail.perf_data));
  const auto rows = rows_after(detail.perf_data, "Network Layer Information Table");
  ASSERT_GE(rows.size(), 4u);
  EXPECT_EQ(rows[1][1], "InputOperator");
  EXPECT_EQ(rows.back()[1], "OutputOperator");
  rknn_perf_run run{};
  ASSERT_EQ(rknn_query(model.ctx, RKNN_QUERY_PERF_RUN, &run, sizeof run), RKNN_SUCC);
  EXPECT_GE(run.run_duration, 0);
}

}  // namespace
}  // namespace corelane::rknn::test
