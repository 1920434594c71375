#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "corelane/base/file.h"
#include "page_reader_options.h"
#include "page_summary.h"
#include "tensor_dump.h"
#include "work_queue.h"

namespace page_reader {
namespace {

using corelane::device::JobRecord;
using std::chrono::milliseconds;

JobRecord job(Role role, std::uint32_t item, std::uint64_t cores, int start, int end) {
  JobRecord record;
  record.tag = tag_of(role, item);
  record.core_bits = cores;
  record.started = corelane::TimePoint(milliseconds(start));
  record.ended = corelane::TimePoint(milliseconds(end));
  return record;
}

std::vector<ModelShare> five_models() {
  std::vector<ModelShare> models;
  for (const ModelSource& source : model_sources())
    models.push_back({std::string(source.name), "shared", {}, 0});
  return models;
}

TEST(Tag, HoldsRoleAndItem) {
  const std::uint64_t tag = tag_of(Role::kRecognition, 4'000'000'000U);
  EXPECT_EQ(role_of(tag), Role::kRecognition);
  EXPECT_EQ(item_of(tag), 4'000'000'000U);
}

TEST(SummarizeRun, SharesOutTheTimeOfAllCores) {
  // 100 ms on two cores: detection takes both for 50 ms, two lines one core each.
  const std::vector<JobRecord> records{
      job(Role::kDetection, 0, 3, 0, 50), job(Role::kRecognition, 0, 1, 50, 100),
      job(Role::kRecognition, 1, 2, 50, 70), job(Role::kLayout, 0, 0, 0, 0)};
  std::vector<PageResult> pages(1);
  pages[0].lines.resize(2);
  const RunSummary s = summarize_run(five_models(), records, 2, pages, milliseconds(200));
  EXPECT_EQ(s.span, milliseconds(100));
  EXPECT_NEAR(s.models[index_of(Role::kDetection)].core_share, 0.5, 1e-9);
  EXPECT_NEAR(s.models[index_of(Role::kRecognition)].core_share, 0.35, 1e-9);
  EXPECT_EQ(s.models[index_of(Role::kRecognition)].times.count, 2U);
  EXPECT_EQ(s.models[index_of(Role::kRecognition)].times.p99, milliseconds(50));
  EXPECT_EQ(s.models[index_of(Role::kLayout)].times.count, 0U) << "it never started";
  EXPECT_NEAR(s.busy[0], 1, 1e-9);
  EXPECT_NEAR(s.busy[1], 0.7, 1e-9);
  EXPECT_NEAR(s.lines_per_second, 10, 1e-9);
}

TEST(SummarizeRun, OfNothingHasNoShares) {
  const RunSummary s = summarize_run(five_models(), {}, 3, {}, {});
  EXPECT_EQ(s.lines_per_second, 0);
  for (const ModelShare& m : s.models) EXPECT_EQ(m.core_share, 0);
}

TEST(SummaryTable, NamesEachModelAndCore) {
  corelane::device::DeviceInfo info;
  info.instance = "virtual:rk3588#0";
  info.cores = {{"core0", 0}, {"core1", 0}};
  const std::vector<JobRecord> records{job(Role::kDetection, 0, 1, 0, 50)};
  const std::vector<PageResult> pages(1);
  const std::string table =
      summary_table(summarize_run(five_models(), records, 2, pages, milliseconds(60)), info);
  for (const char* word : {"orientation", "recognition", "core0 busy 100 %", "core1 busy 0 %",
                           "50.00 ms", "on 1 page in"})
    EXPECT_NE(table.find(word), std::string::npos) << word << " in\n" << table;
}

TEST(TraceSpans, AreNamedByModelAndItem) {
  const std::vector<JobRecord> records{job(Role::kRecognition, 2, 1, 0, 5),
                                       job(Role::kDetection, 0, 2, 0, 5)};
  const auto spans = trace_spans(records);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].label, "recognition line 3");
  EXPECT_EQ(spans[1].label, "detection page 1");
}

TEST(TraceSpans, LeaveOutJobsThatAreNotOurs) {
  JobRecord foreign;
  foreign.tag = ~std::uint64_t{0};
  EXPECT_TRUE(trace_spans(std::vector{foreign}).empty());
}

TEST(ResultsJson, HoldsLinesRegionsAndFigures) {
  PageResult page;
  page.lines.push_back({{{{{1, 2}, {3, 2}, {3, 4}, {1, 4}}}, 0.75F}, {}, {"say \"hi\"\n", 0.5F}});
  page.regions.push_back({1, 0.5F, {1, 2, 3, 4}});
  const std::vector<std::string> labels{"text", "title"};
  const RunSummary summary = summarize_run(five_models(), {}, 1, std::vector{page}, {});
  const auto json = nlohmann::json::parse(results_json("bad \xff name", page, labels, summary, {}));
  EXPECT_EQ(json["lines"][0]["text"], "say \"hi\"\n");
  EXPECT_EQ(json["lines"][0]["quad"][2][1], 4);
  EXPECT_EQ(json["regions"][0]["label"], "title");
  EXPECT_EQ(json["summary"]["models"].size(), kRoles);
}

TEST(SaveNpy, WritesTheHeaderNumpyReads) {
  const auto path = std::filesystem::temp_directory_path() / "page_reader_save.npy";
  const float values[] = {1, 2, 3, 4, 5, 6};
  corelane::TensorView view{values, sizeof values, corelane::DType::kF32, {2, 3}, {}, {}};
  ASSERT_TRUE(save_npy(path, view).ok());
  const auto bytes = corelane::read_file(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(bytes);
  ASSERT_EQ(bytes->size(), 128 + sizeof values) << "the header ends at a multiple of 64";
  const std::string_view text = corelane::as_string_view(*bytes);
  EXPECT_EQ(text.substr(0, 8), std::string_view("\x93NUMPY\x01\x00", 8));
  EXPECT_NE(text.find("'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)"),
            std::string_view::npos);
  EXPECT_EQ(text[127], '\n');
  EXPECT_EQ(std::memcmp(bytes->data() + 128, values, sizeof values), 0);
}

TEST(SaveNpy, RefusesTypesItCannotName) {
  const std::string text = "x";
  corelane::TensorView view{&text, 1, corelane::DType::kString, {1}, {}, {}};
  EXPECT_EQ(save_npy("never.npy", view).code(), corelane::Code::kUnsupported);
}

ParsedCommandLine parse(std::vector<const char*> words) {
  words.insert(words.begin(), "page_reader");
  return parse_command_line(static_cast<int>(words.size()), words.data());
}

TEST(CommandLine, HasDefaults) {
  const auto parsed = parse({"--page", "p.png", "--models-dir", "site"});
  ASSERT_FALSE(parsed.exit);
  EXPECT_EQ(parsed.options.page, "p.png");
  EXPECT_EQ(parsed.options.out, "out/demo");
  EXPECT_EQ(parsed.options.device, "");
}

TEST(CommandLine, TellsUsageErrorsFromHelp) {
  EXPECT_EQ(parse({"--models-dir", "site"}).exit, kExitUsage);
  EXPECT_EQ(parse({"--page", "p", "--models-dir", "s", "--repeat", "0"}).exit, kExitUsage);
  EXPECT_EQ(parse({"--page", "p", "--models-dir", "s", "--what"}).exit, kExitUsage);
  EXPECT_EQ(parse({"--help"}).exit, kExitOk);
}

TEST(ExitCode, FollowsTheBandOfTheStatus) {
  using corelane::Code;
  using corelane::Status;
  EXPECT_EQ(exit_code(Status()), kExitOk);
  EXPECT_EQ(exit_code(Status(Code::kNotFound, "x")), kExitCaller);
  EXPECT_EQ(exit_code(Status(Code::kMalformed, "x")), kExitData);
  EXPECT_EQ(exit_code(Status(Code::kOutOfMemory, "x")), kExitResource);
  EXPECT_EQ(exit_code(Status(Code::kTimeout, "x")), kExitExecution);
  EXPECT_EQ(exit_code(Status(Code::kInternal, "x")), kExitInternal);
}

}  // namespace
}  // namespace page_reader
