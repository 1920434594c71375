#include "runtime/program/static_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/fork.h"
#include "base/process/process_end.h"
#include "base/sync.h"
#include "base/thread.h"
#include "corelane/base/log.h"
#include "runtime/program/late_ends.h"
#include "runtime/program/own_thread.h"
#include "runtime/program/shape_choice.h"

namespace corelane::runtime {
namespace {

/// Shapes of an open-ended program that are counted at a time.
constexpr std::size_t kMostCounted = 64;
/// After so many runs of a program the earlier ones count half, so that new shapes can get a form.
constexpr std::uint64_t kAgeing = 256;
/// A form gives way to shapes that run this many times as often: less would let forms take turns.
constexpr std::uint64_t kGivesWay = 4;
/// Once the forms of this many shapes brought no gain, and none did, the program gets no more.
constexpr std::size_t kMostWithoutGain = 4;

struct ShapesHash {
  std::size_t operator()(const std::vector<Shape>& shapes) const noexcept {
    std::size_t hash = shapes.size();
    for (const Shape& shape : shapes)
      for (std::size_t i = 0; i <= shape.rank(); ++i)
        hash = hash * 1'000'003 + static_cast<std::size_t>(i < shape.rank() ? shape[i] : -7);
    return hash;
  }
};

}  // namespace

std::optional<std::size_t> form_replicate_limit(std::size_t constants, std::size_t cores,
                                                std::size_t taken, std::size_t budget) noexcept {
  if (taken > budget || constants > budget - taken) return std::nullopt;
  // Divided, not multiplied: a damaged figure must not wrap.
  return constants == 0 || (budget - taken) / constants >= cores ? budget : 0;
}

std::size_t form_copies(device::Placement placement, std::size_t cores,
                        std::size_t constants) noexcept {
  return placement == device::Placement::kReplicated ? cores * constants : constants;
}

std::uint64_t FormUse::served() const noexcept {
  const std::uint64_t from = made_at_.load(std::memory_order_relaxed);
  const std::uint64_t now = runs_.load(std::memory_order_relaxed);
  // Without a form `made_at_` is kNever, which no number of runs reaches.
  return from >= now ? 0 : now - from;
}

/// Shared with the thread: a callback of the log may drop the last reference to the program there.
struct StaticForms::Core : std::enable_shared_from_this<Core> {
  using State = FormUse::State;
  using Use = std::shared_ptr<FormUse>;
  struct Due {
    Use use;
    TimedRun run;
  };

  Core(FormRule how, std::string program, Make maker)
      : rule(how), name(std::move(program)), make(std::move(maker)) {}

  static std::uint64_t runs_of(const FormUse& use) {
    return use.runs_.load(std::memory_order_relaxed);
  }
  /// Runs, of which those before the last ageing count half.
  static std::uint64_t score(const FormUse& use) { return use.older_ + (runs_of(use) - use.seen_); }
  /// `next_look`: the run at which a form is thought of again.
  static void set_state(FormUse& use, State state, std::uint64_t next_look = FormUse::kNever) {
    use.state_ = state;
    use.due_at_.store(next_look, std::memory_order_relaxed);
    use.made_at_.store(state == State::kMade ? runs_of(use) : FormUse::kNever,
                       std::memory_order_relaxed);
  }
  static void count_anew(FormUse& use) {
    use.older_ = 0;
    use.seen_ = runs_of(use);
    set_state(use, State::kNone, use.seen_ + kRunsBeforeForm);
  }
  /// Not now: looked at again when its runs have doubled.
  static void postpone(FormUse& use) { set_state(use, State::kNone, 2 * runs_of(use)); }

  Use find_or_add(const std::vector<Shape>& shapes) CORELANE_REQUIRES(mutex) {
    const auto found = uses.find(shapes);
    if (found != uses.end()) return found->second;
    if (rule.open_ended && uses.size() >= kMostCounted) drop_least_used();
    return uses.emplace(shapes, std::make_shared<FormUse>(shapes)).first->second;
  }

