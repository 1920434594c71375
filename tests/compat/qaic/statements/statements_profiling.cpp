/// Profiling: a number of inferences, and streams of reports; and the set that measures.
#include <condition_variable>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include "statements.h"

namespace statements {

namespace {

/// Gets reports, and lets a thread wait for them.
struct Reports {
  ProfilingCallback callback() {
    return [this](const std::string& report) {
      const std::lock_guard<std::mutex> guard(mutex);
      texts.push_back(report);
      arrived.notify_all();
    };
  }
  size_t count() {
    const std::lock_guard<std::mutex> guard(mutex);
    return texts.size();
  }
  bool wait_for(size_t wanted) {
    std::unique_lock<std::mutex> lock(mutex);
    return arrived.wait_for(lock, 30s, [&] { return texts.size() >= wanted; });
  }
  /// Rows of all reports: what follows four header lines and the columns' names.
  size_t rows() {
    const std::lock_guard<std::mutex> guard(mutex);
    size_t all = 0;
    for (const std::string& text : texts)
      all += static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) - 5;
    return all;
  }
  std::mutex mutex;
  std::condition_variable arrived;
  std::vector<std::string> texts;
};

/// A program with its inferences.
struct ProgramBench {
  explicit ProgramBench(const char* name = "net")
      : context(Context::Factory(nullptr, {kReal})),
        qpc(Qpc::Factory(container("pair"))),
        program(Program::Factory(context, kReal, name, qpc)),
        object(ExecObj::Factory(context, program, memory.buffers())) {}
  void infer(int count) const {
    for (int i = 0; i < count; ++i) CORELANE_GIVES(QS_SUCCESS, object->run());
  }
  Pair memory;
  shContext context;
  shQpc qpc;
  shProgram program;
  shExecObj object;
};

shStreamProfilingHandle stream(Reports& reports, const std::string& regex = "",
                               QAicProfilingSamplingRate rate = QAIC_PROFILING_SAMPLING_RATE_FULL) {
  return StreamProfilingHandle::Factory(rate, QAIC_PROFILING_REPORTING_RATE_500_MS,
                                        reports.callback(), nullptr, "stream", regex);
}

}  // namespace

CORELANE_STATEMENT(statement_27_a_report_comes_once_at_the_count_or_at_the_stop) {
  Reports reports;
  const ProgramBench bench;
  const auto handle = ProfilingHandle::Factory(bench.program, 3, reports.callback());
  CORELANE_GIVES(QS_SUCCESS, handle->start());
  CORELANE_GIVES(QS_SUCCESS, handle->stop());
  CORELANE_NEED(reports.count() == 0);
  CORELANE_GIVES(QS_SUCCESS, handle->start());
  CORELANE_GIVES(QS_BUSY, handle->start());
  bench.infer(5);
  CORELANE_GIVES(QS_SUCCESS, handle->stop());
  CORELANE_NEED(reports.count() == 1 && reports.rows() == 3);
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL,
                  ProfilingHandle::Factory(bench.program, 0, reports.callback()));
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL, ProfilingHandle::Factory(bench.program, 1, nullptr));
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL,
                  ProfilingHandle::Factory(shProgram(), 1, reports.callback()));
}

CORELANE_STATEMENT(statement_27_a_set_is_profiled_through_its_program) {
  Reports reports;
  const SetBench bench(kReal);
  const auto handle =
      ProfilingHandle::Factory({bench.set->getProgram()}, 100, reports.callback(),
                               QAIC_PROFILING_TYPE_LATENCY, "mine", scratch() + "/profiling");
  CORELANE_GIVES(QS_SUCCESS, handle->start());
  for (uint64_t id = 0; id < 4; ++id) {
    shInferenceHandle one = bench.take();
    CORELANE_GIVES(QS_SUCCESS, bench.set->submit(one, id));
    CORELANE_GIVES(QS_SUCCESS, bench.set->getCompletedId(one, id));
    CORELANE_GIVES(QS_SUCCESS, bench.set->putCompleted(one));
  }
  CORELANE_GIVES(QS_SUCCESS, handle->stop());
  CORELANE_NEED(reports.count() == 1 && reports.rows() == 4);
  size_t files = 0;
  for (const auto& entry : qaic_fs::directory_iterator(scratch() + "/profiling")) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("mine-", 0) == 0 && name.find("-latency.txt") != std::string::npos) ++files;
  }
  CORELANE_NEED(files > 0);
}

