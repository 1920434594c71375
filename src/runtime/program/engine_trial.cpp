#include "runtime/program/engine_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <thread>
#include <utility>

#include "base/fork.h"
#include "base/guard.h"
#include "base/later.h"
#include "base/process/heap.h"
#include "base/process/process_end.h"
#include "base/reserve.h"
#include "base/sync.h"
#include "base/text_parts.h"
#include "base/thread.h"
#include "base/trust/environment_switch.h"
#include "corelane/base/api.h"
#include "corelane/base/log.h"
#include "corelane/device/device.h"
#include "runtime/program/late_ends.h"
#include "runtime/program/own_thread.h"

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
/// A block of runs in a row: at least so many, which take kLeastBlock, or so much as kBlock. As
/// many go before it that are not timed: contexts follow a change of the engine with their next
/// run.
constexpr std::size_t kRunsInBlock = 8;
constexpr Duration kLeastBlock = milliseconds(5);
constexpr Duration kBlock = milliseconds(25);
/// Blocks of each engine; fewer where two agree that it is clear.
constexpr std::size_t kBlocks = 5;
/// They end then, with what waits for cores: the program may be on the slower engine.
constexpr Duration kMostForBlocks = std::chrono::seconds(3);
/// Where an engine takes less than this part of what decides in turns, or that takes less than this
/// part of its time, blocks do not turn it.
constexpr double kFar = 0.5;
/// Where one engine takes less of the other's time than this, nor do runs beside others.
constexpr double kClear = 0.8;
/// The most runs in a row that a further trial needs.
constexpr std::uint32_t kMostBeforeAnother = 4096;
/// For runs shorter than this the cost of a hand-over between threads may decide the trial.
constexpr Duration kShort = std::chrono::microseconds(200);

bool takes_one(const device::CoreSet& cores) noexcept { return cores.count() == 1; }

template <typename T>
T median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
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
  using Inputs = std::array<std::vector<EngineTrial::Input>*, 2>;

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
      return took >= kBlock || (runs.size() >= kRunsInBlock && took >= kLeastBlock) ||
             runs.size() >= kMostWarmUps;
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

  Status bind(std::vector<EngineTrial::Input>& inputs) {
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
  Duration waited_{0};  ///< For several cores.
  TimePoint until_ = kNever;
  const std::function<bool()>* stopped_ = nullptr;
  std::vector<device::Submission> jobs_;
};

/// As a verdict is written; empty for kNothing.
std::string_view word_of(TimedOn cores) {
  switch (cores) {
    case TimedOn::kNothing:
      return {};
    case TimedOn::kOneCore:
      return "one";
    case TimedOn::kSeveralCores:
      return "several";
    case TimedOn::kEachCore:
      return "each";
  }
  return {};
}

/// What would be the same at each trial; too little memory would not, nor an engine that cannot be
/// opened: it may be installed later.
bool is_lasting(const Status& refused) {
  for (Status each = refused; !each.ok(); each = each.cause())
    if (each.code() != Code::kUnsupportedModel && each.code() != Code::kUnsupported &&
        each.code() != Code::kEngineFailed && each.code() != Code::kInternal)
      return false;
  return true;
}

}  // namespace

bool described_alike(const device::Executable& a, const device::Executable& b) {
  const auto same = [](const TensorDesc& x, const TensorDesc& y) {
    return x.dtype == y.dtype && x.shape == y.shape;
  };
  const auto same_for_users = [&](const TensorDesc& x, const TensorDesc& y) {
    const bool after_runs = !x.shape.is_static() && !y.shape.is_static();
    return same(x, y) || (after_runs && x.dtype == y.dtype && x.shape.rank() == y.shape.rank());
  };
  return std::ranges::equal(a.inputs(), b.inputs(), same) &&
         std::ranges::equal(a.outputs(), b.outputs(), same_for_users);
}

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