  /// Forms are few, so some shapes have none.
  void drop_least_used() CORELANE_REQUIRES(mutex) {
    auto least = uses.end();
    for (auto it = uses.begin(); it != uses.end(); ++it) {
      const State state = it->second->state_;
      if (state == State::kDue || state == State::kMade) continue;
      if (least == uses.end() || score(*it->second) < score(*least->second)) least = it;
    }
    if (least != uses.end()) uses.erase(least);
  }

  void age() noexcept {
    const MutexLock lock(mutex);
    for (auto& [shapes, use] : uses) {
      use->older_ = score(*use) / 2;
      use->seen_ = runs_of(*use);
    }
  }

  FormUse* idle_for(const FormUse& other) CORELANE_REQUIRES(mutex) {
    FormUse* least = nullptr;
    for (auto& [shapes, use] : uses) {
      if (use->state_ != State::kMade) continue;
      if (least == nullptr || score(*use) < score(*least)) least = use.get();
    }
    return least != nullptr && score(*least) * kGivesWay <= score(other) ? least : nullptr;
  }

  bool is_full() const CORELANE_REQUIRES(mutex) { return made + pending >= rule.most; }

  /// True for shapes that are due from now on; `again`: also such as were refused.
  bool take_due(const Use& use, bool again) CORELANE_REQUIRES(mutex) {
    const bool open = use->state_ == State::kNone || (again && use->state_ == State::kRefused);
    if (!open || stop) return false;
    // Its forms bring nothing: only make_now() still has one made.
    if (without_gain >= kMostWithoutGain && !again) {
      set_state(*use, State::kNone);
      return false;
    }
    // Shapes that are counted no longer, and still run, are counted again.
    const bool counted = uses.try_emplace(use->shapes, use).first->second == use;
    if (!counted || (is_full() && rule.open_ended && idle_for(*use) == nullptr)) {
      postpone(*use);
      return false;
    }
    if (is_full() && !rule.open_ended) {
      set_state(*use, State::kRefused);
      use->status_ = error(Code::kOutOfMemory,
                           "program '{}' has {} forms of single batch sizes, the most there may be",
                           name, rule.most);
      return false;
    }
    set_state(*use, State::kDue);
    ++pending;
    return true;
  }

  /// There was no memory to have it made: nobody waits for it, and it is thought of again later.
  void give_up(FormUse& use) CORELANE_REQUIRES(mutex) {
    std::erase_if(due, [&](const Due& each) { return each.use.get() == &use; });
    if (use.state_ != State::kDue) return;
    postpone(use);
    --pending;
    changed.notify_all();
  }

  /// Needs something to make. A thread that has nothing left to do is joined here.
  void start() CORELANE_REQUIRES(mutex) {
    if (running || due.empty()) return;
    if (thread.joinable()) thread.join();
    auto started = start_thread("static forms", [self = shared_from_this()] { self->work(); });
    if (started) {
      thread = std::move(*started);
      running = true;
      return;
    }
    for (const Due& each : due) refuse(*each.use, started.error());
    pending -= due.size();
    due.clear();
    changed.notify_all();
  }

  static void refuse(FormUse& use, const Status& why) {
    set_state(use, State::kRefused);
    use.status_ = why;
  }

  void work() {
    const LateEnds late;
    while (std::optional<Due> next_due = next()) {
      const Use use = next_due->use;
      const Result<bool> result = make_one(use, std::move(next_due->run));
      next_due.reset();
      if (note_end(*use, result)) report(*use, result.error());
    }
  }

  /// True where the log should tell.
  bool note_end(FormUse& use, const Result<bool>& result) {
    const MutexLock lock(mutex);
    --pending;
    changed.notify_all();
    if (result && *result) {
      set_state(use, State::kMade);
      ++made;
      ++ever_made;
      without_gain = 0;
      return false;
    }
    if (result) {
      if (ever_made == 0) ++without_gain;
      refuse(use, error(Code::kUnsupported, "it is no faster than the form for all shapes"));
      return false;
    }
    const Status& status = result.error();
    if (status.code() == Code::kDeviceLost) {
      // It comes back, and the shapes with it.
      count_anew(use);
      use.status_ = status;
      return false;
    }
    const bool first_refusal = use.status_.ok() && status.code() != Code::kCancelled;
    refuse(use, status);
    // Others may give their room back.
    if (rule.open_ended && status.code() == Code::kOutOfMemory) postpone(use);
    return first_refusal;
  }

