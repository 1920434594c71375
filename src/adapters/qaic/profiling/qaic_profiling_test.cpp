// The two profiling handles by the C functions, on a scripted device under a virtual clock.
#include "adapters/qaic/profiling/qaic_profiling.h"

#include <pthread.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "adapters/qaic/profiling/qaic_profile_tap.h"
#include "adapters/qaic/testing/qaic_profile_bench.h"

namespace corelane::qaic::test {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(QaicProfiling, TheReportComesOnceWhenTheCountIsReached) {
  ProfileBench bench;
  QAicProfilingHandle* handle = bench.counting(3);
  bench.infer(2);
  ASSERT_EQ(qaicProfilingStart(handle), QS_SUCCESS);
  EXPECT_EQ(qaicProfilingStart(handle), QS_BUSY);
  bench.infer(5);
  EXPECT_EQ(qaicProfilingStop(handle), QS_SUCCESS);
  EXPECT_EQ(qaicProfilingStop(handle), QS_SUCCESS);
  EXPECT_THAT(bench.rows(), ElementsAre(3));
  EXPECT_EQ(qaicReleaseProfilingHandle(handle), QS_SUCCESS);
  EXPECT_THAT(bench.rows(), ElementsAre(3));
}

TEST(QaicProfiling, StopDeliversWhatThereIsAndNothingForNothing) {
  ProfileBench bench;
  QAicProfilingHandle* handle = bench.counting(100);
  ASSERT_EQ(qaicProfilingStart(handle), QS_SUCCESS);
  EXPECT_EQ(qaicProfilingStop(handle), QS_SUCCESS);
  EXPECT_THAT(bench.rows(), IsEmpty());
  ASSERT_EQ(qaicProfilingStart(handle), QS_SUCCESS);
  bench.infer(4);
  EXPECT_EQ(qaicProfilingStop(handle), QS_SUCCESS);
  EXPECT_THAT(bench.rows(), ElementsAre(4));
  EXPECT_EQ(qaicReleaseProfilingHandle(handle), QS_SUCCESS);
}

TEST(QaicProfiling, StartAgainBehavesAsTheFirstTime) {
  ProfileBench bench;
  QAicProfilingHandle* handle = bench.counting(2);
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_EQ(qaicProfilingStart(handle), QS_SUCCESS) << text();
    bench.infer(3);
    EXPECT_EQ(qaicProfilingStop(handle), QS_SUCCESS);
  }
  EXPECT_THAT(bench.rows(), ElementsAre(2, 2, 2));
  EXPECT_EQ(qaicReleaseProfilingHandle(handle), QS_SUCCESS);
}

TEST(QaicProfiling, ReadersOfTheLatencyReportFindTheirFigures) {
  ProfileBench bench;
  bench.advance(milliseconds(7));  // A stamp of the clock's zero would be one that is not there.
  QAicProfilingHandle* handle = bench.counting(2);
  ASSERT_EQ(qaicProfilingStart(handle), QS_SUCCESS);
  bench.infer(2);
  ASSERT_EQ(qaicProfilingStop(handle), QS_SUCCESS);
  ASSERT_EQ(bench.reports.count(), 1U);
  const std::string report = bench.reports.all()[0];
  const auto rows = rows_by_name(report);
  ASSERT_EQ(rows.size(), 2U);
  for (const auto& row : rows) {
    EXPECT_EQ(row.size(), 16U);
    EXPECT_EQ(row.at("devExecUs"), 1000);
    EXPECT_EQ(row.at("devInfPerSec"), 1000);
    EXPECT_EQ(row.at("devInWaitTimeUs"), 0);
    EXPECT_EQ(row.at("numInfInQueue"), 1);
    EXPECT_EQ(row.at("exectoVcUs"), 0);
    EXPECT_EQ(row.at("totalRoundtripTimeUs"), 1000);
  }
  EXPECT_EQ(rows[1].at("Sample"), 2);
  EXPECT_THAT(third_from_the_end(report), ElementsAre(1000, 1000));
  EXPECT_EQ(qaicReleaseProfilingHandle(handle), QS_SUCCESS);
}

