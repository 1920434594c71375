#include <algorithm>
#include <utility>

#include "adapters/qaic/profiling/qaic_profiling.h"
#include "base/guard.h"

namespace corelane::qaic {

struct ProfilingObject::State final : ProfileSink, std::enable_shared_from_this<State> {
  State(ProfileTaps of, std::uint32_t samples, ProfileTarget target)
      : taps(std::move(of)), delivery(std::move(target)), collector(samples) {
    for (const auto& tap : taps) programs.push_back(tap->program());
  }

  void take(const std::shared_ptr<const ProfiledProgram>& program,
            const SetRecord& record) noexcept override {
    run_callback("qaic", "a profiling record", [&] {
      dispatch::CallbackThread::Job job;
      {
        const MutexLock lock(mutex);
        auto all = collector.add({program, record});
        if (!all) return;
        job = delivery_of(*std::move(all), take_dropped(subscriptions), run);
        if (delivery.try_post(job).ok()) return;
      }
      // There is no thread for it: the job runs here, and takes the lock itself.
      delivery.post(std::move(job));
    });
  }

  /// The subscriptions of the run end with its report: from then on inferences cost nothing.
  dispatch::CallbackThread::Job delivery_of(std::vector<ProfileSample> samples,
                                            std::uint64_t dropped, std::uint64_t of) {
    auto report = std::make_shared<ProfileReport>();
    report->programs = programs;
    report->samples = std::move(samples);
    report->dropped = dropped;
    return [self = shared_from_this(), report = std::move(report), of] {
      self->end(of);
      self->delivery.deliver(*report);
    };
  }
  void end(std::uint64_t of) {
    const MutexLock order(control);
    // Destroyed after `lock`: the end of an observation waits for take(), which wants it.
    ProfileSubscriptions gone;
    const MutexLock lock(mutex);
    // The report of a run may be late: the subscriptions may be those of the next run by now.
    if (of == run && !collector.active()) gone.swap(subscriptions);
  }

  Status start() {
    const MutexLock order(control);
    ProfileSubscriptions before;
    {
      const MutexLock lock(mutex);
      if (collector.active())
        return error(Code::kBusy, "the profiling handle is started; stop it first");
      before.swap(subscriptions);
    }
    before.clear();
    {
      const MutexLock lock(mutex);
      ++run;
      // Before the subscriptions, so that a record that comes at once is of this run.
      collector.start();
    }
    auto made = subscribe_all(taps, shared_from_this());
    const MutexLock lock(mutex);
    if (!made) {
      static_cast<void>(collector.stop());
      return made.error();
    }
    subscriptions.swap(*made);
    return {};
  }

  void stop(bool deliver) {
    dispatch::CallbackThread::Job job;
    {
      const MutexLock order(control);
      ProfileSubscriptions ended;
      {
        const MutexLock lock(mutex);
        ended.swap(subscriptions);
      }
      if (deliver)
        // Without `mutex`: it waits for records on their way to take().
        for (const auto& one : ended) one->flush();
      const MutexLock lock(mutex);
      auto all = collector.stop();
      if (all && deliver) job = delivery_of(*std::move(all), take_dropped(ended), run);
    }
    if (job) delivery.post(std::move(job));
  }

  const ProfileTaps taps;
  ProfiledPrograms programs;
  ProfileDelivery delivery;
  Mutex control{LockRank::kDoorContext};  ///< Orders start, stop and the end of a run.
  Mutex mutex{LockRank::kDoorWait};
  edge::CountCollector collector CORELANE_GUARDED_BY(mutex);
  std::uint64_t run CORELANE_GUARDED_BY(mutex) = 0;
  ProfileSubscriptions subscriptions CORELANE_GUARDED_BY(mutex);
};

Result<std::shared_ptr<ProfilingObject>> ProfilingObject::create(const ProfileTaps& programs,
                                                                 std::uint32_t samples,
                                                                 ProfileTarget target) {
  if (programs.empty())
    return error(Code::kInvalidArgument, "a profiling handle of no program; give at least one");
  if (samples == 0 || samples > kMostSamples)
    return error(Code::kInvalidArgument, "a profiling handle of {} samples; 1 to {} are allowed",
                 samples, kMostSamples);
  if (target.callback == nullptr && target.folder.empty())
    return error(Code::kInvalidArgument,
                 "a profiling handle without a callback; give one, or an output directory");
  const auto& first = programs.front()->program();
  for (std::size_t i = 1; i < programs.size(); ++i) {
    if (std::find(programs.begin(), programs.begin() + static_cast<std::ptrdiff_t>(i),
                  programs[i]) != programs.begin() + static_cast<std::ptrdiff_t>(i))
      return error(Code::kInvalidArgument, "program {} is twice in the list; give each once",
                   programs[i]->program()->number);
    const auto& other = programs[i]->program();
    if (target.type == QAIC_PROFILING_TYPE_TRACE &&
        other->device.instance != first->device.instance)
      return error(Code::kInvalidArgument,
                   "a trace of programs on '{}' and '{}'; it shows one device, make a handle for "
                   "each",
                   first->device.instance, other->device.instance);
  }
  return std::shared_ptr<ProfilingObject>(
      new ProfilingObject(std::make_shared<State>(programs, samples, std::move(target))));
}

ProfilingObject::ProfilingObject(std::shared_ptr<State> state)
    : Object(kKind), state_(std::move(state)) {}

ProfilingObject::~ProfilingObject() { close(); }

Status ProfilingObject::start() { return state_->start(); }

void ProfilingObject::stop() {
  state_->stop(true);
  static_cast<void>(state_->delivery.wait());
}

void ProfilingObject::close() {
  state_->stop(false);
  state_->delivery.close();
}

}  // namespace corelane::qaic
