// The cost of inference sets. Erf calls the engine: submit + collect, and four in flight, against
// OpenVINO in its faster setting of 1 and 2 streams. ReLU runs without the engine: against the
// context below. A scripted device of 1 ms jobs: how near a set comes to the ideal rate. Two
// programs on one core: what a turn costs. Jobs of 100 us: what records and a merged log cost.
#include <atomic>
#include <functional>
#include <memory>

#include "corelane/device/device.h"
#include "corelane/device/observer.h"
#include "corelane/device/registry.h"
#include "corelane/runtime/activation.h"
#include "corelane/runtime/inference_set.h"
#include "corelane/runtime/merged_log.h"
#include "openvino_rival.h"
#include "tiny_model.h"

namespace corelane::bench {
namespace {

/// A set whose handles have their memory bound.
struct OurSet {
  InferenceSet set;
  std::vector<Tensors> memory;

  OurSet(const Program& program, std::size_t size) : memory(size) {
    SetOptions options;
    options.size = size;
    set = take(InferenceSet::create(program, options));
    const Shape shape{static_cast<std::int64_t>(kN)};
    std::vector<SetHandle> held;
    for (Tensors& t : memory) {
      held.push_back(take(set.acquire()));
      Context context = held.back().context();
      check(context.bind_input(0, {t.in, sizeof(t.in), DType::kF32, shape, {}, {}}));
      check(context.bind_output(0, {t.out, sizeof(t.out), DType::kF32, shape, {}, {}}));
    }
    for (const SetHandle& handle : held) check(set.release(handle));
  }