CORELANE_STATEMENT(statement_28_a_handle_that_is_started_again_behaves_as_the_first_time) {
  Reports reports;
  const ProgramBench bench;
  const auto handle = ProfilingHandle::Factory(bench.program, 2, reports.callback());
  for (size_t turn = 1; turn <= 3; ++turn) {
    CORELANE_GIVES(QS_SUCCESS, handle->start());
    bench.infer(turn == 2 ? 1 : 4);
    CORELANE_GIVES(QS_SUCCESS, handle->stop());
    CORELANE_NEED(reports.count() == turn);
  }
  CORELANE_NEED(reports.rows() == 5);
}

CORELANE_STATEMENT(statement_29_a_stream_has_its_sampling_rate_type_and_name) {
  const ProgramBench bench;
  for (const auto& [rate, one_in] : {std::make_pair(QAIC_PROFILING_SAMPLING_RATE_FULL, 1),
                                     std::make_pair(QAIC_PROFILING_SAMPLING_RATE_FOURTH, 4),
                                     std::make_pair(QAIC_PROFILING_SAMPLING_RATE_SIXTEENTH, 16)}) {
    Reports reports;
    const auto handle = stream(reports, "", rate);
    CORELANE_GIVES(QS_SUCCESS, handle->addProgram(bench.program));
    CORELANE_GIVES(QS_SUCCESS, handle->start());
    bench.infer(33);
    CORELANE_GIVES(QS_SUCCESS, handle->stop());
    CORELANE_GIVES(QS_SUCCESS, handle->flushReports());
    CORELANE_NEED(reports.rows() == static_cast<size_t>((33 + one_in - 1) / one_in));
    CORELANE_NEED(reports.texts[0].find("stream") != std::string::npos);
  }
  Reports reports;
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL, stream(reports, "net("));
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL, stream(reports, std::string(257, 'a')));
}

CORELANE_STATEMENT(statement_30_reports_come_without_samples_and_the_last_one_at_the_stop) {
  Reports reports;
  const ProgramBench bench;
  const auto handle = stream(reports);
  CORELANE_GIVES(QS_SUCCESS, handle->addProgram(bench.program));
  CORELANE_GIVES(QS_SUCCESS, handle->start());
  CORELANE_NEED(reports.wait_for(2));
  CORELANE_NEED(reports.rows() == 0);
  bench.infer(3);
  const size_t before = reports.count();
  CORELANE_GIVES(QS_SUCCESS, handle->stop());
  CORELANE_GIVES(QS_SUCCESS, handle->flushReports());
  CORELANE_NEED(reports.count() > before && reports.rows() == 3);
  const size_t all = reports.count();
  CORELANE_GIVES(QS_SUCCESS, handle->stop());
  CORELANE_GIVES(QS_SUCCESS, handle->flushReports());
  CORELANE_NEED(reports.count() == all);
}

CORELANE_STATEMENT(statement_31_programs_join_and_leave_by_calls_and_by_their_names) {
  Reports reports;
  const auto handle = stream(reports, "joins-[0-9]+");
  CORELANE_GIVES(QS_SUCCESS, handle->start());
  const ProgramBench other("stays-out");
  other.infer(1);
  {
    const ProgramBench joined("joins-7");
    joined.infer(2);
  }
  CORELANE_GIVES(QS_SUCCESS, handle->addProgram(other.program));
  other.infer(4);
  CORELANE_GIVES(QS_SUCCESS, handle->removeProgram(other.program));
  CORELANE_GIVES(QS_INVAL, handle->removeProgram(other.program));
  CORELANE_GIVES(QS_INVAL, handle->addProgram(nullptr));
  other.infer(8);
  CORELANE_GIVES(QS_SUCCESS, handle->stop());
  CORELANE_GIVES(QS_SUCCESS, handle->flushReports());
  CORELANE_NEED(reports.rows() == 6);
}

