#include "lanes/laned_queue.h"

#include <typeinfo>
#include <utility>

#include "lanes/lane_scheduler.h"
#include "lanes/laned_device.h"
#include "lanes/laned_executable.h"

namespace corelane::lanes {
namespace {

Status foreign_executable(const device::DeviceInfo& device) {
  return error(Code::kInvalidArgument,
               "the executable was not prepared by device '{}'; prepare it on the device that runs "
               "it",
               device.instance);
}

Status foreign_bindings() {
  return error(Code::kInvalidArgument,
               "the bindings were not made by the executable of this submission; use its "
               "new_bindings()");
}

Status no_joined_cores(const device::DeviceInfo& device, const device::CoreSet& asked) {
  return error(Code::kUnsupported,
               "device '{}' runs jobs on single cores only, not on '{}'; ask for one core",
               device.instance, asked.to_string());
}

}  // namespace

/// What only the device can know. The members themselves are checked by the validating wrapper; a
/// submission without one must not lead outside the device's own objects either.
inline Status LanedQueue::check(const device::Submission& job) const {
  // The exact types: drivers and wrappers bring executables of their own.
  const device::Executable* executable = job.executable.get();
  const device::Bindings* bindings = job.bindings.get();
  const device::DeviceInfo& info = device_->info();
  if (executable == nullptr || typeid(*executable) != typeid(LanedExecutable) ||
      static_cast<const LanedExecutable*>(executable)->device() != device_.get())
    return foreign_executable(info);
  if (bindings == nullptr || typeid(*bindings) != typeid(LanedBindings) ||
      &static_cast<const LanedBindings*>(bindings)->executable() != executable)
    return foreign_bindings();
  CORELANE_TRY(job.cores.check(info.cores.size()));
  if (job.cores.count() > 1 && !info.capabilities.multi_core_jobs)
    return no_joined_cores(info, job.cores);
  return {};
}

Result<std::shared_ptr<LanedJob>> LanedQueue::enqueue(const device::Submission& submission,
                                                      Acquired bindings, bool caller_waits) {
  // Only a job with a deadline can be abandoned while the engine still has its memory.
  const bool shadow = submission.deadline != kNever && !submission.direct_user_memory;
  bool shadowed = false;
  if (shadow) {
    CORELANE_ASSIGN(shadowed, bindings->make_shadows());
    // With fences to wait for, the inputs are not there yet: they are copied after the last one.
    if (submission.wait.empty()) bindings->copy_in();
  }
  // The bindings are acquired: no other job reads it.
  bindings->take_terms(submission);
  auto job = std::make_shared<LanedJob>(
      device_->scheduler(), account_, std::static_pointer_cast<LanedBindings>(submission.bindings),
      submission);
  job->shadow = shadowed;
  CORELANE_TRY(device_->scheduler().submit(job, caller_waits));
  bindings.taken_over();
  return job;
}

Result<Acquired> LanedQueue::acquire(const device::Submission& job) const {
  CORELANE_TRY(device_->check_process());
  CORELANE_TRY(check(job));
  device_->publish_figures();
  auto& bindings = static_cast<LanedBindings&>(*job.bindings);
  if (!bindings.acquire())
    return error(Code::kBusy,
                 "the bindings are in use by another job; wait until it is released, or use "
                 "separate bindings for each job in flight");
  Acquired acquired(bindings);
  CORELANE_TRY(acquired->complete_tensors());
  return acquired;
}

std::size_t LanedQueue::depth() const { return device_->scheduler().depth(*account_); }

bool LanedQueue::drain(TimePoint until) { return device_->scheduler().drain(*account_, until); }

}  // namespace corelane::lanes
