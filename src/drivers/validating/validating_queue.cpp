#include "drivers/validating/validating_queue.h"

#include "device/fence_list.h"

namespace corelane::device {

Status ValidatingQueue::check(const Submission& job) const {
  if (job.executable == nullptr || job.bindings == nullptr)
    return error(Code::kInvalidArgument, "a submission needs {}; set it before submitting",
                 job.executable == nullptr ? "an executable" : "bindings");
  CORELANE_TRY(job.cores.check(cores_));
  if (job.priority < -128 || job.priority > 127)
    return error(Code::kInvalidArgument, "priority {} is not from -128 to 127", job.priority);
  if (job.batch == 0)
    return error(Code::kInvalidArgument, "a job of 0 samples; batch is 1 or more");
  CORELANE_TRY(check_fences(job.wait, "wait"));
  return check_fences(job.signal, "signal");
}

Result<std::shared_ptr<Completion>> ValidatingQueue::submit(const Submission& job) {
  CORELANE_TRY(check(job));
  return inner_->submit(job);
}

Status ValidatingQueue::run(const Submission& job, JobRecord* record) {
  CORELANE_TRY(check(job));
  return inner_->run(job, record);
}

}  // namespace corelane::device
