#include "runtime/program/engine_timing.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/guard.h"
#include "base/later.h"
#include "corelane/device/device.h"

namespace corelane::runtime {
namespace {

using std::chrono::milliseconds;

/// The first pairs are not timed, since they fill caches and arenas: at least so many, and for at
/// least kWarmUpTime.
constexpr std::size_t kWarmUps = 2;
/// Upper bounds, for devices whose jobs take no time.
constexpr std::size_t kMostWarmUps = 1000;
constexpr std::size_t kMostPairs = 20'000;
constexpr Duration kWarmUpTime = milliseconds(5);
/// One of them is enough for runs that take so long.
constexpr Duration kLongWarmUp = milliseconds(1000);
/// A turn of short runs ends after so long, or after kMostInTurn of them.
constexpr Duration kTurn = milliseconds(1);
constexpr std::size_t kMostInTurn = 16;
/// Jobs on several cores wait so long for them in all, and kWaitPerRun times as long as they have
/// run: meanwhile they keep idle ones from others.
constexpr Duration kMostForCores = milliseconds(100);
constexpr Duration::rep kWaitPerRun = 3;
/// A block of runs in a row: kRunsInBlock that take kLeastBlock, or kLeastRuns that take kBlock. As
/// many go before it that are not timed: contexts follow a change of the engine with their next
/// run.
constexpr std::size_t kRunsInBlock = 8;
constexpr std::size_t kLeastRuns = 3;
constexpr Duration kLeastBlock = milliseconds(5);
constexpr Duration kBlock = milliseconds(25);
/// Blocks of each engine; fewer where two say that it is clear, or three that it is not close.
constexpr std::size_t kBlocks = 5;
constexpr double kClose = 0.03;
/// Of longer runs, what is left in the caches matters little, and blocks would take seconds.
constexpr Duration kLongRun = milliseconds(25);
/// No run of a block begins later: the program may be on the slower engine.
constexpr Duration kMostForBlocks = std::chrono::seconds(3);
/// Turns decide alone where their ratio is less than this part of what the other engine has to
/// reach, or that is less than this part of the ratio.
constexpr double kFar = 0.5;
/// For runs shorter than this the cost of a hand-over between threads may decide the trial.
constexpr Duration kShort = std::chrono::microseconds(200);

bool takes_one(const device::CoreSet& cores) noexcept { return cores.count() == 1; }

/// The mean of the middle two where their number is even.
template <typename T>
T median(std::vector<T> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

auto stopped_error() { return error(Code::kCancelled, "the program ended"); }

auto busy_error() { return error(Code::kBusy, "the cores of a job are in use"); }

/// How a trial runs: on which cores, and how many at once.
struct Way {
  std::int32_t priority = 0;
  device::CoreSet cores;
  std::size_t at_once = 1;
};

/// An executable to be run again and again, on several cores at the same time where that is asked
/// for. Its inputs lie in other memory at each run, as those of most users do: engines differ in
/// what that costs them.
class Contender {
 public:
  using Inputs = std::array<std::vector<TimedRun::Input>*, 2>;

  static Result<Contender> make(const std::shared_ptr<device::Executable>& executable,
                                const Inputs& inputs, const Way& way, const Clock& clock) {
    if (executable == nullptr) return error(Code::kWrongState, "nothing is prepared");
    Contender made(inputs, way, clock);
    for (std::size_t i = 0; i < way.at_once; ++i) {
      device::Submission& job = made.jobs_.emplace_back();
      job.executable = executable;
      CORELANE_ASSIGN(job.bindings, executable->new_bindings());
      job.cores = way.cores;
      job.priority = way.priority;
      job.direct_user_memory = true;
    }
    return made;
  }
  /// The time of one run. Short runs are made several times in a row, after one that is not timed:
  /// a program that runs again and again has its weights in the CPU's caches, from which a run of
  /// the other engine has driven them.
  Result<Duration> turn(device::Queue& queue) {
    CORELANE_ASSIGN(const Duration first, run(queue));
    spent_ += first;
    if (first >= kTurn) return first;
    Duration total{0};
    std::size_t runs = 0;
    for (; runs < kMostInTurn && total < kTurn; ++runs) {
      CORELANE_ASSIGN(const Duration next, run(queue));
      total += next;
    }
    spent_ += total;
    return total / static_cast<Duration::rep>(runs);
  }
  /// From here on kBusy where a run would begin after `until`, and kCancelled once `stopped`, which
  /// is to outlive this object.
  void limit(TimePoint until, const std::function<bool()>& stopped) {
    until_ = until;
    stopped_ = &stopped;
  }
  /// The median of the runs of a block, after limit().
  Result<Duration> block(device::Queue& queue) {
    CORELANE_ASSIGN(std::vector<Duration> runs, runs_in_a_row(queue));
    CORELANE_ASSIGN(runs, runs_in_a_row(queue));  // The first ones do not count.
    return median(std::move(runs));
  }
  /// In all turns and blocks.
  Duration spent() const noexcept { return spent_; }

 private:
  Contender(const Inputs& inputs, const Way& way, const Clock& clock)
      : inputs_(inputs), clock_(&clock), way_(way) {}

  Result<std::vector<Duration>> runs_in_a_row(device::Queue& queue) {
    std::vector<Duration> runs;
    const auto are_enough = [&](Duration took) {
      return (runs.size() >= kLeastRuns && took >= kBlock) ||
             (runs.size() >= kRunsInBlock && took >= kLeastBlock) || runs.size() >= kMostWarmUps;
    };
    for (Duration took{0}; !are_enough(took); took += runs.back()) {
      if ((*stopped_)()) return stopped_error();
      if (clock_->now() >= until_) return busy_error();
      CORELANE_ASSIGN(const Duration time, run(queue));
      spent_ += time;
      runs.push_back(time);
    }
    return runs;
  }

  /// The time on the engine, with what it takes to bind the inputs; the mean of runs at once.
  Result<Duration> run(device::Queue& queue) {
    next_ = 1 - next_;
    const TimePoint begin = clock_->now();
    CORELANE_TRY(bind(*inputs_[next_]));
    Duration total = clock_->now() - begin;
    if (way_.at_once > 1 || !takes_one(way_.cores)) {
      CORELANE_TRY(run_submitted(queue, total));
    } else {
      device::JobRecord record;
      CORELANE_TRY(queue.run(jobs_[0], &record));
      total += record.ended - record.started;
    }
    return total / static_cast<Duration::rep>(way_.at_once);
  }

  Status bind(std::vector<TimedRun::Input>& inputs) {
    for (const device::Submission& job : jobs_) {
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const device::TensorRef tensor{inputs[i].bytes.data(), inputs[i].bytes.size(),
                                       inputs[i].shape, nullptr};
        CORELANE_TRY(job.bindings->set_input(i, tensor));
      }
    }
    return {};
  }

  using Completions = std::vector<std::shared_ptr<device::Completion>>;

  /// Adds what the jobs took on their cores to `total`. All have ended afterwards: they read the
  /// inputs.
  Status run_submitted(device::Queue& queue, Duration& total) {
    const TimePoint begin = clock_->now();
    Completions running;
    running.reserve(jobs_.size());
    Status status;
    for (const device::Submission& job : jobs_) {
      auto completion = no_throw("a run", [&] { return queue.submit(job); });
      if (!completion) {
        status = completion.error();
        break;
      }
      running.push_back(std::move(*completion));
    }
    for (const auto& each : running) {
      if (status.ok()) status = await_cores(*each, begin);
      if (!status.ok() && each->cancel()) continue;
      each->wait_released();
      const device::JobRecord record = each->record();
      total += record.ended - record.started;
      if (status.ok()) status = each->status();
    }
    return status;
  }

  /// kBusy, and the job does not run, where several cores are not idle together soon, or any at the
  /// limit.
  Status await_cores(device::Completion& job, TimePoint begin) {
    TimePoint until = until_;
    if (!takes_one(way_.cores))
      until = std::min(until, later(begin, kMostForCores + kWaitPerRun * spent_ - waited_));
    if (until != kNever && !job.wait(until) && job.cancel()) return busy_error();
    job.wait_released();
    waited_ += std::max(Duration{0}, job.record().started - begin);
    return {};
  }

  Inputs inputs_;
  const Clock* clock_;
  const Way way_;
  std::size_t next_ = 0;
  Duration spent_{0};
  Duration waited_{0};  ///< For the cores of jobs that were submitted.
  TimePoint until_ = kNever;
  const std::function<bool()>* stopped_ = nullptr;
  std::vector<device::Submission> jobs_;
};

}  // namespace

bool is_enough(std::size_t pairs, Duration spent) noexcept {
  return pairs >= kMostPairs || (pairs >= 21 && spent >= milliseconds(20)) ||
         (pairs >= 5 && spent >= milliseconds(60)) || (pairs >= 3 && spent >= milliseconds(400)) ||
         (pairs >= 1 && spent >= milliseconds(2000));
}

double worth_a_change(std::span<const EnginePair> pairs) {
  const auto is_short = [](const EnginePair& pair) {
    return pair.first > Duration{0} && pair.first < kShort;
  };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(pairs, is_short));
  return count > pairs.size() / 2 ? kWorthAShortChange : kWorthAChange;
}

