#include "drivers/validating/validating_queue.h"

#include "device/fence_list.h"

namespace corelane::drivers::validating {

Status ValidatingQueue::check(const device::Submission& job) const {
  if (job.executable == nullptr || job.bindings == nullptr)
    return error(Code::kInvalidArgument, "a submission needs {}; set it before submitting",
                 job.executable == nullptr ? "an executable" : "bindings");
  CORELANE_TRY(job.cores.check(cores_));
  if (job.priority < -128 || job.priority > 127)
    return error(Code::kInvalidArgument, "priority {} is not from -128 to 127", job.priority);
  if (job.batch == 0)
    return error(Code::kInvalidArgument, "a job of 0 samples; batch is 1 or more");
  CORELANE_TRY(device::check_fences(job.wait, "wait"));
  return device::check_fences(job.signal, "signal");
}

Result<std::shared_ptr<device::Completion>> ValidatingQueue::submit(const device::Submission& job) {
  CORELANE_TRY(check(job));
  return inner().submit(job);
}

Status ValidatingQueue::run(const device::Submission& job, device::JobRecord* record) {
  CORELANE_TRY(check(job));
  return inner().run(job, record);
}

}  // namespace corelane::drivers::validating