  void drop_due() CORELANE_REQUIRES(mutex) {
    for (const Due& each : due) set_state(*each.use, State::kNone);
    pending -= due.size();
    due.clear();
  }

  /// What is due next; nothing where the thread ends.
  std::optional<Due> next() {
    const MutexLock lock(mutex);
    if (without_gain >= kMostWithoutGain && rule.open_ended) drop_due();
    if (due.empty() || stop) {
      running = false;
      changed.notify_all();
      return std::nullopt;
    }
    std::optional<Due> front = std::move(due.front());
    due.pop_front();
    return front;
  }

  Result<bool> make_one(const Use& use, TimedRun run) {
    const EngineVisit visit;
    if (!visit || process_ending()) return error(Code::kCancelled, "the process ends");
    try {
      return make(use, std::move(run));
    } catch (const std::exception& e) {
      return error(Code::kInternal, "making the form: {}", e.what());
    } catch (...) {
      return error(Code::kInternal, "making the form: an exception of an unknown type");
    }
  }

  /// Without a lock; afterwards this object may be the thread's alone.
  void report(const FormUse& use, const Status& status) const {
    // A budget that is used up is nothing to warn of, nor are forms that nobody has asked for.
    const bool expected = rule.open_ended || status.code() == Code::kOutOfMemory;
    log::line(expected ? log::Level::kInfo : log::Level::kWarn, "runtime",
              "program '{}': {} gets no form of its own, the open one goes on serving it: {}", name,
              shapes_text(use.shapes), status.to_string());
  }