double median_ratio(std::span<const EnginePair> pairs) {
  std::vector<double> ratios;
  for (const EnginePair& pair : pairs) {
    if (pair.first <= Duration{0} || pair.other <= Duration{0}) return 1;
    ratios.push_back(static_cast<double>(pair.other.count()) /
                     static_cast<double>(pair.first.count()));
  }
  if (ratios.empty()) return 1;
  return median(std::move(ratios));
}

TimedOn TimedRun::kind() const noexcept {
  if (!takes_one(cores)) return TimedOn::kSeveralCores;
  return at_once > 1 ? TimedOn::kEachCore : TimedOn::kOneCore;
}

namespace {

/// On one core, also where the run takes more: these cannot be had.
Way way_on(const TimedRun& run, TimedOn on) {
  Way way;
  way.priority = std::max(0, run.priority);
  if (on == run.kind() || takes_one(run.cores)) way.cores = run.cores;
  if (on == TimedOn::kEachCore) way.at_once = run.at_once;
  return way;
}

/// Both, as they run in turn on a queue of their own.
struct Sides {
  static Result<Sides> make(Comparison& of, std::vector<TimedRun::Input>& copies, const Way& way) {
    const Contender::Inputs inputs = {&of.run.inputs, &copies};
    const Clock& clock = *of.device.clock();
    CORELANE_ASSIGN(Contender first, Contender::make(of.first, inputs, way, clock));
    CORELANE_ASSIGN(Contender other, Contender::make(of.other, inputs, way, clock));
    device::QueueOptions options;
    options.name = of.name;
    CORELANE_ASSIGN(auto queue, of.device.make_queue(options));
    return Sides{std::move(first), std::move(other), std::move(queue)};
  }
  Duration spent() const noexcept { return first.spent() + other.spent(); }

