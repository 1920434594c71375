#include <algorithm>
#include <deque>
#include <utility>

#include "adapters/qaic/profiling/qaic_profiling.h"
#include "base/guard.h"
#include "corelane/base/log.h"

namespace corelane::qaic {

struct StreamProfilingObject::State final : ProfileSink,
                                            ProgramWatcher,
                                            std::enable_shared_from_this<State> {
  State(StreamOptions of, ProfileTarget target)
      : options(std::move(of)),
        delivery(std::move(target)),
        collector(options.one_in, options.period) {}

  void take(const std::shared_ptr<const ProfiledProgram>& program,
            const SetRecord& record) noexcept override {
    run_callback("qaic", "a profiling record", [&] {
      const MutexLock lock(mutex);
      collector.add({program, record});
    });
  }
  void joined(const std::shared_ptr<ProfileTap>& tap) noexcept override {
    if (!options.names || !options.names->matches(tap->program()->name)) return;
    if (const Status added = add(tap); !added.ok())
      log::warn("qaic", "program '{}' is not profiled: {}", tap->program()->name,
                added.to_string());
  }
  void left(const std::shared_ptr<ProfileTap>& tap) noexcept override {
    static_cast<void>(remove(tap));
  }

  Status fits(const ProfiledProgram& program) CORELANE_REQUIRES(control) {
    if (taps.empty()) return {};
    const ProfiledProgram& first = *taps.front()->program();
    if (first.clock != program.clock)
      return error(Code::kInvalidArgument,
                   "the devices of programs '{}' and '{}' have different clocks; make a handle for "
                   "each",
                   first.name, program.name);
    if (delivery.type() == QAIC_PROFILING_TYPE_TRACE &&
        first.device.instance != program.device.instance)
      return error(Code::kInvalidArgument,
                   "programs '{}' and '{}' are on different devices, and a trace shows one; make a "
                   "handle for each",
                   first.name, program.name);
    return {};
  }
  Status add(const std::shared_ptr<ProfileTap>& tap) {
    const MutexLock order(control);
    if (closed || std::ranges::find(taps, tap) != taps.end()) return {};
    CORELANE_TRY(fits(*tap->program()));
    if (active()) {
      take_clock(*tap);
      // What may fail comes first: the program is listed once its records come.
      CORELANE_ASSIGN(auto made, tap->subscribe(shared_from_this()));
      const MutexLock lock(mutex);
      subscriptions.push_back(std::move(made));
    }
    taps.push_back(tap);
    const MutexLock lock(mutex);
    programs.push_back(tap->program());
    return {};
  }
  Status remove(const std::shared_ptr<ProfileTap>& tap) {
    const MutexLock order(control);
    const auto found = std::ranges::find(taps, tap);
    if (found == taps.end())
      return error(Code::kNotFound, "program '{}' is not profiled by this handle; add it first",
                   tap->program()->name);
    taps.erase(found);
    ProfileSubscriptions gone;
    {
      const MutexLock lock(mutex);
      std::erase(programs, tap->program());
      const auto rest =
          std::ranges::partition(subscriptions, [&](const auto& one) { return one->tap() != tap; });
      std::ranges::move(rest, std::back_inserter(gone));
      subscriptions.erase(rest.begin(), rest.end());
    }
    // Without `mutex`, which take() wants. What completed before is still collected.
    for (const auto& one : gone) one->flush();
    const MutexLock lock(mutex);
    lost += take_dropped(gone);
    return {};
  }

  bool active() {
    const MutexLock lock(mutex);
    return collector.active();
  }
  /// The stream began without a program, by the real clock: from here on by this one.
  void take_clock(const ProfileTap& tap) {
    const MutexLock lock(mutex);
    if (clock == tap.program()->clock) return;
    clock->cancel(timer);
    clock = tap.program()->clock;
    set_timer(collector.start(clock->now()));
  }
  void set_timer(TimePoint when) CORELANE_REQUIRES(mutex) {
    const std::uint64_t of = ++timers;
    timer = clock->call_at(when, [weak = weak_from_this(), of] {
      if (const auto self = weak.lock()) self->tick(of);
    });
  }
  void tick(std::uint64_t of) noexcept {
    bool posted = false;
    dispatch::CallbackThread::Job job = delivery_job();
    {
      const MutexLock lock(mutex);
      // Stopped, or replaced by another timer, after this one had begun.
      if (!collector.active() || of != timers) return;
      set_timer(collector.tick(clock->now()));
      posted = delivery.try_post(job).ok();
    }
    // There is no thread for it: the job runs here, and takes the lock itself.
    if (!posted) delivery.post(std::move(job));
  }
  /// One job for each report: it delivers the oldest.
  dispatch::CallbackThread::Job delivery_job() {
    return [self = shared_from_this()] { self->deliver_next(); };
  }
  /// Records that their threads have not handed on yet are waited for.
  void deliver_next() {
    ProfileSubscriptions there;
    {
      const MutexLock lock(mutex);
      there = subscriptions;
    }
    for (const auto& one : there) one->flush();
    std::optional<ProfileReport> report;
    {
      const MutexLock lock(mutex);
      lost += take_dropped(there);
      cut_due();
      if (ready.empty()) return;
      report = std::move(ready.front());
      ready.pop_front();
    }
    delivery.deliver(*report);
  }
  void cut_due() CORELANE_REQUIRES(mutex) {
    while (auto report = collector.cut()) put(*std::move(report));
  }
  void put(ProfileReport report) CORELANE_REQUIRES(mutex) {
    report.handle = options.name;
    report.dropped += std::exchange(lost, 0);
    report.programs = programs;
    // Also those that have left meanwhile.
    for (const ProfileSample& sample : report.samples)
      if (std::ranges::find(report.programs, sample.program) == report.programs.end())
        report.programs.push_back(sample.program);
    ready.push_back(std::move(report));
  }

  Status start() {
    const MutexLock order(control);
    if (closed) return error(Code::kWrongState, "the profiling handle was released");
    if (active()) return error(Code::kBusy, "the profiling handle is started; stop it first");
    {
      const MutexLock lock(mutex);
      lost = 0;
      clock = taps.empty() ? real_clock() : taps.front()->program()->clock;
      set_timer(collector.start(clock->now()));
    }
    auto made = subscribe_all(taps, shared_from_this());
    const MutexLock lock(mutex);
    if (!made) {
      static_cast<void>(collector.stop(clock->now()));
      clock->cancel(timer);
      return made.error();
    }
    subscriptions.swap(*made);
    return {};
  }
  void stop(bool deliver) {
    const MutexLock order(control);
    ProfileSubscriptions ended;
    {
      const MutexLock lock(mutex);
      if (!collector.active()) return;
      // A copy: until all are flushed their records still count.
      ended = subscriptions;
    }
    for (const auto& one : ended) one->flush();
    bool posted = true;
    dispatch::CallbackThread::Job job = delivery_job();
    ProfileSubscriptions gone;
    {
      const MutexLock lock(mutex);
      clock->cancel(timer);
      ++timers;
      lost += take_dropped(ended);
      cut_due();
      ProfileReport last = collector.stop(clock->now());
      if (deliver) {
        put(std::move(last));
        posted = delivery.try_post(job).ok();
      }
      gone.swap(subscriptions);
    }
    if (!posted) delivery.post(std::move(job));
  }
  void close() {
    stop(false);
    {
      const MutexLock order(control);
      // Whoever makes programs goes on to call joined() until this object is gone: it adds nothing
      // now.
      closed = true;
      taps.clear();
    }
    delivery.close();
  }

  const StreamOptions options;
  ProfileDelivery delivery;
  /// Orders start, stop, and the programs that come and go.
  Mutex control{LockRank::kDoorContext};
  ProfileTaps taps CORELANE_GUARDED_BY(control);
  bool closed CORELANE_GUARDED_BY(control) = false;
  Mutex mutex{LockRank::kDoorWait};
  edge::StreamCollector collector CORELANE_GUARDED_BY(mutex);
  std::shared_ptr<Clock> clock CORELANE_GUARDED_BY(mutex);
  Clock::TimerId timer CORELANE_GUARDED_BY(mutex) = 0;
  std::uint64_t timers CORELANE_GUARDED_BY(mutex) = 0;  ///< The one that counts.
  ProfileSubscriptions subscriptions CORELANE_GUARDED_BY(mutex);
  ProfiledPrograms programs CORELANE_GUARDED_BY(mutex);  ///< Of `taps`.
  std::deque<ProfileReport> ready CORELANE_GUARDED_BY(mutex);
  std::uint64_t lost CORELANE_GUARDED_BY(mutex) = 0;  ///< Records that no report counts yet.
};

Result<std::shared_ptr<StreamProfilingObject>> StreamProfilingObject::create(StreamOptions options,
                                                                             ProfileTarget target) {
  if (target.callback == nullptr)
    return error(Code::kInvalidArgument, "a stream profiling handle without a callback; give one");
  auto state = std::make_shared<State>(std::move(options), std::move(target));
  std::shared_ptr<StreamProfilingObject> made(new StreamProfilingObject(state));
  // Without an expression too: a program that was added leaves when it is released.
  profiled::watch(state);
  return made;
}

StreamProfilingObject::StreamProfilingObject(std::shared_ptr<State> state)
    : Object(kKind), state_(std::move(state)) {}

StreamProfilingObject::~StreamProfilingObject() { close(); }

Status StreamProfilingObject::start() { return state_->start(); }

void StreamProfilingObject::stop() { state_->stop(true); }

Status StreamProfilingObject::add(const std::shared_ptr<ProfileTap>& program) {
  return state_->add(program);
}

Status StreamProfilingObject::remove(const std::shared_ptr<ProfileTap>& program) {
  return state_->remove(program);
}

Status StreamProfilingObject::flush() {
  if (state_->delivery.wait()) return {};
  return error(Code::kWrongState,
               "reports are flushed in a callback, which would wait for itself; do so in another "
               "thread");
}

void StreamProfilingObject::close() { state_->close(); }

}  // namespace corelane::qaic
