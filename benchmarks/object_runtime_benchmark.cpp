// The cost of the object runtime's classes over the runtime's own set: ReLU, which runs without the
// engine; a job of 2 ms; buffers of eight tensors; a scripted device of 1 ms jobs, against the
// ideal rate; a device's log in the context's; reports at the boundaries of the clock; and a
// million inferences, after which memory and descriptors must be what they were.
#include <fmt/ranges.h>

#include <QAicApi.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>

#include "corelane/base/clock.h"
#include "corelane/runtime/compile_chain.h"
#include "corelane/runtime/inference_set.h"
#include "corelane/runtime/program.h"
#include "harness.h"
#include "runtime/testing/onnx_builder.h"
#include "tiny_model.h"

namespace corelane::bench {
namespace {

constexpr std::uint64_t kN = 16;
// Numbers of CORELANE_QAIC_DEVICES.
constexpr const char* kDevices[] = {"virtual:aic100",
                                    "null:generic:4?a=1ms",
                                    "null:generic:4?a=2ms",
                                    "null:generic:4?a=100us&log=10&name=a",
                                    "null:generic:4?a=100us&log=10&name=b",
                                    "null:generic:4?a=100us&log=10&name=c",
                                    "null:generic:4?a=100us&log=1&name=d",
                                    "null:generic:4?a=100us&log=1&name=e",
                                    "null:generic:4?a=100us&log=1&name=f",
                                    "null:generic:4?a=100us&name=profiled",
                                    "null:generic:4?a=100us&name=not",
                                    "null:generic:4?a=100us&name=neither",
                                    "null:generic:1?a=1ms&name=left",
                                    "null:generic:1?a=1ms&name=right",
                                    "null:generic:1?a=2ms&name=whole",
                                    "null:generic:1?a=2ms&name=again"};
constexpr QID kVirtual = 0, kOneMs = 1, kTwoMs = 2, kProfiled = 9, kLeft = 12, kWhole = 14;
/// Three devices that write a line after so many jobs.
struct LoggedDevices {
  QID first;
  int every;
};
constexpr LoggedDevices kLogged[] = {{3, 10}, {6, 1}};

void done(QStatus status, const char* what) {
  if (status != QS_SUCCESS) fail(fmt::format("{} gave {}", what, static_cast<int>(status)));
}

/// y_i = Relu(x_i) for each of `count` pairs.
std::string pairs_model(std::uint64_t count, std::uint64_t n) {
  using namespace wire;
  std::string graph;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto k = std::to_string(i);
    graph += bytes(1, bytes(1, "x" + k) + bytes(2, "y" + k) + bytes(3, "n" + k) + bytes(4, "Relu"));
  }
  graph += bytes(2, "pairs");
  for (std::uint64_t i = 0; i < count; ++i) graph += bytes(11, value("x" + std::to_string(i), n));
  for (std::uint64_t i = 0; i < count; ++i) graph += bytes(12, value("y" + std::to_string(i), n));
  return number(1, 8) + bytes(7, graph) + bytes(8, number(2, 13));
}

qaic::rt::shQpc container_of(const std::string& onnx) {
  const ByteVector file = take(compile_bytes(as_byte_span(onnx)));
  return qaic::rt::Qpc::Factory(reinterpret_cast<const std::uint8_t*>(file.data()), file.size(),
                                true);
}

const qaic::rt::shContext& common_context() {
  static const auto context = qaic::rt::Context::Factory(nullptr, {kVirtual, kOneMs, kTwoMs});
  return context;
}

/// A set whose handles have their buffers set.
struct TheirSet {
  qaic::rt::shInferenceSet set;
  qaic::rt::shInferenceHandle kept;
  std::vector<std::vector<float>> memory;

  TheirSet(const std::string& onnx, QID device, std::uint32_t size, std::uint32_t activations = 1,
           const qaic::rt::shContext& context = common_context())
      : TheirSet(container_of(onnx), device, size, activations, context) {}
  TheirSet(const qaic::rt::shQpc& qpc, const qaic::rt::DeviceChoice& device, std::uint32_t size,
           std::uint32_t activations, const qaic::rt::shContext& context) {
    set = qaic::rt::InferenceSet::Factory(context, qpc, device, size, activations);
    std::vector<qaic::rt::shInferenceHandle> held(std::size_t{size} * activations);
    for (auto& handle : held) {
      done(set->getAvailable(handle), "getAvailable");
      std::vector<QBuffer> buffers;
      for (const auto& mapping : qpc->getBufferMappings()) {
        memory.emplace_back(mapping.size / sizeof(float), -1.0F);
        buffers.push_back({mapping.size, reinterpret_cast<std::uint8_t*>(memory.back().data())});
      }
      done(handle->setBuffers(buffers), "setBuffers");
    }
    for (auto& handle : held) done(set->putCompleted(handle), "putCompleted");
    kept = held.front();
  }