  const FormRule rule;
  const std::string name;
  const Make make;
  const std::uint64_t made_in = fork_count();
  std::atomic<std::uint64_t> runs{0};  ///< Of all shapes.
  Mutex mutex{LockRank::kBatchForms};
  std::condition_variable changed;
  std::unordered_map<std::vector<Shape>, Use, ShapesHash> uses CORELANE_GUARDED_BY(mutex);
  std::deque<Due> due CORELANE_GUARDED_BY(mutex);
  std::size_t made CORELANE_GUARDED_BY(mutex) = 0;
  std::size_t pending CORELANE_GUARDED_BY(mutex) = 0;  ///< Due, or in the making.
  std::size_t ever_made CORELANE_GUARDED_BY(mutex) = 0;
  std::size_t without_gain CORELANE_GUARDED_BY(mutex) = 0;
  bool running CORELANE_GUARDED_BY(mutex) = false;  ///< The thread will look at `due` again.
  bool stop CORELANE_GUARDED_BY(mutex) = false;
  std::thread thread CORELANE_GUARDED_BY(mutex);
};

StaticForms::StaticForms(FormRule rule, std::string name, Make make)
    : core_(std::make_shared<Core>(rule, std::move(name), std::move(make))) {}

StaticForms::~StaticForms() {
  end_own_thread(core_, [this] {
    const MutexLock lock(core_->mutex);
    core_->stop = true;
    for (const Core::Due& each : core_->due) Core::count_anew(*each.use);
    core_->due.clear();
    core_->changed.notify_all();
    return std::move(core_->thread);
  });
}

const FormRule& StaticForms::rule() const noexcept { return core_->rule; }

std::shared_ptr<FormUse> StaticForms::use_of(const std::vector<Shape>& shapes) {
  const MutexLock lock(core_->mutex);
  return core_->find_or_add(shapes);
}

bool StaticForms::note_run(const std::shared_ptr<FormUse>& use, bool inputs_are_there) noexcept {
  Core& core = *core_;
  const std::uint64_t runs = use->runs_.fetch_add(1, std::memory_order_relaxed) + 1;
  const bool ours = core.made_in == fork_count();
  if (core.rule.open_ended && ours &&
      (core.runs.fetch_add(1, std::memory_order_relaxed) + 1) % kAgeing == 0)
    core.age();
  if (runs < use->due_at_.load(std::memory_order_relaxed) || !inputs_are_there || !ours)
    return false;
  try {
    const MutexLock lock(core.mutex);
    return core.take_due(use, false);
  } catch (const std::exception& e) {
    log::warn("runtime", "program '{}': no form for {}: {}", core.name, shapes_text(use->shapes),
              e.what());
  }
  return false;
}

void StaticForms::begin(const std::shared_ptr<FormUse>& use, TimedRun run) noexcept {
  Core& core = *core_;
  try {
    const MutexLock lock(core.mutex);
    if (core.stop) return;
    core.due.push_back({use, std::move(run)});
    core.start();
  } catch (const std::exception& e) {
    give_up(use);
    log::warn("runtime", "program '{}': no form for {}: {}", core.name, shapes_text(use->shapes),
              e.what());
  }
}

Status StaticForms::make_now(const std::vector<Shape>& shapes) {
  const std::shared_ptr<Core> kept = core_;  // Its end may come while this waits.
  Core& core = *kept;
  if (core.made_in != fork_count())
    return error(Code::kWrongState, "program '{}' was loaded before this process was forked",
                 core.name);
  MutexLock lock(core.mutex);
  if (core.thread.get_id() == std::this_thread::get_id())
    return error(Code::kWrongState, "a form is asked for in the thread that makes them");
  const std::shared_ptr<FormUse> use = core.find_or_add(shapes);
  if (core.take_due(use, true)) {
    try {
      core.due.push_back({use, {}});
      core.start();
    } catch (...) {
      core.give_up(*use);
      throw;
    }
  }
  while (use->state_ == FormUse::State::kDue) core.changed.wait(lock.native());
  if (use->state_ == FormUse::State::kMade) return {};
  if (!use->status_.ok()) return use->status_;
  return error(Code::kCancelled, "program '{}' ended before its form for {} was made", core.name,
               shapes_text(shapes));
}

std::optional<std::vector<Shape>> StaticForms::yield_to(const FormUse& use) {
  const MutexLock lock(core_->mutex);
  FormUse* const least = core_->idle_for(use);
  if (least == nullptr) return std::nullopt;
  Core::postpone(*least);
  --core_->made;
  return least->shapes;
}

bool StaticForms::full() const {
  const MutexLock lock(core_->mutex);
  // The one in the making is pending itself.
  return core_->made >= core_->rule.most;
}

bool StaticForms::stopping() const {
  const MutexLock lock(core_->mutex);
  return core_->stop || process_ending();
}

bool StaticForms::is_busy() const {
  const MutexLock lock(core_->mutex);
  return core_->pending > 0;
}

void StaticForms::reconsider() {
  const MutexLock lock(core_->mutex);
  core_->without_gain = 0;
  for (auto& [shapes, use] : core_->uses) {
    // Shapes of a program whose forms bring nothing are not asked for again, and not refused.
    const bool dropped = use->state_ == FormUse::State::kNone && use->due_at_ == FormUse::kNever;
    if (dropped || use->state_ == FormUse::State::kRefused) Core::count_anew(*use);
  }
}

void StaticForms::forget() {
  const MutexLock lock(core_->mutex);
  core_->made = 0;
  core_->ever_made = 0;
  core_->without_gain = 0;
  for (auto& [shapes, use] : core_->uses)
    if (use->state_ != FormUse::State::kDue) Core::count_anew(*use);
}

void StaticForms::give_up(const std::shared_ptr<FormUse>& use) noexcept {
  const MutexLock lock(core_->mutex);
  core_->give_up(*use);
}

void StaticForms::wait_idle() {
  if (core_->made_in != fork_count()) return;  // Its thread is the parent's.
  MutexLock lock(core_->mutex);
  if (core_->thread.get_id() == std::this_thread::get_id()) return;
  while (core_->running) core_->changed.wait(lock.native());
}

}  // namespace corelane::runtime
