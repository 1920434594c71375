#include "runtime/program/engine_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <thread>
#include <utility>

#include "base/fork.h"
#include "base/guard.h"
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

/// The most runs in a row that a further trial needs.
constexpr std::uint32_t kMostBeforeAnother = 4096;

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
  void work(TimedRun run) {
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

  void make(TimedRun run) {
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

  Status compare(TimedRun run) {
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
    CORELANE_ASSIGN(const TimedEngines timed, time_engines(of, in_use.use_engine()));
    const bool faster = timed.ratio < timed.needed;
    log::debug("runtime", "program '{}' runs on {}: {} takes {:.2f} of the time of {}, cores: {}",
               parts.name, faster ? unused : used, unused, timed.ratio, used, word_of(timed.on));
    if (stopped()) return error(Code::kCancelled, "the program ended");
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
      const Status back = no_throw("the return", [&] { return use(false, false); });
      if (!back.ok())
        log::debug("runtime", "program '{}' does not return to its engine: {}", parts_->name,
                   text_or_none([&] { return back.to_string(); }));
    }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;
    Status settle(bool other) {
      CORELANE_TRY(use(other, false));
      settled_ = true;
      return {};
    }
    UseEngine use_engine() {
      if (!parts_->use) return nullptr;
      return [this](bool other) { return use(other, other); };
    }

   private:
    Status use(bool other, bool is_tried) {
      if (other == on_other_ || settled_ || !parts_->use) return {};
      CORELANE_TRY(parts_->use(other ? of_->other : of_->first, is_tried));
      on_other_ = other;
      return {};
    }

    const Parts* parts_;
    const Comparison* of_;
    bool on_other_ = false;
    bool settled_ = false;
  };

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
  std::optional<TimedRun> next CORELANE_GUARDED_BY(mutex);
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

void EngineTrial::begin(TimedRun run) {
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