  void submit(std::uint32_t id) {
    qaic::rt::shInferenceHandle handle;
    done(set->getAvailable(handle), "getAvailable");
    done(set->submit(handle, id), "submit");
  }
  /// With a handle that is kept, as clients do.
  void submit_and_collect() {
    done(set->submit(kept, 7), "submit");
    qaic::rt::shInferenceHandle completed;
    done(set->getCompletedId(completed, 7), "getCompletedId");
    done(set->putCompleted(std::move(completed)), "putCompleted");
  }
  void collect_one() {
    qaic::rt::shInferenceHandle completed;
    done(set->getCompleted(completed), "getCompleted");
    done(set->putCompleted(completed), "putCompleted");
  }
  double keep_in_flight(Duration block, std::uint32_t depth) {
    for (std::uint32_t i = 0; i < depth; ++i) submit(i);
    const double calls = run_for(block, 4, [&] {
      collect_one();
      submit(0);
    });
    for (std::uint32_t i = 0; i < depth; ++i) collect_one();
    return calls + depth;
  }
};

/// The runtime's own set with the same calls.
struct OwnSet {
  InferenceSet set;
  SetHandle kept;
  std::vector<std::vector<float>> memory;

  OwnSet(const std::string& onnx, QID device, std::size_t size) {
    LoadOptions load;
    load.device = kDevices[device];
    load.cache = false;
    const auto program = take(Program::load(as_byte_span(onnx), load));
    SetOptions options;
    options.size = size;
    options.activate.emplace();
    options.attempt_time = std::chrono::seconds(5);
    options.retries = 5;
    set = take(InferenceSet::create(program, options));
    std::vector<SetHandle> held(size);
    for (SetHandle& handle : held) {
      handle = take(set.acquire());
      Context context = handle.context();
      const Shape shape = context.inputs().front().shape;
      const std::size_t n = static_cast<std::size_t>(shape[0]);
      memory.emplace_back(n, -1.0F);
      check(context.bind_input(
          0, {memory.back().data(), n * sizeof(float), DType::kF32, shape, {}, {}}));
      memory.emplace_back(n, -1.0F);
      check(context.bind_output(
          0, {memory.back().data(), n * sizeof(float), DType::kF32, shape, {}, {}}));
    }
    for (const SetHandle& handle : held) check(set.release(handle));
    kept = held.front();
  }