  Contender first;
  Contender other;
  std::shared_ptr<device::Queue> queue;
};

/// At no lower priority than the program's own runs: where these keep all cores busy, no comparison
/// would end, and none of them would become faster.
Result<std::vector<EnginePair>> turns_of(Comparison& of, std::vector<TimedRun::Input>& copies,
                                         const Way& way) {
  CORELANE_ASSIGN(Sides sides, Sides::make(of, copies, way));
  std::vector<EnginePair> pairs;
  Duration warm{0};
  for (std::size_t turns = 0; !is_enough(pairs.size(), sides.spent() - warm); ++turns) {
    if (of.stopped()) return stopped_error();
    EnginePair pair;
    CORELANE_ASSIGN(pair.first, sides.first.turn(*sides.queue));
    CORELANE_ASSIGN(pair.other, sides.other.turn(*sides.queue));
    const bool is_cold = turns < kWarmUps && warm < kLongWarmUp;
    if (is_cold || (turns < kMostWarmUps && warm < kWarmUpTime)) {
      warm = sides.spent();
      continue;
    }
    pairs.push_back(pair);
  }
  return pairs;
}

/// Most of them are.
bool are_long(std::span<const EnginePair> pairs) {
  const auto is_long = [](const EnginePair& pair) { return pair.first >= kLongRun; };
  return static_cast<std::size_t>(std::ranges::count_if(pairs, is_long)) * 2 > pairs.size();
}

/// Further blocks would not change the verdict: all of two give a clear ratio, or all of three one
/// that is not close to what the other engine has to reach.
bool agree(std::span<const EnginePair> pairs) {
  if (pairs.size() < 2) return false;
  const auto ratio = [](const EnginePair& pair) { return median_ratio(std::span(&pair, 1)); };
  const auto ends = std::ranges::minmax(pairs, {}, ratio);
  const double least = ratio(ends.min);
  const double most = ratio(ends.max);
  const auto all_beyond = [&](double low, double high) { return most < low || least > high; };
  if (all_beyond(kClear, 1 / kClear)) return true;
  const double needed = worth_a_change(pairs);
  return pairs.size() >= 3 && all_beyond(needed * (1 - kClose), needed * (1 + kClose));
}

}  // namespace

