// Sessions under pressure, on scripted cores (the null driver on the real clock) and on the virtual
// NPU: how near threads, batches and the pace come to what the script allows, how long one
// submission may take, whether memory stays level. The control of a ratio is the same work as
// sleeps of bare threads.
#include <malloc.h>
#include <sys/resource.h>

#include <atomic>
#include <fstream>
#include <numeric>
#include <thread>

#include "corelane/device/registry.h"
#include "corelane/session/session.h"
#include "harness.h"
#include "tiny_model.h"

namespace corelane::bench {
namespace {

using Seconds = std::chrono::duration<double>;
using std::chrono::milliseconds;

constexpr std::size_t kN = 16;

Session open_session(const std::string& device, SessionOptions options) {
  options.load.device = device;
  options.load.cache = false;
  options.print_perf = false;
  device::OpenOptions own;
  own.own_instance = true;
  options.load.on = take(device::open_device(device, own));
  return take(Session::create(as_byte_span(relu_model(kN)), options));
}

Feed feed_of(const std::vector<float>& x) {
  const auto n = static_cast<std::int64_t>(x.size() / kN);
  const Shape shape{n * static_cast<std::int64_t>(kN)};
  return {{"x", {x.data(), x.size() * sizeof(float), DType::kF32, shape, {}, {}}, nullptr}};
}

double seconds_of(const std::function<void()>& f) {
  const TimePoint begin = real_clock()->now();
  f();
  return Seconds(real_clock()->now() - begin).count();
}

/// A figure without a rival: one line on stderr, one object in the report.
Json figure(const std::string& name, double value, const std::string& unit, double at_most) {
  const bool met = value <= at_most;
  std::fprintf(stderr, "%-52s %.3f %s  <= %.3f: %s\n", name.c_str(), value, unit.c_str(), at_most,
               met ? "met" : "missed");
  return {{"name", name},
          {"value", value},
          {"unit", unit},
          {"target", at_most},
          {"verdict", met ? "met" : "missed"}};
}

/// Wall time over the ideal one, against `threads` threads that sleep `each` x `times`.
Json against_ideal(const std::string& name, int rounds, std::size_t threads, Duration each,
                   std::size_t times, double target, const std::function<void()>& work) {
  const double ideal = Seconds(each).count() * static_cast<double>(times);
  std::vector<double> ours, control;
  const std::vector<double> ideals(static_cast<std::size_t>(rounds), ideal);
  for (int i = 0; i < rounds; ++i) {
    ours.push_back(seconds_of(work));
    control.push_back(seconds_of([&] {
      std::vector<std::jthread> sleepers;
      for (std::size_t t = 0; t < threads; ++t) {
        sleepers.emplace_back([&] {
          for (std::size_t k = 0; k < times; ++k) std::this_thread::sleep_for(each);
        });
      }
    }));
  }
  return report_ratio(name, ratio_of(ours, ideals), ratio_of(control, ideals), target, true);
}

SessionOptions three_cores() {
  SessionOptions options;
  options.schedule = {0, 1, 2};
  return options;
}

/// `threads` callers of run(), `runs` each; every answer is compared with its own input.
void tagged_runs(Session& session, std::size_t threads, std::size_t runs) {
  std::atomic<std::uint64_t> wrong{0};
  {
    std::vector<std::jthread> callers;
    for (std::size_t t = 0; t < threads; ++t) {
      callers.emplace_back([&, t] {
        for (std::size_t i = 0; i < runs; ++i) {
          const std::vector<float> x(kN, static_cast<float>(t * runs + i));
          const auto y = session.run(feed_of(x));
          const auto* first = y ? static_cast<const float*>(y->front().data.get()) : nullptr;
          wrong += first == nullptr || !std::equal(x.begin(), x.end(), first);
        }
      });
    }
  }
  if (wrong > 0) fail("an answer belongs to another call");
}

Json eight_threads(int rounds, std::size_t runs) {
  Session session = open_session("null:rk3588?a=5ms", three_cores());
  // 95 % of the ideal throughput.
  return against_ideal("8 threads x " + std::to_string(runs) + " runs of 5 ms on 3 cores / ideal",
                       rounds, 3, milliseconds(5), (8 * runs + 2) / 3, 1 / 0.95,
                       [&] { tagged_runs(session, 8, runs); });
}

/// 12 samples of 20 ms, each one float.
Json batch(int rounds, const std::vector<std::size_t>& schedule) {
  SessionOptions options;
  options.schedule = schedule;
  options.load.cache = false;
  device::OpenOptions own;
  own.own_instance = true;
  options.load.on = take(device::open_device("null:rk3588?a=20ms", own));
  options.print_perf = false;
  Session session = take(Session::create(as_byte_span(relu_model(1)), options));
  std::vector<float> x(12);
  std::iota(x.begin(), x.end(), 1.0F);
  const Feed feed = {{"x", {x.data(), 48, DType::kF32, Shape{12}, {}, {}}, nullptr}};
  const auto name = std::to_string(schedule.size()) + (schedule.size() == 1 ? " core" : " cores");
  return against_ideal("batch of 12 x 20 ms on " + name + " / ideal", rounds, schedule.size(),
                       milliseconds(20), 12 / schedule.size(), 1.15, [&] {
                         const Outputs y = take(session.run_batch(feed));
                         const auto* first = static_cast<const float*>(y.front().data.get());
                         if (!std::equal(x.begin(), x.end(), first)) fail("answers differ");
                       });
}

double processor_seconds() {
  rusage u{};
  ::getrusage(RUSAGE_SELF, &u);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return of(u.ru_utime) + of(u.ru_stime);
}

/// Gaps between paced submissions of 20 ms tasks, and the processor time of the whole process.
void pace(Json& list, const std::vector<std::size_t>& schedule, double gap_ms) {
  SessionOptions options;
  options.schedule = schedule;
  options.enable_pacing = true;
  Session session = open_session("null:rk3588?a=20ms", options);
  const std::vector<float> x(kN, 1);
  take(session.run(feed_of(x)));  // The first sample.
  std::atomic<int> called{0};
  std::vector<TimePoint> accepted;
  const double cpu_before = processor_seconds();
  const double wall = seconds_of([&] {
    for (int i = 0; i < 61; ++i) {
      take(session.run_async(
          feed_of(x), [&](std::uint64_t, const Result<Outputs>& y) { called += y.has_value(); }));
      accepted.push_back(real_clock()->now());
    }
  });
  const double cpu = processor_seconds() - cpu_before;
  check(session.close());
  if (called != 61) fail("a paced task was lost");
  std::vector<double> gaps;
  for (std::size_t i = 1; i < accepted.size(); ++i)
    gaps.push_back(Seconds(accepted[i] - accepted[i - 1]).count() * 1e3);
  const std::string text = "pace, schedule of " + std::to_string(schedule.size()) + ", gap " +
                           std::to_string(gap_ms).substr(0, 4) + " ms: ";
  list.push_back(
      figure(text + "median off by", std::abs(median_of(gaps) / gap_ms - 1) * 100, "%", 10));
  list.back()["median_gap_ms"] = median_of(gaps);
  list.push_back(figure(text + "processor time", cpu / wall * 100, "%", 5));
}

/// 50,000 submissions at queue size 3.
void submissions(Json& list, const std::string& device) {
  Session session = open_session(device, three_cores());
  const std::vector<float> x(kN, 1);
  std::atomic<int> called{0};
  constexpr int kCount = 50'000;
  double longest = 0;
  const double total = seconds_of([&] {
    for (int i = 0; i < kCount; ++i) {
      const TimePoint begin = real_clock()->now();
      take(session.run_async(
          feed_of(x), [&](std::uint64_t, const Result<Outputs>& y) { called += y.has_value(); }));
      longest = std::max(longest, Seconds(real_clock()->now() - begin).count());
    }
    check(session.close());
  });
  if (called != kCount) fail("a submission was lost");
  list.push_back(figure("50,000 submissions, " + device + ": longest", longest * 1e3, "ms", 100));
  list.back()["total_s"] = total;
  list.back()["per_second"] = kCount / total;
  std::fprintf(stderr, "  %.2f s in all, %.0f per second\n", total, kCount / total);
}

/// Core 0 takes 100 ms, core 1 takes 1 ms: when the five tasks of core 1 are done, and all ten.
void slow_core(Json& list, PlacementPolicy placement, std::int64_t queue) {
  SessionOptions options;
  options.schedule = {0, 1};
  options.sequential_callbacks = false;
  options.placement = placement;
  options.max_queue_size = queue;
  Session session = open_session("null:rk3588?a=1ms&core0=100", options);
  const std::vector<float> x(kN, 1);
  std::mutex mutex;
  std::vector<double> at;
  const TimePoint begin = real_clock()->now();
  for (int i = 0; i < 10; ++i) {
    take(session.run_async(feed_of(x), [&](std::uint64_t, const Result<Outputs>&) {
      const std::lock_guard lock(mutex);
      at.push_back(Seconds(real_clock()->now() - begin).count() * 1e3);
    }));
  }
  check(session.close());
  const std::string how = placement == PlacementPolicy::kFormula ? "formula" : "least loaded";
  list.push_back(
      figure("slow core, " + how + ", queue " + std::to_string(queue) + ": fifth task done", at[4],
             "ms", 30));
  list.back()["last_ms"] = at[9];
}

std::uint64_t kilobytes(const char* key) {
  ::malloc_trim(0);
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string line; std::getline(in, line);)
    if (line.rfind(key, 0) == 0) return std::stoull(line.substr(line.find(':') + 1));
  fail("no /proc/self/smaps_rollup");
}

/// What resident memory grows by, after a first tenth that is not counted.
Json growth(const std::string& name, int count, const std::function<void()>& once) {
  for (int i = 0; i < count / 10; ++i) once();
  const auto before = kilobytes("Rss");
  const auto anonymous = kilobytes("Anonymous");
  for (int i = 0; i < count; ++i) once();
  const double grown = static_cast<double>(kilobytes("Rss")) - static_cast<double>(before);
  Json j = figure(name + ": resident memory grew by", grown, "KiB", 1024);
  j["anonymous_kib"] = static_cast<double>(kilobytes("Anonymous")) - static_cast<double>(anonymous);
  return j;
}

Json memory() {
  Json list = Json::array();
  Session session = open_session("virtual:rk3588", three_cores());
  const std::vector<float> x(kN, 1);
  list.push_back(growth("20,000 runs", 20'000, [&] { take(session.run(feed_of(x))); }));
  list.push_back(growth("20,000 asynchronous runs", 20'000, [&] {
    take(session.run_async(feed_of(x), [](std::uint64_t, const Result<Outputs>&) {}));
  }));
  session.wait_callbacks();
  const auto device = session.device();
  list.push_back(growth("200 sessions", 200, [&] {
    SessionOptions options = three_cores();
    options.load.on = device;
    options.load.cache = false;
    options.print_perf = false;
    Session one = take(Session::create(as_byte_span(relu_model(kN)), options));
    take(one.run(feed_of(x)));
    take(one.run_async(feed_of(x), [](std::uint64_t, const Result<Outputs>&) {}));
  }));
  return list;
}

Json run(int argc, char** argv) {
  const int rounds = std::stoi(argument(argc, argv, "--rounds", "7"));
  const auto runs = std::stoull(argument(argc, argv, "--runs", "1000"));
  Json report{{"benchmark", "session_pressure"}, {"environment", environment()}};
  report["memory"] = memory();
  auto& ideal = report["ideal"] = Json::array();
  ideal.push_back(batch(rounds, {0}));
  ideal.push_back(batch(rounds, {0, 1, 2}));
  ideal.push_back(eight_threads(rounds, 100));
  ideal.push_back(eight_threads(1, runs));
  auto& paced = report["pace"] = Json::array();
  pace(paced, {0}, 20);
  pace(paced, {0, 1, 2}, 20.0 / 3);
  pace(paced, {0, 0, 1}, 10);
  auto& queue = report["queue"] = Json::array();
  for (const char* device : {"null:rk3588", "null:rk3588?threads=1", "virtual:rk3588"})
    submissions(queue, device);
  slow_core(queue, PlacementPolicy::kFormula, 16);
  slow_core(queue, PlacementPolicy::kLeastLoaded, 3);
  return report;
}

}  // namespace
}  // namespace corelane::bench

int main(int argc, char** argv) {
  return corelane::bench::run_program("session_pressure_benchmark", argc, argv,
                                      corelane::bench::run);
}