  void submit_and_collect() {
    check(set.submit(kept, 7));
    const SetHandle collected = take(set.collect_id(7));
    check(collected.status());
    check(set.release(collected));
  }
};

/// Seconds per call of: their set, the runtime's, a second one of the runtime's.
Times against_own(QID device, const Settings& settings, std::uint64_t stride) {
  const std::string onnx = unary_model("Relu", kN);
  TheirSet theirs(onnx, device, 8);
  OwnSet own(onnx, device, 8), again(onnx, device, 8);
  theirs.submit_and_collect();
  own.submit_and_collect();
  if (theirs.memory[1] != own.memory[1]) fail("answers differ");
  return measure(
      {{"classes",
        [&](Duration block) {
          return run_for(block, stride, [&] { theirs.submit_and_collect(); });
        }},
       {"set",
        [&](Duration block) { return run_for(block, stride, [&] { own.submit_and_collect(); }); }},
       {"set'",
        [&](Duration block) {
          return run_for(block, stride, [&] { again.submit_and_collect(); });
        }}},
      settings);
}

/// What the classes add to the runtime's set, in microseconds: medians of the rounds' differences.
void small_job(const Settings& settings, Json& report) {
  const Times times = against_own(kVirtual, settings, 16);
  report["differences"].push_back(
      report_difference("ReLU: submit + getCompletedId + putCompleted less the set", times, 1.0));
}

void long_job(Settings settings, Json& list) {
  settings.block = std::chrono::milliseconds(20);
  const Times times = against_own(kTwoMs, settings, 1);
  list.push_back(
      report_ratio(fmt::format("a job of {:.1f} ms: classes / set", median_of(times[1]) * 1e3),
                   ratio_of(times[0], times[1]), ratio_of(times[2], times[1]), 1.02, true));
}

/// Eight buffers, with other memory each time: setBuffers() alone, and with the hand-over that the
/// class makes at the next submit(), without the inference.
void eight_buffers(const Settings& settings, Json& report) {
  TheirSet set(pairs_model(4, kN), kVirtual, 1);
  const QAicApiFunctionTable& library = qaic::rt::library();
  const ByteVector file = take(compile_bytes(as_byte_span(pairs_model(4, kN))));
  const QID device = kVirtual;
  QAicContext* context = nullptr;
  QAicQpcObj* qpc = nullptr;
  QAicInferenceSet* plain = nullptr;
  std::uint32_t handle = 0;
  done(library.qaicCreateContext(&context, nullptr, 1, &device, nullptr, nullptr, nullptr, nullptr),
       "qaicCreateContext");
  done(library.qaicOpenQpc(&qpc, reinterpret_cast<const std::uint8_t*>(file.data()), file.size(),
                           true),
       "qaicOpenQpc");
  const QAicInferenceSetConfig config;
  done(library.qaicCreateInferenceSet(context, &plain, &config, qpc), "qaicCreateInferenceSet");
  done(library.qaicInferenceSetGetAvailable(plain, QAIC_WAIT_FOREVER, &handle), "GetAvailable");
  std::vector<std::vector<QBuffer>> buffers(2, set.kept->getBuffers());
  std::vector<std::vector<float>> other = set.memory;
  for (std::size_t i = 0; i < other.size(); ++i)
    buffers[1][i].buf = reinterpret_cast<std::uint8_t*>(other[i].data());
  std::size_t turn = 0;
  const auto alone = [&] { done(set.kept->setBuffers(buffers[++turn % 2]), "setBuffers"); };
  const auto both = [&] {
    alone();
    const std::vector<QBuffer>& next = buffers[turn % 2];
    done(library.qaicInferenceSetSetData(plain, handle, 8, next.data(), nullptr), "SetData");
  };
  const Times times = measure({{"alone", [&](Duration block) { return run_for(block, 64, alone); }},
                               {"both", [&](Duration block) { return run_for(block, 64, both); }}},
                              settings);
  const auto say = [&](const char* name, std::size_t i, bool asked) {
    const double us = median_of(times[i]) * 1e6;
    const char* word = !asked ? "not asked" : us <= 2 ? "met" : "missed";
    fmt::print(stderr, "{:<60} {:.2f} us  <= 2: {}\n", name, us, word);
    report["differences"].push_back({{"name", fmt::format("{}, us", name)},
                                     {"difference_us", us},
                                     {"target_us", 2},
                                     {"verdict", word}});
  };
  say("setBuffers of 8 tensors", 0, true);
  say("setBuffers of 8 tensors, with its part of submit", 1, false);
  done(library.qaicReleaseInferenceSet(plain), "qaicReleaseInferenceSet");
  done(library.qaicCloseQpc(qpc), "qaicCloseQpc");
  done(library.qaicReleaseContext(context), "qaicReleaseContext");
}

/// A container of y = Relu(x) of [1, n] for so many n, and a set of one handle.
struct ManyShapes {
  std::vector<std::vector<std::uint32_t>> dims;
  std::vector<std::vector<float>> memory;
  qaic::rt::shInferenceSet set;
  qaic::rt::shInferenceHandle handle;
  std::vector<qaic::rt::shInferenceHandle> handles;
  std::size_t turn = 0;