TEST(QaicProfiling, ATraceHasSpansThatNestAndDoNotGoBack) {
  ProfileBench bench;
  QAicProfilingHandle* handle = bench.counting(3, QAIC_PROFILING_TYPE_TRACE);
  ASSERT_EQ(qaicProfilingStart(handle), QS_SUCCESS);
  bench.infer(3);
  ASSERT_EQ(qaicProfilingStop(handle), QS_SUCCESS);
  ASSERT_EQ(bench.reports.count(), 1U);
  EXPECT_EQ(bars_of_trace(bench.reports.all()[0]), 3U);
  EXPECT_THAT(bench.reports.all()[0], HasSubstr(R"("name":"net")"));
  EXPECT_EQ(qaicReleaseProfilingHandle(handle), QS_SUCCESS);
}

/// Objects of a program that wait for its two cores, one of which is slow, and for each other.
TEST(QaicStreamProfiling, TracesOfInferencesThatWaitNestAndDoNotGoBack) {
  ProfileBench bench("null:generic:2?a=90ms&core1=2");
  QAicStreamProfilingConfig config;
  config.profilingType = QAIC_PROFILING_TYPE_TRACE;
  QAicStreamProfilingHandle* handle = bench.stream(config);
  ASSERT_EQ(qaicStreamProfilingAddProgram(handle, bench.net), QS_SUCCESS);
  ASSERT_EQ(qaicStreamProfilingStart(handle), QS_SUCCESS);
  std::vector<QAicExecObj*> objects;
  for (int i = 0; i < 5; ++i) {
    objects.push_back(bench.exec(bench.net));
    ASSERT_EQ(bench.tensors.give(objects.back()), QS_SUCCESS) << text();
  }
  for (int round = 0; round < 3; ++round) {
    for (QAicExecObj* const one : objects)
      ASSERT_EQ(qaicEnqueueExecObj(bench.line, one, nullptr), QS_SUCCESS) << text();
    bench.advance(milliseconds(700));
    for (QAicExecObj* const one : objects)
      ASSERT_EQ(qaicExecObjWaitForCompletion(one, 0), QS_SUCCESS) << text();
  }
  EXPECT_EQ(qaicStreamProfilingStop(handle), QS_SUCCESS);
  EXPECT_EQ(qaicStreamProfilingFlushReports(handle), QS_SUCCESS);
  std::size_t bars = 0;
  for (const std::string& report : bench.reports.all()) bars += bars_of_trace(report);
  EXPECT_EQ(bars, 15U);
  EXPECT_EQ(bench.reports.count(), 5U);
  EXPECT_EQ(qaicReleaseStreamProfilingHandle(handle), QS_SUCCESS);
  for (QAicExecObj* const one : objects) EXPECT_EQ(qaicReleaseExecObj(one), QS_SUCCESS);
}

TEST(QaicProfiling, RawAndKpiReportsHaveTheirSchema) {
  ProfileBench bench;
  for (const auto& [type, schema] :
       {std::pair{QAIC_PROFILING_TYPE_RAW_DEVICE_STATS, "device_stats"},
        std::pair{QAIC_PROFILING_TYPE_DEVICE_KPI, "device_kpi"}}) {
    QAicProfilingHandle* handle = bench.counting(2, type);
    ASSERT_EQ(qaicProfilingStart(handle), QS_SUCCESS);
    bench.infer(2);
    ASSERT_EQ(qaicProfilingStop(handle), QS_SUCCESS);
    const auto json = nlohmann::json::parse(bench.reports.all().back());
    EXPECT_EQ(json["schema"], std::string("corelane.") + schema);
    EXPECT_EQ(json["version"], 1);
    EXPECT_EQ(json["samples"], 2);
    if (type == QAIC_PROFILING_TYPE_RAW_DEVICE_STATS)
      EXPECT_EQ(
          json["records"][0]["ended_ns"].get<int>() - json["records"][0]["started_ns"].get<int>(),
          1'000'000);
    else
      EXPECT_EQ(json["exec_us"]["p99"], 1000);
    EXPECT_EQ(qaicReleaseProfilingHandle(handle), QS_SUCCESS);
  }
}