CORELANE_STATEMENT(profiling_callback_may_throw_stop_and_flush) {
  const ProgramBench bench;
  std::atomic<int> calls{0};
  std::atomic<QStatus> flushed{QS_SUCCESS};
  shStreamProfilingHandle handle;
  handle =
      StreamProfilingHandle::Factory(QAIC_PROFILING_SAMPLING_RATE_FULL,
                                     QAIC_PROFILING_REPORTING_RATE_500_MS, [&](const std::string&) {
                                       flushed = handle->flushReports();
                                       static_cast<void>(handle->stop());
                                       ++calls;
                                       throw std::runtime_error("a user's mistake");
                                     });
  CORELANE_GIVES(QS_SUCCESS, handle->addProgram(bench.program));
  CORELANE_GIVES(QS_SUCCESS, handle->start());
  CORELANE_GIVES(QS_SUCCESS, handle->stop());
  CORELANE_GIVES(QS_SUCCESS, handle->flushReports());
  CORELANE_NEED(calls >= 1 && flushed == QS_INVAL);
}

/// Not one of the contract's numbers: it has no statement on this class.
CORELANE_STATEMENT(benchmark_set_runs_counts_and_times) {
  const auto context = Context::Factory(nullptr, {kReal, kFailing});
  const auto qpc = Qpc::Factory(container("pair"));
  const auto set = InferenceBenchmarkSet::Factory(context, qpc, kReal, 2, 1);
  CORELANE_GIVES(QS_INVAL, set->run(1));
  CORELANE_GIVES(QS_SUCCESS, set->enable());
  CORELANE_GIVES(QS_SUCCESS, set->enable());
  CORELANE_GIVES(QS_INVAL, set->run(0));
  uint64_t sum = 0, calls = 0;
  set->setCompletionCallback([&](uint64_t id, QStatus status) {
    CORELANE_NEED(status == QS_SUCCESS);
    sum += id;
    ++calls;
  });
  set->setLiveReporting(QL_DEBUG, 1ms);
  CORELANE_GIVES(QS_SUCCESS, set->run(50));
  CORELANE_NEED(calls == 50 && sum == 49 * 50 / 2 && set->getInfCompleted() == 50);
  const InferenceBenchmarkStats& stats = set->getLastRunStats();
  CORELANE_NEED(stats.infCompleted == 50 && stats.batchSize >= 1);
  const double counted = stats.infPerSec * static_cast<double>(stats.totalTimeUs) / 1e6;
  CORELANE_NEED(counted > 45 && counted < 51);
  CORELANE_GIVES(QS_SUCCESS, set->runForDuration(20ms));
  CORELANE_NEED(set->getLastRunStats().totalTimeUs >= 20000);
  CORELANE_GIVES(QS_UNSUPPORTED, set->setOperatorStatsCallback([] {}));
  CORELANE_GIVES(QS_SUCCESS, set->disable());
  CORELANE_GIVES(QS_INVAL, set->run(1));
  // The callback calls its set's methods, changes itself, and throws.
  CORELANE_GIVES(QS_SUCCESS, set->enable());
  uint64_t wild = 0, next = 0;
  set->setCompletionCallback([&](uint64_t, QStatus) {
    ++wild;
    CORELANE_GIVES(QS_BUSY, set->disable());
    CORELANE_GIVES(QS_BUSY, set->run(1));
    CORELANE_GIVES(QS_SUCCESS, set->enable());
    set->setCompletionCallback([&](uint64_t, QStatus) { ++next; });
    if (wild % 2 == 0) throw wild;
    throw std::runtime_error("from a callback");
  });
  CORELANE_GIVES(QS_SUCCESS, set->run(20));
  CORELANE_NEED(wild == 20 && next == 0 && set->getInfCompleted() == 20);
  CORELANE_GIVES(QS_SUCCESS, set->run(5));
  CORELANE_NEED(wild == 20 && next == 5 && set->getInfCompleted() == 5);
  CORELANE_GIVES(QS_SUCCESS, set->disable());
  // A failure ends the run, and the next one goes on.
  const auto failing = InferenceBenchmarkSet::Factory(context, qpc, kFailing, 1, 1);
  CORELANE_GIVES(QS_SUCCESS, failing->enable());
  CORELANE_GIVES(QS_ERROR, failing->run(10));
  CORELANE_NEED(failing->getLastRunStats().infCompleted == 1);
}

}  // namespace statements