std::string EngineVerdict::reason() const {
  if (pairs == 0) return "the other engine does not take the program";
  return fmt::format("measured: {:.2f} of the other's time", ratio);
}

std::string EngineVerdict::text() const {
  const std::string_view cores = word_of(timed_on);
  return fmt::format("{} {:.4f} {}{}{}", engine, ratio, pairs, cores.empty() ? "" : " ", cores);
}

std::optional<EngineVerdict> EngineVerdict::parse(std::string_view text) {
  std::vector<std::string_view> words;
  const Status split = for_each_part(text, ' ', [&](std::string_view word) -> Status {
    words.push_back(word);
    return {};
  });
  if (!split.ok() || words.size() < 3 || words.size() > 4 || words[0].empty()) return std::nullopt;
  EngineVerdict verdict;
  if (words.size() == 4) {
    constexpr TimedOn kKinds[] = {TimedOn::kOneCore, TimedOn::kSeveralCores, TimedOn::kEachCore};
    const auto* const kind = std::ranges::find(kKinds, words[3], word_of);
    if (kind == std::end(kKinds)) return std::nullopt;
    verdict.timed_on = *kind;
  }
  verdict.engine = words[0];
  const auto ratio = parse_number<double>(words[1]);
  const auto pairs = parse_number<std::size_t>(words[2]);
  if (!ratio || !pairs) return std::nullopt;
  verdict.ratio = *ratio;
  verdict.pairs = *pairs;
  return verdict;
}

std::string trial_tag(const device::DeviceInfo& info) {
  return fmt::format("{}, corelane {}, {}", info.engine, version(), info.isa);
}

bool engines_are_timed(bool wanted) {
  static constinit EnvironmentSwitch enabled{"CORELANE_TIME_ENGINES", true};
  return wanted && enabled.on();
}

device::CoreSet trial_cores(const device::CoreSet& cores, std::size_t in_all) noexcept {
  if (cores.kind() == device::CoreSet::Kind::kPlatform || (in_all > 1 && cores.count() >= in_all))
    return device::CoreSet::platform();
  return device::CoreSet::any(std::max<std::size_t>(1, cores.count()));
}

TimedOn EngineTrial::Run::kind() const noexcept {
  if (!takes_one(cores)) return TimedOn::kSeveralCores;
  return at_once > 1 ? TimedOn::kEachCore : TimedOn::kOneCore;
}