Result<TimedPairs> time_in_turns(Comparison& of) {
  std::vector<TimedRun::Input> copies = of.run.inputs;
  const TimedOn kind = of.run.kind();
  if (kind != TimedOn::kOneCore) {
    auto pairs = turns_of(of, copies, way_on(of.run, kind));
    if (pairs) return TimedPairs{std::move(*pairs), kind};
    // Several cores are never idle together, or the device lets few jobs wait.
    const Code code = pairs.error().code();
    if (code != Code::kBusy && code != Code::kOutOfCores) return error(pairs.error());
  }
  CORELANE_ASSIGN(auto pairs, turns_of(of, copies, way_on(of.run, TimedOn::kOneCore)));
  return TimedPairs{std::move(pairs), TimedOn::kOneCore};
}

Result<std::vector<EnginePair>> time_in_blocks(Comparison& of, TimedOn on, const UseEngine& use) {
  std::vector<TimedRun::Input> copies = of.run.inputs;
  CORELANE_ASSIGN(Sides sides, Sides::make(of, copies, way_on(of.run, on)));
  const TimePoint until = later(of.device.clock()->now(), kMostForBlocks);
  sides.first.limit(until, of.stopped);
  sides.other.limit(until, of.stopped);
  std::vector<EnginePair> pairs;
  bool on_other = false;
  const auto time = [&](EnginePair& pair) -> Status {
    CORELANE_ASSIGN((on_other ? pair.other : pair.first),
                    (on_other ? sides.other : sides.first).block(*sides.queue));
    return {};
  };
  while (pairs.size() < kBlocks && !agree(pairs)) {
    EnginePair pair;
    // The engine in use goes first.
    Status timed = time(pair);
    if (timed.ok() && use) timed = use(!on_other);
    if (timed.ok()) on_other = !on_other;
    if (timed.ok()) timed = time(pair);
    if (timed.code() == Code::kBusy && !pairs.empty()) break;
    CORELANE_TRY(timed);
    pairs.push_back(pair);
  }
  return pairs;
}

/// In turns, an engine finds the weights of the other one in the caches, or those of the one that
/// the program uses. So blocks decide, unless one engine is faster by far.
Result<TimedEngines> time_engines(Comparison& of, const UseEngine& use) {
  const auto result_of = [](std::span<const EnginePair> pairs, TimedOn on) {
    return TimedEngines{median_ratio(pairs), worth_a_change(pairs), pairs.size(), on};
  };
  CORELANE_ASSIGN(const TimedPairs turns, time_in_turns(of));
  const TimedEngines by_turns = result_of(turns.pairs, turns.on);
  const double far = by_turns.ratio / by_turns.needed;
  // Other cores than those of the program's runs would tell nothing of how these do.
  const bool otherwise = turns.on != of.run.kind();
  if (far < kFar || far > 1 / kFar || otherwise || are_long(turns.pairs)) return by_turns;
  bool on_other = false;
  UseEngine use_noted;
  if (use) {
    use_noted = [&](bool other) -> Status {
      CORELANE_TRY(use(other));
      on_other = other;
      return {};
    };
  }
  const auto blocks = time_in_blocks(of, turns.on, use_noted);
  if (blocks) return result_of(*blocks, turns.on);
  const Code code = blocks.error().code();
  const bool lacks = code == Code::kBusy || code == Code::kOutOfCores || code == Code::kOutOfMemory;
  // Where cores or memory are lacking with the other engine in use, the first one stays.
  if (lacks && !on_other) return by_turns;
  return error(blocks.error());
}

}  // namespace corelane::runtime
