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
/// So many times as much is needed where it is close, but no more than kMostForClose.
constexpr unsigned kMoreForClose = 4;
constexpr Duration kMostForClose = milliseconds(1000);
/// So near to what decides, a median of few pairs does not tell.
constexpr double kClose = 0.1;
/// Where one engine takes less of the other's time than this, runs beside others do not turn it.
constexpr double kClear = 0.8;
/// The most runs in a row that a further trial needs.
constexpr std::uint32_t kMostBeforeAnother = 4096;
/// What runs so long has its weights in the caches again for the most of it.
constexpr Duration kCachesMatter = milliseconds(20);
/// For runs shorter than this the cost of a hand-over between threads may decide the trial.
constexpr Duration kShort = std::chrono::microseconds(200);

bool takes_one(const device::CoreSet& cores) noexcept { return cores.count() == 1; }

/// How a trial runs: on which cores, how many at once, and whether other runs of the program may
/// come between two of its own.
struct Way {
  device::CoreSet cores;
  std::size_t at_once = 1;
  bool is_interrupted = false;
};

/// An executable to be run again and again, on several cores at the same time where that is asked
/// for. Its inputs lie in other memory at each run, as those of most users do: engines differ in
/// what that costs them. Where other runs come in between, they are of the engine in use, whose
/// weights they leave in the caches: so runs that last long enough are made twice, one right after
/// the other in the device's line, and the second one counts. Of those at the same time each is
/// made three times, and the second one counts: what runs beside it is of the same engine.
class Contender {
 public:
  using Inputs = std::array<std::vector<EngineTrial::Input>, 2>;

  static Result<Contender> make(const std::shared_ptr<device::Executable>& executable,
                                Inputs& inputs, const Way& way, const Clock& clock) {
    if (executable == nullptr) return error(Code::kWrongState, "nothing is prepared");
    Contender made(executable, inputs, way, clock);
    CORELANE_TRY(made.add_jobs(way.at_once));
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
  /// In all turns.
  Duration spent() const noexcept { return spent_; }

 private:
  Contender(std::shared_ptr<device::Executable> executable, Inputs& inputs, const Way& way,
            const Clock& clock)
      : executable_(std::move(executable)), inputs_(&inputs), clock_(&clock), way_(way) {}

  Status add_jobs(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      device::Submission& job = jobs_.emplace_back();
      job.executable = executable_;
      CORELANE_ASSIGN(job.bindings, executable_->new_bindings());
      job.cores = way_.cores;
      job.direct_user_memory = true;
    }
    return {};
  }

  /// The time on the engine, with what it takes to bind the inputs; the mean of runs at once.
  Result<Duration> run(device::Queue& queue) {
    next_ = 1 - next_;
    const bool alone = !way_.is_interrupted || last_ < kTurn || last_ >= kCachesMatter;
    // Only now: of what runs for longer the bindings are mostly large.
    if (!alone && jobs_.size() == way_.at_once)
      CORELANE_TRY(add_jobs(way_.at_once * (way_.at_once > 1 ? 2 : 1)));
    const Jobs others = alone ? Jobs() : Jobs(jobs_).subspan(way_.at_once);
    CORELANE_TRY(bind(others, (*inputs_)[1 - next_]));
    const TimePoint begin = clock_->now();
    CORELANE_TRY(bind(counted(), (*inputs_)[next_]));
    Duration total = clock_->now() - begin;
    if (!others.empty() || way_.at_once > 1 || !takes_one(way_.cores)) {
      CORELANE_TRY(run_submitted(queue, others, total));
    } else {
      device::JobRecord record;
      CORELANE_TRY(queue.run(jobs_[0], &record));
      total += record.ended - record.started;
    }
    last_ = total / static_cast<Duration::rep>(way_.at_once);
    return last_;
  }

  using Jobs = std::span<const device::Submission>;
  Jobs counted() const { return Jobs(jobs_).first(way_.at_once); }

  static Status bind(Jobs jobs, std::vector<EngineTrial::Input>& inputs) {
    for (const device::Submission& job : jobs) {
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const device::TensorRef tensor{inputs[i].bytes.data(), inputs[i].bytes.size(),
                                       inputs[i].shape, nullptr};
        CORELANE_TRY(job.bindings->set_input(i, tensor));
      }
    }
    return {};
  }

  using Completions = std::vector<std::shared_ptr<device::Completion>>;

  /// Adds what the counted ones took on their cores to `total`; of the others as many go before
  /// them. All have ended afterwards: they read the inputs.
  Status run_submitted(device::Queue& queue, Jobs others, Duration& total) {
    const TimePoint begin = clock_->now();
    Completions running;
    running.reserve(jobs_.size());
    Status status;
    const auto submit = [&](Jobs jobs) {
      for (const device::Submission& job : jobs) {
        if (!status.ok()) return;
        auto completion = no_throw("a run", [&] { return queue.submit(job); });
        if (completion)
          running.push_back(std::move(*completion));
        else
          status = completion.error();
      }
    };
    const std::size_t before = std::min(others.size(), way_.at_once);
    submit(others.first(before));
    submit(counted());
    submit(others.subspan(before));
    if (status.ok() && !takes_one(way_.cores)) CORELANE_TRY(await_cores(running, begin));
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (!status.ok() && running[i]->cancel()) continue;
      running[i]->wait_released();
      const device::JobRecord record = running[i]->record();
      if (i >= before && i < before + way_.at_once) total += record.ended - record.started;
      if (status.ok()) status = running[i]->status();
    }
    return status;
  }

  /// kBusy, and none of them runs, where several cores are not idle together soon.
  Status await_cores(const Completions& jobs, TimePoint begin) {
    const Duration allowed = kMostForCores + kWaitPerRun * spent_ - waited_;
    if (!jobs.front()->wait(later(begin, allowed)) && jobs.front()->cancel()) {
      for (const auto& other : std::span(jobs).subspan(1))
        if (!other->cancel()) other->wait_released();
      return error(Code::kBusy, "the cores of a job are in use");
    }
    jobs.front()->wait_released();
    waited_ += std::max(Duration{0}, jobs.front()->record().started - begin);
    return {};
  }

  std::shared_ptr<device::Executable> executable_;
  Inputs* inputs_;
  const Clock* clock_;
  const Way way_;
  std::size_t next_ = 0;
  Duration last_{0};
  Duration spent_{0};
  Duration waited_{0};  ///< For several cores.
  /// The counted ones, and the others.
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