namespace {

/// On one core, also where the run takes more: these cannot be had.
Way way_on(const EngineTrial::Run& run, TimedOn on) {
  Way way;
  way.priority = run.priority;
  if (on == run.kind() || takes_one(run.cores)) way.cores = run.cores;
  if (on == TimedOn::kEachCore) way.at_once = run.at_once;
  return way;
}

/// Both, as they run in turn on a queue of their own.
struct Sides {
  static Result<Sides> make(Comparison& of, std::vector<EngineTrial::Input>& copies,
                            const Way& way) {
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

/// At the priority of the program's own runs: where these keep all cores busy, no comparison at a
/// lower one would end, and none of them would become faster.
Result<std::vector<EnginePair>> turns_of(Comparison& of, std::vector<EngineTrial::Input>& copies,
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

/// Of runs so long, what is left in the caches matters little, and blocks would take seconds.
bool are_long(std::span<const EnginePair> pairs) {
  const auto is_long = [](const EnginePair& pair) { return pair.first >= kBlock; };
  return static_cast<std::size_t>(std::ranges::count_if(pairs, is_long)) * 2 > pairs.size();
}

bool is_clear(double ratio) noexcept { return ratio < kClear || ratio > 1 / kClear; }

/// The first two say the same, by far.
bool are_clear(std::span<const EnginePair> pairs) {
  if (pairs.size() < 2) return false;
  const double one = median_ratio(pairs.first(1));
  const double two = median_ratio(pairs.subspan(1, 1));
  return is_clear(one) && is_clear(two) && (one < 1) == (two < 1);
}

}  // namespace

Result<TimedPairs> time_in_turns(Comparison& of) {
  std::vector<EngineTrial::Input> copies = of.run.inputs;
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
  std::vector<EngineTrial::Input> copies = of.run.inputs;
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
  while (pairs.size() < kBlocks && !are_clear(pairs)) {
    EnginePair pair;
    // The engine in use goes first.
    Status timed = time(pair);
    if (timed.ok() && use) timed = use(on_other ? of.first : of.other);
    if (timed.ok()) on_other = !on_other;
    if (timed.ok()) timed = time(pair);
    if (timed.code() == Code::kBusy && !pairs.empty()) break;
    CORELANE_TRY(timed);
    pairs.push_back(pair);
  }
  return pairs;
}

/// Shared with the thread: a callback of the log may drop the last reference to the program there.
struct EngineTrial::Core : std::enable_shared_from_this<Core> {
  Core(Parts all, const std::optional<EngineVerdict>& known)
      : parts(std::move(all)),
        used(parts.first_engine),
        unused(parts.other_engine),
        over(known.has_value()),
        wanted_on(known ? known->timed_on : TimedOn::kNothing),
        clear(known && known->ratio < kClear) {}

  bool stopped() {
    const MutexLock lock(mutex);
    return stop || process_ending();
  }

  /// One trial after the other, as long as the next one is begun before this thread has ended.
  void work(Run run) {
    for (;;) {
      make(std::move(run));
      const bool freed = frees_much && await_end_of_loser();
      if (freed && !process_ending()) trim_heap();
      const MutexLock lock(mutex);
      if (next && !stop) {
        run = std::move(*next);
        next.reset();
        busy = false;
        continue;
      }
      ended = true;
      return;
    }
  }

  void make(Run run) {
    const LateEnds late;
    const Status status = no_throw("the comparison", [&]() -> Status {
      const EngineVisit visit;
      return visit && !process_ending() ? compare(std::move(run)) : Status();
    });
    if (!status.ok() && status.code() != Code::kCancelled)
      log::debug("runtime", "program '{}' stays on {}: {} is not timed: {}", parts.name, used,
                 unused, status.to_string());
    // Under the lock, so that the begin of this very trial is over before its end.
    const MutexLock lock(mutex);
    over.store(true, std::memory_order_release);
    running = false;
    changed.notify_all();
  }

  /// The engine that lost is in use until each context has run once more. False where this object
  /// ends, or another trial is begun, before.
  bool await_end_of_loser() {
    MutexLock lock(mutex);
    return await_end_of(loser, busy, lock.native(), changed, *parts.device->clock());
  }

  Status compare(Run run) {
    const std::shared_ptr<device::Executable> first = parts.first();
    if (first == nullptr) return error(Code::kWrongState, "nothing is prepared");
    // What the load freed stays for the first runs: until now.
    frees_much = first->memory().total() >= kWorthATrim;
    auto prepared = parts.prepare_on(unused);
    if (prepared && !described_alike(*first, **prepared))
      prepared = error(Code::kUnsupported, "it describes the program differently");
    if (!prepared) {
      const bool is_first = wanted_on.load() == TimedOn::kNothing;
      if (is_lasting(prepared.error())) {
        wanted_on.store(TimedOn::kNothing, std::memory_order_relaxed);
        if (is_first) parts.done({used, 1, 0, TimedOn::kNothing});
      }
      return prepared.error();
    }
    const std::shared_ptr<device::Executable> other = std::move(*prepared);
    frees_much = first->memory().total() + other->memory().total() >= kWorthATrim;
    loser = other;
    wanted_on.store(run.kind(), std::memory_order_relaxed);
    Comparison of{*parts.device, parts.name,     first,
                  other,         std::move(run), [this] { return stopped(); }};
    InUse in_use(parts, of);
    CORELANE_ASSIGN(const Timed timed, time(of, in_use));
    const bool faster = timed.ratio < timed.needed;
    log::debug("runtime", "program '{}' runs on {}: {} takes {:.2f} of the time of {}, cores: {}",
               parts.name, faster ? unused : used, unused, timed.ratio, used, word_of(timed.on));
    if (stopped()) return stopped_error();
    const EngineVerdict verdict{faster ? unused : used, faster ? timed.ratio : 1 / timed.ratio,
                                timed.pairs, timed.on};
    CORELANE_TRY(in_use.settle(faster));
    if (faster) {
      std::swap(used, unused);
      loser = first;
    }
    clear.store(verdict.ratio < kClear, std::memory_order_relaxed);
    parts.done(verdict);
    return {};
  }

  /// What the program runs on. The first one again at the end of this object, unless settle() was
  /// called.
  class InUse {
   public:
    InUse(const Parts& parts, const Comparison& of) : parts_(&parts), of_(&of) {}
    ~InUse() {
      const Status back = no_throw("the return", [&] { return use(false); });
      if (!back.ok())
        log::debug("runtime", "program '{}' does not return to its engine: {}", parts_->name,
                   text_or_none([&] { return back.to_string(); }));
    }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;
    Status use(bool other) {
      if (other == on_other_ || settled_) return {};
      CORELANE_TRY(parts_->use(other ? of_->other : of_->first));
      on_other_ = other;
      return {};
    }
    Status settle(bool other) {
      if (parts_->use) CORELANE_TRY(use(other));
      settled_ = true;
      return {};
    }
    bool on_other() const noexcept { return on_other_; }

   private:
    const Parts* parts_;
    const Comparison* of_;
    bool on_other_ = false;
    bool settled_ = false;
  };

  /// Of the other engine by the first one.
  struct Timed {
    double ratio = 1;
    double needed = 1;  ///< worth_a_change()
    std::size_t pairs = 0;
    TimedOn on = TimedOn::kNothing;

    static Timed of(std::span<const EnginePair> pairs, TimedOn on) {
      return {median_ratio(pairs), worth_a_change(pairs), pairs.size(), on};
    }
  };

  /// In turns, an engine finds the weights of the other one in the caches, or those of the one that
  /// the program uses. So blocks decide, unless one engine is faster by far.
  Result<Timed> time(Comparison& of, InUse& in_use) {
    CORELANE_ASSIGN(const TimedPairs turns, time_in_turns(of));
    const Timed by_turns = Timed::of(turns.pairs, turns.on);
    const double far = by_turns.ratio / by_turns.needed;
    if (far < kFar || far > 1 / kFar || are_long(turns.pairs)) return by_turns;
    UseEngine use;
    if (parts.use) use = [&](const auto& engine) { return in_use.use(engine == of.other); };
    const auto blocks = time_in_blocks(of, turns.on, use);
    if (blocks) return Timed::of(*blocks, turns.on);
    const Code code = blocks.error().code();
    const bool lacks =
        code == Code::kBusy || code == Code::kOutOfCores || code == Code::kOutOfMemory;
    // Where cores or memory are lacking with the other engine in use, the first one stays.
    if (lacks && !in_use.on_other()) return by_turns;
    return error(blocks.error());
  }

  const Parts parts;
  // Of the trial's thread.
  std::string used;
  std::string unused;
  std::weak_ptr<device::Executable> loser;
  bool frees_much = false;

  std::atomic<bool> over;
  /// Of the last trial that could be made: as many cores as its run took, whether or not these were
  /// idle together.
  std::atomic<TimedOn> wanted_on;
  std::atomic<bool> clear;  ///< It was, by far.
  const std::uint64_t made_in = fork_count();
  Mutex mutex{LockRank::kBatchForms};
  std::condition_variable changed;
  bool running CORELANE_GUARDED_BY(mutex) = false;  ///< A trial, or one is due.
  bool ended CORELANE_GUARDED_BY(mutex) = false;    ///< The thread does nothing more.
  bool stop CORELANE_GUARDED_BY(mutex) = false;
  bool busy CORELANE_GUARDED_BY(mutex) = false;  ///< The thread has no time to wait.
  std::optional<Run> next CORELANE_GUARDED_BY(mutex);
  std::thread thread CORELANE_GUARDED_BY(mutex);
};

EngineTrial::EngineTrial(Parts parts, const std::optional<EngineVerdict>& known)
    : core_(std::make_shared<Core>(std::move(parts), known)), runs_(known ? kRunsBeforeTrial : 0) {}

EngineTrial::~EngineTrial() {
  end_own_thread(core_, [this] {
    const MutexLock lock(core_->mutex);
    core_->stop = true;
    core_->busy = true;
    core_->changed.notify_all();
    return std::move(core_->thread);
  });
}

bool EngineTrial::note_run() noexcept {
  // The count stops where it has done its work, so that it never wraps.
  if (runs_.load(std::memory_order_relaxed) >= kRunsBeforeTrial) return false;
  return runs_.fetch_add(1, std::memory_order_relaxed) + 1 == kRunsBeforeTrial;
}

bool EngineTrial::note_runs(TimedOn kind, std::uint32_t runs) noexcept {
  const TimedOn timed = core_->wanted_on.load(std::memory_order_relaxed);
  const auto is_wide = [](TimedOn on) { return on == TimedOn::kSeveralCores; };
  const bool as_timed = kind == timed || (is_wide(kind) == is_wide(timed) &&
                                          core_->clear.load(std::memory_order_relaxed));
  if (timed == TimedOn::kNothing || as_timed) {
    if (others_.load(std::memory_order_relaxed) != 0) others_.store(0, std::memory_order_relaxed);
    return false;
  }
  if (others_.fetch_add(runs, std::memory_order_relaxed) + runs <
      before_another_.load(std::memory_order_relaxed))
    return false;
  others_.store(0, std::memory_order_relaxed);
  return true;
}

void EngineTrial::begin(Run run) {
  const MutexLock lock(core_->mutex);
  if (core_->running || core_->stop) return;
  if (core_->thread.joinable() && !core_->ended) {
    core_->next = std::move(run);
    core_->busy = true;
    core_->changed.notify_all();
  } else {
    // It has nothing left to do but to return.
    if (core_->thread.joinable()) core_->thread.join();
    auto started = start_thread("engine trial", [core = core_, given = std::move(run)]() mutable {
      core->work(std::move(given));
    });
    if (!started) {
      give_up(started.error());
      return;
    }
    core_->thread = std::move(*started);
    core_->ended = false;
  }
  core_->running = true;
  // False from here on for a further trial, too: until it is over no static form is timed.
  const bool again = core_->over.exchange(false);
  const std::uint32_t before = before_another_.load(std::memory_order_relaxed);
  if (again && before < kMostBeforeAnother)
    before_another_.store(before * 8, std::memory_order_relaxed);
}

void EngineTrial::give_up(const Status& why) noexcept {
  core_->over.store(true, std::memory_order_release);
  log::debug("runtime", "program '{}': its engines are not timed: {}", core_->parts.name,
             text_or_none([&] { return why.to_string(); }));
}

bool EngineTrial::is_of_this_process() const noexcept { return core_->made_in == fork_count(); }

bool EngineTrial::over() const noexcept { return core_->over.load(std::memory_order_acquire); }

void EngineTrial::wait_idle() {
  if (core_->made_in != fork_count()) return;  // Its thread is the parent's.
  MutexLock lock(core_->mutex);
  if (core_->thread.get_id() == std::this_thread::get_id()) return;
  while (core_->running) core_->changed.wait(lock.native());
}

}  // namespace corelane::runtime