  void submit_and_collect() {
    check(set.submit(take(set.acquire())));
    collect_one();
  }
  void collect_one() {
    const SetHandle done = take(set.collect());
    check(done.status());
    check(set.release(done));
  }
  /// Keeps `depth` in flight for the block: each callback submits its handle again.
  double call_back(Duration block, std::size_t depth) {
    std::atomic<std::uint64_t> calls{0};
    const TimePoint end = real_clock()->now() + block;
    SetCallback again = [&](const SetHandle& done) {
      check(done.status());
      ++calls;
      check(real_clock()->now() < end ? set.submit(done, 0, again) : set.release(done));
    };
    for (std::size_t i = 0; i < depth; ++i) check(set.submit(take(set.acquire()), 0, again));
    while (set.figures().held + set.figures().in_flight != 0) set.drain();
    return static_cast<double>(calls);
  }
  /// The same, by a thread that collects and submits.
  double keep_in_flight(Duration block, std::size_t depth) {
    for (std::size_t i = 0; i < depth; ++i) check(set.submit(take(set.acquire())));
    const double calls = run_for(block, 4, [&] {
      collect_one();
      check(set.submit(take(set.acquire())));
    });
    for (std::size_t i = 0; i < depth; ++i) collect_one();
    return calls + static_cast<double>(depth);
  }
};

void against_openvino(const Settings& settings, Json& list) {
  ov::Core core;
  const auto text = unary_model("Erf", kN);
  auto one = compile(core, text, 1);
  auto two = compile(core, text, 2);
  LoadOptions load;
  load.engine = "openvino";  // Sets are compared, not engines: the other one's last bits differ.
  const auto program = take(Program::load(as_byte_span(text), load));
  OurSet set(program, 8);
  auto a = std::make_shared<Rival>(one), b = std::make_shared<Rival>(one);
  auto c = std::make_shared<Rival>(two), d = std::make_shared<Rival>(two);
  set.submit_and_collect();
  a->request.infer();
  if (!std::equal(std::begin(a->t.out), std::end(a->t.out), set.memory[0].out))
    fail("answers differ");
  const Contender ours{"ours", [&](Duration block) {
                         return run_for(block, 16, [&] { set.submit_and_collect(); });
                       }};
  list.push_back(against_faster("Erf, set of 8: submit + collect / start_async + wait",
                                measure({ours, asynchronous("ov1", a), asynchronous("ov1'", b),
                                         asynchronous("ov2", c), asynchronous("ov2'", d)},
                                        settings),
                                0.7, true));
  OurSet called(program, 4);
  list.push_back(against_pools(
      "Erf, four in flight, callbacks: throughput, set / OpenVINO's",
      [&](Duration block) { return called.call_back(block, 4); }, one, two, settings));
  list.push_back(against_pools(
      "Erf, four in flight, one collector / OpenVINO's callbacks",
      [&](Duration block) { return set.keep_in_flight(block, 4); }, one, two, settings));
}

/// What the set adds to the context below it, in microseconds: medians of the rounds' differences.
void against_context(const Settings& settings, Json& report) {
  const auto program = take(Program::load(as_byte_span(unary_model("Relu", kN))));
  OurSet set(program, 8);
  Ours plain(program), again(program);
  const auto context = [](Ours& ours) {
    return [&ours](Duration block) {
      return run_for(block, 16, [&] {
        auto inference = take(ours.context.submit());
        check(inference.wait());
      });
    };
  };
  const Times times = measure(
      {{"set",
        [&](Duration block) { return run_for(block, 16, [&] { set.submit_and_collect(); }); }},
       {"context", context(plain)},
       {"context'", context(again)}},
      settings);
  report["differences"].push_back(
      report_difference("ReLU: submit + collect less Context::submit + wait", times, 1.5));
}

/// Jobs of 1 ms on four cores of the scripted device, against 4 a millisecond; and against handles
/// that are submitted again in their callbacks, which shows what the device's timers leave of it.
void against_ideal(const Settings& settings, Json& report) {
  device::OpenOptions open;
  open.own_instance = true;
  LoadOptions load;
  load.on = take(device::open_device("null:generic:4?a=1ms", open));
  load.cache = false;
  const auto program = take(Program::load(as_byte_span(unary_model("Relu", kN)), load));
  constexpr auto kBlock = std::chrono::milliseconds(40);
  OurSet called(program, 8);
  const double control =
      share_of_ideal(settings, 4000, [&] { return called.call_back(kBlock, 8); });
  for (std::size_t size = 1; size <= 10; ++size) {
    OurSet set(program, 4 * size);
    report["scaling"].push_back(report_share(
        size, share_of_ideal(settings, 4000, [&] { return set.keep_in_flight(kBlock, 4 * size); }),
        control));
  }
}

/// Two programs that have one core in turn, each with four inferences in flight: what a turn costs,
/// and what is left of the rate of the same two beside each other, where each job waits for a core.
void turns(const Settings& settings, Json& report) {
  device::OpenOptions open;
  open.own_instance = true;
  LoadOptions load;
  load.on = take(device::open_device("virtual:generic:1", open));
  load.cache = false;
  const std::vector<Program> programs{
      take(Program::load(as_byte_span(unary_model("Erf", kN)), load)),
      take(Program::load(as_byte_span(unary_model("Relu", kN)), load))};
  const auto rate_of = [&](const TurnGroup& group, std::vector<TurnFigures>& figures) {
    std::vector<Activation> activations;
    std::vector<std::vector<Context>> contexts;
    for (const Program& program : programs) {
      ActivateOptions how;
      how.residency = device::Residency::kShared;
      how.turns = group;
      activations.push_back(take(Activation::create(program, how)));
      contexts.emplace_back();
      for (int i = 0; i < 4; ++i) contexts.back().push_back(take(activations.back().new_context()));
    }
    std::vector<double> rates;
    for (int round = 0; round < settings.rounds; ++round)
      rates.push_back(run_for(settings.block, 4, [&] {
        std::vector<Inference> inferences;
        for (auto& of_one : contexts)
          for (Context& context : of_one) inferences.push_back(take(context.submit()));
        for (Inference& one : inferences) check(one.wait());
      }));
    for (const Activation& each : activations) figures.push_back(each.figures().turn);
    return median_of(rates);
  };
  std::vector<TurnFigures> figures, none;
  const double beside = rate_of({}, none);
  const double in_turn = rate_of(take(TurnGroup::create(load.on)), figures);
  std::uint64_t switches = 0;
  Duration total{}, longest{};
  for (const TurnFigures& one : figures) {
    switches += one.switches;
    total += one.cost_total;
    longest = std::max(longest, one.cost_longest);
  }
  const auto us = [](Duration time) {
    return std::chrono::duration<double, std::micro>(time).count();
  };
  const double mean = switches == 0 ? 0 : us(total) / static_cast<double>(switches);
  fmt::print(
      stderr,
      "a turn of two programs on one core: {:.2f} us (longest {:.0f}, {} turns); rate {:.3f} "
      "of that beside each other\n",
      mean, us(longest), switches, in_turn / beside);
  report["turns"] = {{"cost_us", mean},
                     {"longest_us", us(longest)},
                     {"switches", switches},
                     {"rate_of_beside", in_turn / beside}};
}

/// Keeps four in flight, on handles with memory of their own.
double four_in_flight(InferenceSet& set, Duration block) {
  const auto collect = [&] {
    const SetHandle done = take(set.collect());
    check(done.status());
    check(set.release(done));
  };
  for (int i = 0; i < 4; ++i) check(set.submit(take(set.acquire())));
  const double calls = run_for(block, 1, [&] {
    collect();
    check(set.submit(take(set.acquire())));
  });
  for (int i = 0; i < 4; ++i) collect();
  return calls + 4;
}

/// An Erf that takes some 100 us of a processor.
Program job_of_100us() {
  const auto load = [](std::uint64_t elements) {
    LoadOptions options;
    options.cache = false;
    return take(Program::load(as_byte_span(unary_model("Erf", elements)), options));
  };
  const auto seconds_of = [](const Program& program) {
    Context context = take(program.new_context());
    std::vector<double> times;
    for (int i = 0; i < 51; ++i) {
      const TimePoint begin = real_clock()->now();
      check(context.run());
      times.push_back(std::chrono::duration<double>(real_clock()->now() - begin).count());
    }
    return median_of(times);
  };
  constexpr std::uint64_t kFirst = 65536;
  const double share = 100e-6 / seconds_of(load(kFirst));
  return load(static_cast<std::uint64_t>(static_cast<double>(kFirst) * share));
}

/// What it costs to observe the records of a set that keeps all processors busy.
void against_unobserved(Settings settings, Json& list) {
  settings.block = std::chrono::milliseconds(20);
  const Program program = job_of_100us();
  InferenceSet sets[3];
  for (InferenceSet& set : sets) set = take(InferenceSet::create(program, {.size = 4}));
  std::uint64_t records = 0;
  SetObserverOptions observer;
  observer.on_record = [&](const SetRecord&) { ++records; };
  const auto observation = take(sets[0].observe(std::move(observer)));
  std::vector<Contender> contenders;
  std::vector<double> seconds[3];
  for (const char* name : {"observed", "not", "not'"}) {
    const std::size_t i = contenders.size();
    contenders.push_back(metered(seconds[i], {name, [&set = sets[i]](Duration block) {
                                                return four_in_flight(set, block);
                                              }}));
  }
  const Times times = measure(contenders, settings);
  if (!observation->flush() || observation->dropped() != 0 || records == 0)
    fail("records are lost");
  list.push_back(report_ratio(
      fmt::format("{:.0f} us jobs, four in flight: observed / not", median_of(times[1]) * 1e6),
      ratio_of(times[0], times[1]), ratio_of(times[2], times[1]), 1.02, true));
  list.back()["processor"] = report_processor(seconds);
}

/// Throughput of a device whose log is merged with the host's, against one whose log nobody reads.
void against_uncaptured(Settings settings, Json& list) {
  settings.block = std::chrono::milliseconds(20);
  for (const int every : {10, 1}) {
    std::vector<std::unique_ptr<OurSet>> sets;
    std::shared_ptr<device::Device> captured;
    for (int i = 0; i < 3; ++i) {
      device::OpenOptions open;
      open.own_instance = true;
      LoadOptions load;
      load.cache = false;
      load.on =
          take(device::open_device(fmt::format("null:generic:4?a=100us&log={}", every), open));
      if (i == 0) captured = load.on;
      const auto program = take(Program::load(as_byte_span(unary_model("Relu", kN)), load));
      sets.push_back(std::make_unique<OurSet>(program, 8));
    }
    std::uint64_t lines = 0;
    MergedLogOptions options;
    options.window = std::chrono::milliseconds(100);
    options.devices = {captured};
    options.on_line = [&](const MergedLine&) { ++lines; };
    const MergedLog merged = take(MergedLog::create(std::move(options)));
    std::vector<Contender> contenders;
    std::vector<double> seconds[3];
    for (const char* name : {"captured", "not", "not'"}) {
      const std::size_t k = contenders.size();
      contenders.push_back(metered(seconds[k], {name, [set = sets[k].get()](Duration block) {
                                                  return set->call_back(block, 8);
                                                }}));
    }
    const Times times = measure(contenders, settings);
    if (!merged.flush() || merged.dropped() != 0 || lines == 0) fail("lines are lost");
    list.push_back(report_ratio(
        fmt::format("100 us jobs, a log line each {}: throughput captured / not", every),
        ratio_of(times[1], times[0]), ratio_of(times[1], times[2]), 0.97, false));
    list.back()["processor"] = report_processor(seconds);
  }
}

Json run(int argc, char** argv) {
  Settings settings;
  settings.rounds = std::stoi(argument(argc, argv, "--rounds", "41"));
  Json report{{"benchmark", "sets"}, {"environment", environment()}};
  report["ratios"] = Json::array();
  against_openvino(settings, report["ratios"]);
  against_context(settings, report);
  against_ideal(settings, report);
  turns(settings, report);
  against_unobserved(settings, report["ratios"]);
  against_uncaptured(settings, report["ratios"]);
  return report;
}

}  // namespace
}  // namespace corelane::bench

int main(int argc, char** argv) {
  return corelane::bench::run_program("sets_benchmark", argc, argv, corelane::bench::run);
}