bool is_close(std::span<const EnginePair> pairs) {
  return std::abs(median_ratio(pairs) / worth_a_change(pairs) - 1) < kClose;
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
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::ranges::nth_element(ratios, middle);
  return *middle;
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

/// They take turns, so that what else the machine does meets both. At no lower priority than the
/// program's own runs: where these keep all cores busy, no comparison would end, and none of them
/// would become faster.
Result<std::vector<EnginePair>> time_on(const Way& way, device::Device& device,
                                        const std::string& name,
                                        const std::shared_ptr<device::Executable>& first,
                                        const std::shared_ptr<device::Executable>& other,
                                        Contender::Inputs& inputs,
                                        const std::function<bool()>& stopped) {
  const Clock& clock = *device.clock();
  CORELANE_ASSIGN(Contender ours, Contender::make(first, inputs, way, clock));
  CORELANE_ASSIGN(Contender theirs, Contender::make(other, inputs, way, clock));
  device::QueueOptions queue_options;
  queue_options.name = name;
  CORELANE_ASSIGN(const auto queue, device.make_queue(queue_options));
  std::vector<EnginePair> pairs;
  const auto spent = [&] { return ours.spent() + theirs.spent(); };
  Duration warm{0};
  bool close = false;
  const auto decides = [&] {
    const Duration timed = spent() - warm;
    if (pairs.size() >= kMostPairs) return true;
    if (close)
      return timed >= kMostForClose ||
             is_enough(pairs.size() / kMoreForClose, timed / kMoreForClose);
    if (!is_enough(pairs.size(), timed)) return false;
    close = timed < kMostForClose && is_close(pairs);
    return !close;
  };
  for (std::size_t turns = 0; !decides(); ++turns) {
    if (stopped()) return error(Code::kCancelled, "the program ended");
    EnginePair pair;
    CORELANE_ASSIGN(pair.first, ours.turn(*queue));
    CORELANE_ASSIGN(pair.other, theirs.turn(*queue));
    const bool is_cold = turns < kWarmUps && warm < kLongWarmUp;
    if (is_cold || (turns < kMostWarmUps && warm < kWarmUpTime)) {
      warm = spent();
      continue;
    }
    pairs.push_back(pair);
  }
  return pairs;
}

}  // namespace

Result<TimedPairs> time_pairs(device::Device& device, const std::string& name,
                              const std::shared_ptr<device::Executable>& first,
                              const std::shared_ptr<device::Executable>& other,
                              EngineTrial::Run run, const std::function<bool()>& stopped) {
  Contender::Inputs inputs = {run.inputs, std::move(run.inputs)};
  const TimedOn kind = run.kind();
  const Way way{run.cores, kind == TimedOn::kEachCore ? run.at_once : 1,
                kind != TimedOn::kOneCore || device.info().cores.size() == 1};
  if (way.is_interrupted) {
    auto pairs = time_on(way, device, name, first, other, inputs, stopped);
    if (pairs) return TimedPairs{std::move(*pairs), kind};
    // Several cores are never idle together, or the device lets few jobs wait.
    const Code code = pairs.error().code();
    if (code != Code::kBusy && code != Code::kOutOfCores) return error(pairs.error());
  }
  Way alone;
  if (takes_one(run.cores)) alone.cores = run.cores;
  CORELANE_ASSIGN(auto pairs, time_on(alone, device, name, first, other, inputs, stopped));
  return TimedPairs{std::move(pairs), TimedOn::kOneCore};
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
        if (is_first) parts.done({used, 1, 0, TimedOn::kNothing}, nullptr);
      }
      return prepared.error();
    }
    const std::shared_ptr<device::Executable> other = std::move(*prepared);
    const TimedOn wanted = run.kind();
    CORELANE_ASSIGN(const TimedPairs timed,
                    time_pairs(*parts.device, parts.name, first, other, std::move(run),
                               [this] { return stopped(); }));
    const TimedOn cores = timed.on;
    const double ratio = median_ratio(timed.pairs);
    const bool faster = ratio < worth_a_change(timed.pairs);
    log::debug("runtime", "program '{}' runs on {}: {} takes {:.2f} of the time of {}, cores: {}",
               parts.name, faster ? unused : used, unused, ratio, used, word_of(cores));
    if (stopped()) return error(Code::kCancelled, "the program ended");
    frees_much = first->memory().total() + other->memory().total() >= kWorthATrim;
    loser = faster ? first : other;
    const EngineVerdict verdict{faster ? unused : used, faster ? ratio : 1 / ratio,
                                timed.pairs.size(), cores};
    clear.store(verdict.ratio < kClear, std::memory_order_relaxed);
    wanted_on.store(wanted, std::memory_order_relaxed);
    if (faster) std::swap(used, unused);
    parts.done(verdict, faster ? other : nullptr);
    return {};
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