  /// `handle` is one of so many.
  explicit ManyShapes(std::uint32_t shapes, std::uint32_t size = 1) : handles(size) {
    CompileOptions options;
    for (std::uint32_t k = 0; k < shapes; ++k) {
      dims.push_back({1, static_cast<std::uint32_t>(kN) + k});
      options.import.shape_sets.push_back({Shape{1, static_cast<std::int64_t>(kN) + k}});
      for (int i = 0; i < 2; ++i) memory.emplace_back(dims.back()[1], -1.0F);
    }
    const std::string onnx = testing::relu_model({std::int64_t{1}, std::string("n")});
    const ByteVector file = take(compile_bytes(as_byte_span(onnx), options));
    const auto qpc = qaic::rt::Qpc::Factory(reinterpret_cast<const std::uint8_t*>(file.data()),
                                            file.size(), true);
    set = qaic::rt::InferenceSet::Factory(common_context(), qpc, kVirtual, size, 1);
    for (auto& each : handles) done(set->getAvailable(each), "getAvailable");
    handle = handles.front();
  }
  /// An inference in the next of the first `count` shapes.
  void step(std::size_t count) {
    const std::size_t k = turn++ % count;
    const auto buffer = [&](std::vector<float>& of) {
      return QBuffer{of.size() * sizeof(float), reinterpret_cast<std::uint8_t*>(of.data())};
    };
    done(handle->setBuffers(std::vector<QBuffer>{buffer(memory[2 * k]), buffer(memory[2 * k + 1])}),
         "setBuffers");
    done(handle->setBufferDimensions({{4, dims[k]}, {4, dims[k]}}), "setBufferDimensions");
    done(set->submit(handle, 7), "submit");
    qaic::rt::shInferenceHandle completed;
    done(set->getCompletedId(completed, 7), "getCompletedId");
  }
  /// The same, where each of the shapes has a handle of its own.
  void step_handles() {
    handle = handles[turn % handles.size()];
    step(handles.size());
  }
};

/// What the choice of another specialization at each inference adds: 32 in turn against one.
void many_shapes(const Settings& settings, Json& report) {
  ManyShapes turns(32), one(32), again(32);
  ManyShapes handles(32, 32);
  for (int i = 0; i < 96; ++i) turns.step(32);
  for (int i = 0; i < 96; ++i) handles.step_handles();
  const auto alternating = [&](ManyShapes& of, std::size_t count) {
    return [&of, count](Duration block) { return run_for(block, 16, [&] { of.step(count); }); };
  };
  const Times times = measure(
      {{"32 in turn", alternating(turns, 32)},
       {"one", alternating(one, 1)},
       {"one'", alternating(again, 1)},
       {"32 handles",
        [&](Duration block) { return run_for(block, 16, [&] { handles.step_handles(); }); }}},
      settings);
  report["differences"].push_back(
      report_difference("alternating among 32 specializations less one", times, 2.0));
  // What 32 executables cost in the caches, when nothing changes its shapes.
  report["differences"].push_back(report_difference("32 handles of a specialization each less one",
                                                    {times[3], times[1], times[2]}, 2.0));
}

void against_ideal(const Settings& settings, Json& report) {
  constexpr auto kBlock = std::chrono::milliseconds(40);
  for (std::uint32_t size = 1; size <= 10; ++size) {
    TheirSet set(unary_model("Relu", kN), kOneMs, size, 4);
    report["scaling"].push_back(report_share(size, share_of_ideal(settings, 4000, [&] {
                                               return set.keep_in_flight(kBlock, 4 * size);
                                             })));
  }
}

/// A context that gets all lines of its device, or those of the host alone, and its jobs of 100 us.
struct Logged {
  std::atomic<std::uint64_t> lines{0};
  double jobs = 0;
  std::unique_ptr<TheirSet> set;