TEST(QaicProfiling, AFileHasTheNameOfItsProgramAndType) {
  ProfileBench bench;
  const std::string folder = ::testing::TempDir() + "qaic_profiling_" + std::to_string(getpid());
  QAicProfilingHandle* handle = bench.counting(1, QAIC_PROFILING_TYPE_LATENCY, folder.c_str());
  ASSERT_EQ(qaicProfilingStart(handle), QS_SUCCESS);
  bench.infer();
  ASSERT_EQ(qaicProfilingStop(handle), QS_SUCCESS);
  const std::string path = folder + "/aic-profiling-program-" +
                           std::to_string(bench.info(bench.net).programID) + "-latency.txt";
  std::ifstream in(path);
  const std::string report{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(rows_by_name(report).size(), 1U) << path;
  EXPECT_EQ(qaicReleaseProfilingHandle(handle), QS_SUCCESS);
  std::filesystem::remove_all(folder);
}

TEST(QaicProfiling, BadConfigurationsAreRefused) {
  ProfileBench bench;
  QAicProfilingHandle* handle = nullptr;
  const auto create = [&](const std::function<void(QAicProfilingConfig&)>& change,
                          QAicProfilingCallback callback = &Reports::on_report) {
    QAicProfilingConfig config;
    config.numPrograms = 1;
    config.programs = &bench.net;
    config.numSamples = 1;
    change(config);
    return qaicCreateProfilingHandle(&handle, &config, callback, &bench.reports);
  };
  EXPECT_EQ(create([](auto& c) { c.numPrograms = 0; }), QS_INVAL);
  EXPECT_EQ(create([](auto& c) { c.numSamples = 0; }), QS_INVAL);
  EXPECT_EQ(create([](auto& c) { c.numSamples = (1U << 20) + 1; }), QS_INVAL);
  EXPECT_EQ(create([](auto& c) { c.profilingType = static_cast<QAicProfilingType>(4); }), QS_INVAL);
  EXPECT_EQ(create([](auto& c) { c.filePrefix = "a/b"; }), QS_INVAL);
  EXPECT_EQ(create([](auto&) {}, nullptr), QS_INVAL);
  QAicProgram* twice[2] = {bench.net, bench.net};
  EXPECT_EQ(create([&](auto& c) {
              c.numPrograms = 2;
              c.programs = twice;
            }),
            QS_INVAL);
  EXPECT_EQ(handle, nullptr);
}

TEST(QaicProfiling, ASetIsProfiledThroughItsProgram) {
  ProfileBench bench;
  QAicInferenceSet* set = bench.set(1);
  QAicProgram* program = nullptr;
  ASSERT_EQ(qaicInferenceSetGetProgram(set, &program), QS_SUCCESS);
  QAicProfilingConfig config;
  config.numPrograms = 1;
  config.programs = &program;
  config.numSamples = 100;
  QAicProfilingHandle* handle = nullptr;
  ASSERT_EQ(qaicCreateProfilingHandle(&handle, &config, &Reports::on_report, &bench.reports),
            QS_SUCCESS);
  ASSERT_EQ(qaicProfilingStart(handle), QS_SUCCESS);
  const Tensors memory;
  for (std::uint64_t id = 0; id < 5; ++id) {
    std::uint32_t index = 0;
    ASSERT_EQ(qaicInferenceSetGetAvailable(set, 0, &index), QS_SUCCESS);
    ASSERT_EQ(memory.give(set, index), QS_SUCCESS);
    ASSERT_EQ(qaicInferenceSetSubmit(set, index, id), QS_SUCCESS) << text();
    bench.advance(milliseconds(1));
    ASSERT_EQ(qaicInferenceSetGetCompletedId(set, id, 0, &index), QS_SUCCESS);
    ASSERT_EQ(qaicInferenceSetPutCompleted(set, index), QS_SUCCESS);
  }
  ASSERT_EQ(qaicProfilingStop(handle), QS_SUCCESS);
  EXPECT_THAT(bench.rows(), ElementsAre(5));
  // The handle outlives what it profiles.
  ASSERT_EQ(qaicProfilingStart(handle), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseInferenceSet(set), QS_SUCCESS);
  EXPECT_EQ(qaicProfilingStop(handle), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProfilingHandle(handle), QS_SUCCESS);
  EXPECT_THAT(bench.rows(), ElementsAre(5));
}

/// Four inferences complete and are not collected.
TEST(QaicProfiling, InferencesOfASetCountWhenTheyCompleteWhetherOrNotTheyAreCollected) {
  ProfileBench bench;
  QAicInferenceSet* set = bench.set(4);
  QAicProgram* program = nullptr;
  ASSERT_EQ(qaicInferenceSetGetProgram(set, &program), QS_SUCCESS);
  QAicProfilingConfig config;
  config.numPrograms = 1;
  config.programs = &program;
  config.numSamples = 3;
  QAicProfilingHandle* handle = nullptr;
  ASSERT_EQ(qaicCreateProfilingHandle(&handle, &config, &Reports::on_report, &bench.reports),
            QS_SUCCESS);
  QAicStreamProfilingHandle* stream = bench.stream();
  ASSERT_EQ(qaicStreamProfilingAddProgram(stream, program), QS_SUCCESS);
  ASSERT_EQ(qaicStreamProfilingStart(stream), QS_SUCCESS);
  ASSERT_EQ(qaicProfilingStart(handle), QS_SUCCESS);
  const Tensors memory[4];
  for (std::uint32_t index = 0; index < 4; ++index) {
    ASSERT_EQ(memory[index].give(set, index), QS_SUCCESS);
    ASSERT_EQ(qaicInferenceSetSubmit(set, index, index), QS_SUCCESS) << text();
  }
  bench.advance(milliseconds(4));
  ASSERT_EQ(qaicInferenceSetWaitForCompletion(set, QAIC_WAIT_FOREVER), QS_SUCCESS);
  ASSERT_EQ(qaicProfilingStop(handle), QS_SUCCESS);
  EXPECT_THAT(bench.rows(), ElementsAre(3));
  ASSERT_EQ(qaicStreamProfilingStop(stream), QS_SUCCESS);
  EXPECT_EQ(qaicStreamProfilingFlushReports(stream), QS_SUCCESS);
  EXPECT_THAT(bench.rows(), ElementsAre(3, 4));
  EXPECT_EQ(qaicReleaseProfilingHandle(handle), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseStreamProfilingHandle(stream), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseInferenceSet(set), QS_SUCCESS);
}

// --- Streams.

TEST(QaicStreamProfiling, ReportsComeAtTheBoundariesOfTheClockAlsoEmpty) {
  ProfileBench bench;
  QAicStreamProfilingHandle* handle = bench.stream();
  ASSERT_EQ(qaicStreamProfilingAddProgram(handle, bench.net), QS_SUCCESS);
  bench.clock->advance_to(TimePoint(milliseconds(4400)));
  ASSERT_EQ(qaicStreamProfilingStart(handle), QS_SUCCESS);
  EXPECT_EQ(qaicStreamProfilingStart(handle), QS_BUSY);
  bench.clock->advance_to(TimePoint(milliseconds(4500) - std::chrono::nanoseconds(1)));
  EXPECT_EQ(qaicStreamProfilingFlushReports(handle), QS_SUCCESS);
  EXPECT_THAT(bench.rows(), IsEmpty());
  bench.clock->advance_to(TimePoint(milliseconds(4500)));
  EXPECT_EQ(qaicStreamProfilingFlushReports(handle), QS_SUCCESS);
  EXPECT_THAT(bench.rows(), ElementsAre(0));
  bench.infer(7);
  bench.clock->advance_to(TimePoint(milliseconds(5000)));
  bench.infer(2);
  bench.clock->advance_to(TimePoint(milliseconds(5500)));
  bench.infer(1);
  EXPECT_EQ(qaicStreamProfilingStop(handle), QS_SUCCESS);
  EXPECT_EQ(qaicStreamProfilingStop(handle), QS_SUCCESS);
  EXPECT_EQ(qaicStreamProfilingFlushReports(handle), QS_SUCCESS);
  EXPECT_THAT(bench.rows(), ElementsAre(0, 7, 2, 1));
  bench.advance(milliseconds(2000));
  EXPECT_EQ(qaicStreamProfilingFlushReports(handle), QS_SUCCESS);
  EXPECT_THAT(bench.rows(), ElementsAre(0, 7, 2, 1));
  // Again as the first time.
  ASSERT_EQ(qaicStreamProfilingStart(handle), QS_SUCCESS);
  bench.infer(3);
  EXPECT_EQ(qaicStreamProfilingStop(handle), QS_SUCCESS);
  EXPECT_EQ(qaicStreamProfilingFlushReports(handle), QS_SUCCESS);
  EXPECT_THAT(bench.rows(), ElementsAre(0, 7, 2, 1, 3));
  EXPECT_EQ(qaicReleaseStreamProfilingHandle(handle), QS_SUCCESS);
}

/// Such a set took the whole start with it.
TEST(QaicStreamProfiling, ASetThatWasShutDownDoesNotKeepOthersFromBeingProfiled) {
  ProfileBench bench;
  QAicInferenceSet* const set = bench.set(1);
  QAicProgram* ended = nullptr;
  ASSERT_EQ(qaicInferenceSetGetProgram(set, &ended), QS_SUCCESS);
  ASSERT_EQ(qaicInferenceSetShutdown(set), QS_SUCCESS);
  QAicStreamProfilingHandle* const handle = bench.stream();
  for (QAicProgram* one : {ended, bench.net})
    ASSERT_EQ(qaicStreamProfilingAddProgram(handle, one), QS_SUCCESS) << text();
  ASSERT_EQ(qaicStreamProfilingStart(handle), QS_SUCCESS) << text();
  bench.infer(3);
  bench.clock->advance_to(TimePoint(milliseconds(500)));
  EXPECT_EQ(qaicStreamProfilingFlushReports(handle), QS_SUCCESS);
  EXPECT_THAT(bench.rows(), ElementsAre(3));
  EXPECT_EQ(qaicReleaseStreamProfilingHandle(handle), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(ended), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseInferenceSet(set), QS_SUCCESS);
}

TEST(QaicStreamProfiling, EachPeriodHasItsLength) {
  for (int rate = 0; rate < 4; ++rate) {
    ProfileBench bench;
    QAicStreamProfilingConfig config;
    config.reportingRate = static_cast<QAicProfilingReportingRate>(rate);
    QAicStreamProfilingHandle* handle = bench.stream(config);
    ASSERT_EQ(qaicStreamProfilingAddProgram(handle, bench.net), QS_SUCCESS);
    ASSERT_EQ(qaicStreamProfilingStart(handle), QS_SUCCESS);
    bench.clock->advance_to(TimePoint(milliseconds(8000)));
    EXPECT_EQ(qaicStreamProfilingFlushReports(handle), QS_SUCCESS);
    EXPECT_EQ(bench.reports.count(), 16U >> rate);
    EXPECT_EQ(qaicReleaseStreamProfilingHandle(handle), QS_SUCCESS);
  }
}

TEST(QaicStreamProfiling, TheSumOverReportsIsWhatWasSampled) {
  for (int rate = 0; rate < 5; ++rate) {
    ProfileBench bench("null:generic:4?a=100ms");
    QAicStreamProfilingConfig config;
    config.samplingRate = static_cast<QAicProfilingSamplingRate>(rate);
    QAicStreamProfilingHandle* handle = bench.stream(config);
    ASSERT_EQ(qaicStreamProfilingAddProgram(handle, bench.net), QS_SUCCESS);
    ASSERT_EQ(qaicStreamProfilingStart(handle), QS_SUCCESS);
    for (int i = 0; i < 33; ++i) {
      ASSERT_EQ(qaicEnqueueExecObj(bench.line, bench.object, nullptr), QS_SUCCESS) << text();
      bench.advance(milliseconds(100));
      ASSERT_EQ(qaicExecObjWaitForCompletion(bench.object, 0), QS_SUCCESS);
    }
    EXPECT_EQ(qaicStreamProfilingStop(handle), QS_SUCCESS);
    EXPECT_EQ(qaicStreamProfilingFlushReports(handle), QS_SUCCESS);
    std::size_t sum = 0;
    for (const std::size_t one : bench.rows()) sum += one;
    EXPECT_EQ(sum, (33U + (1U << rate) - 1) >> rate);
    EXPECT_EQ(bench.reports.count(), 7U);
    EXPECT_EQ(qaicReleaseStreamProfilingHandle(handle), QS_SUCCESS);
  }
}

TEST(QaicStreamProfiling, ProgramsJoinAndLeaveByTheirNameAndByCalls) {
  ProfileBench bench;
  QAicStreamProfilingConfig config;
  config.regex = "n[a-z]t";
  QAicStreamProfilingHandle* handle = bench.stream(config);
  config.regex = "net.";
  QAicStreamProfilingHandle* other = bench.stream(config);
  ASSERT_EQ(qaicStreamProfilingStart(handle), QS_SUCCESS);
  EXPECT_EQ(qaicStreamProfilingRemoveProgram(other, bench.net), QS_INVAL);
  bench.infer(2);
  QAicProgram* second = bench.program();
  QAicExecObj* object = bench.exec(second);
  const Tensors memory;
  ASSERT_EQ(memory.give(object), QS_SUCCESS);
  const auto run = [&] {
    ASSERT_EQ(qaicEnqueueExecObj(bench.line, object, nullptr), QS_SUCCESS) << text();
    bench.advance(milliseconds(1));
    ASSERT_EQ(qaicExecObjWaitForCompletion(object, 0), QS_SUCCESS);
  };
  run();
  ASSERT_EQ(qaicStreamProfilingRemoveProgram(handle, bench.net), QS_SUCCESS);
  EXPECT_EQ(qaicStreamProfilingRemoveProgram(handle, bench.net), QS_INVAL);
  bench.infer(4);
  ASSERT_EQ(qaicStreamProfilingAddProgram(handle, bench.net), QS_SUCCESS);
  ASSERT_EQ(qaicStreamProfilingAddProgram(handle, bench.net), QS_SUCCESS) << "it is there";
  bench.infer(1);
  ASSERT_EQ(qaicReleaseProgram(second), QS_SUCCESS);
  run();
  EXPECT_EQ(qaicStreamProfilingStop(handle), QS_SUCCESS);
  EXPECT_EQ(qaicStreamProfilingFlushReports(handle), QS_SUCCESS);
  EXPECT_THAT(bench.rows(), ElementsAre(4));
  EXPECT_EQ(qaicReleaseExecObj(object), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseStreamProfilingHandle(handle), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseStreamProfilingHandle(other), QS_SUCCESS);
}

/// Calls `f` in a thread with a stack of so many KiB.
void on_small_stack(std::size_t kib, const std::function<void()>& f) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kib * 1024), 0);
  pthread_t thread{};
  const auto call = [](void* given) -> void* {
    (*static_cast<const std::function<void()>*>(given))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, call, const_cast<std::function<void()>*>(&f)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(QaicStreamProfiling, ExpressionsThatRepeatTooMuchAreRefusedBeforeTheyTakeTheStack) {
  for (const char* text : {"(a?){16000}b", "(a?){16000,}b", "((a?){100}){100}b", "(a?){9}{9}{99}",
                           "x|(x?){16000}", "(a?){99999999999999999999}", "[a]{16000}"}) {
    const auto made = NameExpression::create(text);
    ASSERT_FALSE(made) << text;
    EXPECT_EQ(made.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(made.error().to_string(), HasSubstr("repeats too much")) << text;
  }
  on_small_stack(1024, [] {
    const auto most = NameExpression::create("(a?){409}b");
    ASSERT_TRUE(most);
    EXPECT_FALSE(most->matches(std::string(256, 'a')));
    EXPECT_TRUE(most->matches(std::string(255, 'a') + "b"));
  });
  for (const char* text : {"net[0-9]{1,4}", R"(net\{16000)", "net[{16000}]"})
    EXPECT_TRUE(NameExpression::create(text)) << text;
}

TEST(QaicStreamProfiling, BadExpressionsAreRefusedAndCostlyOnesEnd) {
  EXPECT_FALSE(NameExpression::create("net("));
  EXPECT_FALSE(NameExpression::create("(a)\\1"));
  EXPECT_FALSE(NameExpression::create(std::string(257, 'a')));
  ASSERT_TRUE(NameExpression::create(std::string(128, '(') + std::string(128, ')')));
  const auto costly = NameExpression::create("(a|aa|a*)*b");
  ASSERT_TRUE(costly);
  EXPECT_FALSE(costly->matches(std::string(256, 'a')));
  EXPECT_TRUE(costly->matches(std::string(255, 'a') + "b"));
  EXPECT_FALSE(costly->matches(std::string(256, 'a') + "b")) << "longer than is tried";
  ProfileBench bench;
  QAicStreamProfilingConfig config;
  QAicStreamProfilingHandle* handle = nullptr;
  EXPECT_EQ(qaicCreateStreamProfilingHandle(&handle, &config, nullptr, nullptr), QS_INVAL);
  config.regex = "[";
  EXPECT_EQ(qaicCreateStreamProfilingHandle(&handle, &config, &Reports::on_report, nullptr),
            QS_INVAL);
  EXPECT_THAT(text(), ::testing::HasSubstr("ECMAScript"));
}

/// The observation of a set that had no room for five records.
class LossyObservation final : public device::Observation {
 public:
  std::uint64_t dropped() const override { return 5; }
  bool flush(TimePoint) override { return true; }
};

TEST(QaicStreamProfiling, RecordsThatFoundNoRoomAreCountedOnce) {
  const auto clock = std::make_shared<VirtualClock>();
  const auto tap = std::make_shared<ProfileTap>(ProfiledProgram{1, "lossy", {}, clock});
  std::function<void(const SetRecord&)> on_record;
  tap->set_source([&](std::function<void(const SetRecord&)> f) {
    on_record = std::move(f);
    return Result<std::shared_ptr<device::Observation>>(std::make_shared<LossyObservation>());
  });
  Reports reports;
  ProfileTarget target;
  target.callback = &Reports::on_report;
  target.user_data = &reports;
  StreamOptions options;
  options.period = milliseconds(500);
  const auto stream = StreamProfilingObject::create(std::move(options), target).value();
  ASSERT_TRUE(stream->add(tap).ok());
  ASSERT_TRUE(stream->start().ok());
  clock->advance(milliseconds(500));
  ASSERT_TRUE(stream->flush().ok());
  stream->stop();
  ASSERT_TRUE(stream->flush().ok());
  ASSERT_EQ(reports.count(), 2U);
  EXPECT_THAT(reports.all()[0], HasSubstr("Samples: 0 Dropped: 5"));
  EXPECT_THAT(reports.all()[1], HasSubstr("Samples: 0 Dropped: 0"));
  stream->close();

  const auto count = ProfilingObject::create({tap}, 1, target).value();
  ASSERT_TRUE(count->start().ok());
  on_record(SetRecord{});
  count->stop();
  ASSERT_EQ(reports.count(), 3U);
  EXPECT_THAT(reports.all()[2], HasSubstr("Samples: 1 Dropped: 5"));
}

TEST(QaicStreamProfiling, ACallbackMayCallAndThrow) {
  struct Caller {
    QAicStreamProfilingHandle* handle = nullptr;
    std::atomic<int> calls{0};
    std::atomic<int> flushed{QS_SUCCESS};
  } caller;
  ProfileBench bench;
  const QAicStreamProfilingConfig config;
  ASSERT_EQ(qaicCreateStreamProfilingHandle(
                &caller.handle, &config,
                [](const char*, std::size_t, void* data) {
                  auto& self = *static_cast<Caller*>(data);
                  self.flushed = qaicStreamProfilingFlushReports(self.handle);
                  if (++self.calls == 1) throw std::runtime_error("a user's mistake");
                  qaicStreamProfilingStop(self.handle);
                },
                &caller),
            QS_SUCCESS);
  ASSERT_EQ(qaicStreamProfilingAddProgram(caller.handle, bench.net), QS_SUCCESS);
  ASSERT_EQ(qaicStreamProfilingStart(caller.handle), QS_SUCCESS);
  bench.advance(milliseconds(500));
  ASSERT_EQ(qaicStreamProfilingFlushReports(caller.handle), QS_SUCCESS);
  EXPECT_EQ(caller.calls, 1);
  bench.advance(milliseconds(500));
  ASSERT_EQ(qaicStreamProfilingFlushReports(caller.handle), QS_SUCCESS);
  EXPECT_EQ(caller.calls, 3) << "the report, and the last one of its stop";
  EXPECT_EQ(caller.flushed, QS_INVAL);
  bench.advance(milliseconds(5000));
  EXPECT_EQ(qaicReleaseStreamProfilingHandle(caller.handle), QS_SUCCESS);
  EXPECT_EQ(caller.calls, 3);
}

TEST(QaicStreamProfiling, HandlesAndProgramsGoInAnyOrderWhileInferencesEnd) {
  ProfileBench bench("null:generic:4?a=1us");
  QAicStreamProfilingConfig config;
  config.regex = ".*";
  std::atomic<bool> end{false};
  std::thread others([&] {
    while (!end) {
      QAicStreamProfilingHandle* handle = bench.stream(config);
      EXPECT_EQ(qaicStreamProfilingStart(handle), QS_SUCCESS);
      EXPECT_EQ(qaicStreamProfilingStop(handle), QS_SUCCESS);
      EXPECT_EQ(qaicReleaseStreamProfilingHandle(handle), QS_SUCCESS);
      EXPECT_EQ(qaicReleaseProgram(bench.program()), QS_SUCCESS);
    }
  });
  bench.infer(500);
  end = true;
  others.join();
}

}  // namespace
}  // namespace corelane::qaic::test