  Logged(QID device, bool captured) {
    const QAicContextProperties_t properties =
        captured ? QAIC_CONTEXT_COLLECT_DEVICE_LOGS : QAIC_CONTEXT_DEFAULT;
    const auto context = qaic::rt::Context::Factory(&properties, {device},
                                                    [this](QLogLevel, const char*) { ++lines; });
    context->setLogLevel(QL_DEBUG);
    set = std::make_unique<TheirSet>(unary_model("Relu", kN), device, 2, 4, context);
  }
  double run(Duration block) {
    const double calls = set->keep_in_flight(block, 8);
    jobs += calls;
    return calls;
  }
};

/// Throughput of a device whose lines come to its context's log callback with the host's, against
/// one whose context does not ask for them. A line waits two seconds for earlier ones: each block
/// begins so much later than its load, and has the work of its own lines alone.
void against_uncaptured(Settings settings, const LoggedDevices& devices, Json& list) {
  constexpr auto kLead = std::chrono::milliseconds(2100);
  settings.block = std::chrono::milliseconds(500);
  settings.rounds = settings.rounds / 8 + 3;
  std::vector<std::unique_ptr<Logged>> logged;
  std::vector<Contender> contenders;
  std::vector<double> seconds[3];
  for (const char* name : {"captured", "not", "not'"}) {
    const std::size_t k = contenders.size();
    logged.push_back(std::make_unique<Logged>(devices.first + static_cast<QID>(k), k == 0));
    Logged& one = *logged.back();
    contenders.push_back(
        metered(seconds[k], {name, [&one](Duration block) { return one.run(block); },
                             [&one, kLead] { one.run(kLead); }}));
  }
  const Times times = measure(contenders, settings);
  for (auto& one : logged) one->set.reset();  // And its context, which delivers what still waits.
  if (static_cast<double>(logged[0]->lines) < std::floor(logged[0]->jobs / devices.every))
    fail(fmt::format("{} lines came of {} jobs, one line each {}", logged[0]->lines.load(),
                     logged[0]->jobs, devices.every));
  list.push_back(report_ratio(
      fmt::format("100 us jobs, a log line each {}: throughput captured / not", devices.every),
      ratio_of(times[1], times[0]), ratio_of(times[1], times[2]), 0.97, false));
  list.back()["processor"] = report_processor(seconds);
}

/// Throughput of a set that a latency handle profiles, with a report each second, against one that
/// nobody does.
void against_unprofiled(Settings settings, Json& list) {
  settings.block = std::chrono::milliseconds(200);
  std::vector<std::unique_ptr<TheirSet>> sets;
  std::vector<Contender> contenders;
  std::vector<double> seconds[3];
  std::atomic<std::uint64_t> reports{0};
  for (const char* name : {"profiled", "not", "not'"}) {
    const QID device = kProfiled + static_cast<QID>(sets.size());
    const auto context = qaic::rt::Context::Factory(nullptr, {device});
    sets.push_back(std::make_unique<TheirSet>(unary_model("Relu", kN), device, 2, 4, context));
    contenders.push_back(
        metered(seconds[sets.size() - 1], {name, [set = sets.back().get()](Duration block) {
                                             return set->keep_in_flight(block, 8);
                                           }}));
  }
  const auto handle = qaic::rt::StreamProfilingHandle::Factory(
      QAIC_PROFILING_SAMPLING_RATE_FULL, QAIC_PROFILING_REPORTING_RATE_1000_MS,
      [&](const std::string&) { ++reports; });
  done(handle->addProgram(sets[0]->set->getProgram()), "addProgram");
  done(handle->start(), "start");
  const Times times = measure(contenders, settings);
  done(handle->stop(), "stop");
  done(handle->flushReports(), "flushReports");
  if (reports == 0) fail("no report came");
  list.push_back(report_ratio("100 us jobs, a latency handle: throughput profiled / not",
                              ratio_of(times[1], times[0]), ratio_of(times[1], times[2]), 0.98,
                              false));
  list.back()["processor"] = report_processor(seconds);
}

/// How long after the boundaries of the clock the reports of a stream come, while a set works: of
/// ten periods.
void report_boundaries(Json& report) {
  constexpr auto kPeriod = std::chrono::milliseconds(500);
  constexpr std::size_t kReports = 10;
  TheirSet set(unary_model("Relu", kN), kProfiled, 2, 4,
               qaic::rt::Context::Factory(nullptr, {kProfiled}));
  std::mutex mutex;
  std::vector<double> late_ms;
  std::size_t most_lines = 0;
  const auto handle = qaic::rt::StreamProfilingHandle::Factory(
      QAIC_PROFILING_SAMPLING_RATE_FULL, QAIC_PROFILING_REPORTING_RATE_500_MS,
      [&](const std::string& text) {
        const Duration now = real_clock()->now().time_since_epoch();
        const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
        const std::lock_guard lock(mutex);
        most_lines = std::max(most_lines, lines);
        late_ms.push_back(std::chrono::duration<double, std::milli>(now % kPeriod).count());
      });
  done(handle->addProgram(set.set->getProgram()), "addProgram");
  done(handle->start(), "start");
  static_cast<void>(set.keep_in_flight(kPeriod * kReports, 8));
  done(handle->flushReports(), "flushReports");
  std::vector<double> seen;
  {
    const std::lock_guard lock(mutex);
    seen = late_ms;
  }
  done(handle->stop(), "stop");
  if (seen.empty()) fail("no report came");
  std::sort(seen.begin(), seen.end());
  const double median = seen[seen.size() / 2];
  const char* word = seen.back() <= 20 ? "met" : "missed";
  fmt::print(
      stderr,
      "{} reports of up to {} lines after their boundaries: median {:.2f} ms, longest {:.2f} "
      "ms  {}\n",
      seen.size(), most_lines, median, seen.back(), word);
  report["boundaries"] = {{"reports", seen.size()},
                          {"most_lines", most_lines},
                          {"median_ms", median},
                          {"longest_ms", seen.back()},
                          {"verdict", word}};
}

/// x -> Relu -> "half" -> Relu -> y.
std::string halves_model() {
  using namespace wire;
  std::string graph;
  graph += bytes(1, bytes(1, "x") + bytes(2, "half") + bytes(3, "first") + bytes(4, "Relu"));
  graph += bytes(1, bytes(1, "half") + bytes(2, "y") + bytes(3, "second") + bytes(4, "Relu"));
  graph += bytes(2, "halves") + bytes(11, value("x", kN)) + bytes(12, value("y", kN));
  return number(1, 8) + bytes(7, graph) + bytes(8, number(2, 13));
}

/// Throughput of a network in two equal parts of 1 ms, on a device each, against the whole one,
/// 2 ms on one device.
void against_one_device(Settings settings, Json& list) {
  settings.block = std::chrono::milliseconds(200);
  const std::string onnx = halves_model();
  const auto context = qaic::rt::Context::Factory(
      nullptr, {kLeft, static_cast<QID>(kLeft + 1), kWhole, static_cast<QID>(kWhole + 1)});
  const std::vector<CutNames> cuts{{"half"}};
  const ByteVector file = take(compile_chain(as_byte_span(onnx), cuts));
  const auto chain =
      qaic::rt::Qpc::Factory(reinterpret_cast<const std::uint8_t*>(file.data()), file.size(), true);
  std::vector<std::unique_ptr<TheirSet>> sets;
  sets.push_back(std::make_unique<TheirSet>(
      chain, std::string(fmt::format("{}:{}", kLeft, kLeft + 1)), 8, 1, context));
  for (const QID device : {kWhole, static_cast<QID>(kWhole + 1)})
    sets.push_back(std::make_unique<TheirSet>(onnx, device, 8, 1, context));
  std::vector<Contender> contenders;
  std::vector<double> seconds[3];
  for (const char* name : {"two devices", "one", "one'"}) {
    TheirSet* const set = sets[contenders.size()].get();
    contenders.push_back(
        metered(seconds[contenders.size()],
                {name, [set](Duration block) { return set->keep_in_flight(block, 8); }}));
  }
  const Times times = measure(contenders, settings);
  list.push_back(report_ratio("two parts of 1 ms on two devices / 2 ms on one: throughput",
                              ratio_of(times[1], times[0]), ratio_of(times[1], times[2]), 1.8,
                              false));
  list.back()["processor"] = report_processor(seconds);
}

std::size_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmRSS:") {
      std::size_t kib = 0;
      status >> kib;
      return kib;
    }
  return 0;
}

std::size_t descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

void a_million(Json& report) {
  TheirSet set(unary_model("Relu", kN), kVirtual, 8);
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) set.submit_and_collect();
  };
  run(50'000);
  const std::size_t memory = resident_kib(), open = descriptors();
  run(1'000'000);
  const auto grown = static_cast<long>(resident_kib()) - static_cast<long>(memory);
  const auto opened = static_cast<long>(descriptors()) - static_cast<long>(open);
  // The allocator keeps some pages; a byte for each inference would be a megabyte.
  const char* word = grown < 512 && opened == 0 ? "met" : "missed";
  fmt::print(stderr, "1,000,000 inferences: {:+} KiB, {:+} descriptors  {}\n", grown, opened, word);
  report["growth"] = {{"kib", grown}, {"descriptors", opened}, {"verdict", word}};
}

Json run(int argc, char** argv) {
  Settings settings;
  settings.rounds = std::stoi(argument(argc, argv, "--rounds", "41"));
  Json report{{"benchmark", "object_runtime"}, {"environment", environment()}};
  report["ratios"] = Json::array();
  small_job(settings, report);
  long_job(settings, report["ratios"]);
  eight_buffers(settings, report);
  many_shapes(settings, report);
  against_ideal(settings, report);
  for (const LoggedDevices& devices : kLogged)
    against_uncaptured(settings, devices, report["ratios"]);
  against_unprofiled(settings, report["ratios"]);
  report_boundaries(report);
  against_one_device(settings, report["ratios"]);
  a_million(report);
  return report;
}

}  // namespace
}  // namespace corelane::bench

int main(int argc, char** argv) {
  setenv("CORELANE_QAIC_DEVICES",
         fmt::format("{}", fmt::join(corelane::bench::kDevices, ";")).c_str(), 1);
  return corelane::bench::run_program("object_runtime_benchmark", argc, argv, corelane::bench::run);
}
