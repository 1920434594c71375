#include "runtime/chain/chain_queue.h"

#include <algorithm>
#include <utility>

#include "corelane/device/fence.h"

namespace corelane::runtime {
namespace {

/// Bindings that are acquired: given back with it, unless a job has them.
class AcquiredChain {
 public:
  explicit AcquiredChain(ChainBindings& bindings) : bindings_(&bindings) {}
  ~AcquiredChain() {
    if (bindings_ != nullptr) bindings_->give_back();
  }
  AcquiredChain(const AcquiredChain&) = delete;
  AcquiredChain& operator=(const AcquiredChain&) = delete;
  void pass_on(const ChainBindings::Jobs& jobs) {
    std::exchange(bindings_, nullptr)->give_back(jobs);
  }

 private:
  ChainBindings* bindings_;
};

/// Jobs of parts that must not begin: ends those that are there.
void take_back(ChainBindings::Jobs& jobs) {
  for (const auto& job : jobs)
    if (job != nullptr) job->cancel();
  for (const auto& job : jobs)
    if (job != nullptr) job->wait_released();
  std::ranges::fill(jobs, nullptr);
}

}  // namespace

ChainQueue::ChainQueue(std::shared_ptr<ChainDevice> device,
                       std::vector<std::shared_ptr<device::Queue>> queues,
                       const device::QueueOptions& options, std::uint64_t id)
    : device_(std::move(device)), queues_(std::move(queues)), line_(std::make_shared<ChainLine>()) {
  line_->id = id;
  line_->name = options.name;
  line_->clock = device_->clock();
  line_->ledger = device_->ledger();
}

Result<std::shared_ptr<ChainBindings>> ChainQueue::bindings_of(
    const device::Submission& job) const {
  const auto executable = std::dynamic_pointer_cast<ChainExecutable>(job.executable);
  if (executable == nullptr || executable->device() != device_)
    return error(Code::kInvalidArgument,
                 "the executable was not prepared by device '{}'; prepare it on the device that "
                 "runs it",
                 device_->info().instance);
  auto bindings = std::dynamic_pointer_cast<ChainBindings>(job.bindings);
  if (bindings == nullptr || &bindings->executable() != executable.get())
    return error(Code::kInvalidArgument,
                 "the bindings were not made by the executable of this submission; use its "
                 "new_bindings()");
  for (const auto* fences : {&job.wait, &job.signal})
    if (std::ranges::find(*fences, nullptr) != fences->end())
      return error(Code::kInvalidArgument, "a fence of the submission is null");
  CORELANE_TRY(job.cores.check(device_->info().cores.size()));
  return bindings;
}

Result<std::vector<device::Submission>> ChainQueue::parts_of(const device::Submission& job,
                                                             const ChainBindings& bindings) const {
  std::vector<device::Submission> parts(bindings.parts().size(), job);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    device::Submission& own = parts[part];
    own.executable = bindings.executable().parts()[part];
    own.bindings = bindings.parts()[part];
    own.signal.clear();
    if (part > 0) own.wait.clear();
    const ChainObservers::Source& member = device_->members()[device_->member_of(part)];
    own.cores = cores_on(member.cores, job.cores);
    if (own.cores.empty())
      return error(Code::kInvalidArgument,
                   "core set '{}' of '{}' has no core of '{}', which runs part '{}'",
                   job.cores.to_string(), device_->info().instance, member.device->info().instance,
                   bindings.executable().part_name(part));
  }
  return parts;
}

/// All or none, and none waits for room while another holds a place: the part whose device is full
/// is submitted first at the next try, as std::lock() takes mutexes.
Result<ChainBindings::Jobs> ChainQueue::submit_parts(std::vector<device::Submission>& parts,
                                                     TimePoint room_until) const {
  ChainBindings::Jobs jobs(parts.size());
  std::size_t first = 0;
  for (;;) {
    Status refused;
    std::size_t full = first;
    for (std::size_t i = 0; i < parts.size() && refused.ok(); ++i) {
      const std::size_t part = (first + i) % parts.size();
      parts[part].room_until = i == 0 ? room_until : TimePoint{};
      auto job = queue_of(part).submit(parts[part]);
      if (job) {
        jobs[part] = std::move(*job);
        continue;
      }
      refused = job.error();
      full = part;
    }
    if (refused.ok()) return jobs;
    take_back(jobs);
    // It has waited for room already, or there is nothing to wait for.
    const bool again = refused.code() == Code::kBusy && full != first &&
                       line_->clock->now() < std::min(room_until, parts.front().deadline);
    if (!again) return error(std::move(refused));
    first = full;
  }
}

Result<std::shared_ptr<device::Completion>> ChainQueue::submit(const device::Submission& job) {
  CORELANE_ASSIGN(const auto bindings, bindings_of(job));
  CORELANE_ASSIGN(std::vector<device::Submission> parts, parts_of(job, *bindings));
  CORELANE_TRY(bindings->acquire());
  AcquiredChain acquired(*bindings);
  auto made = std::make_shared<ChainJob>(line_, bindings, job);
  // The first part waits for all to be submitted, each other one for the one before it.
  std::vector<std::shared_ptr<device::Fence>> after;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    after.push_back(std::make_shared<device::Fence>(line_->clock));
    parts[part].wait.push_back(after.back());
    if (part > 0) parts[part - 1].signal.push_back(after.back());
  }
  CORELANE_ASSIGN(ChainBindings::Jobs jobs, submit_parts(parts, job.room_until));
  acquired.pass_on(jobs);
  made->take(std::move(jobs));
  after.front()->signal();
  return made;
}

/// In the calling thread, part after part.
Status ChainQueue::run_parts(std::vector<device::Submission>& parts,
                             const ChainExecutable& executable, device::JobRecord& record) const {
  std::vector<device::JobRecord> records(parts.size());
  Status status;
  for (std::size_t part = 0; part < parts.size() && status.ok(); ++part)
    status = part_failure(executable, part, queue_of(part).run(parts[part], &records[part]));
  record = chain_record(executable, records);
  return status;
}

Status ChainQueue::run(const device::Submission& job, device::JobRecord* record) {
  // Only what is submitted ends at a deadline while the engine has it, and later parts keep their
  // places.
  if (job.deadline != kNever) {
    CORELANE_ASSIGN(const auto completion, submit(job));
    completion->wait();
    if (record != nullptr) *record = completion->record();
    return completion->status();
  }
  CORELANE_ASSIGN(const auto bindings, bindings_of(job));
  CORELANE_ASSIGN(std::vector<device::Submission> parts, parts_of(job, *bindings));
  CORELANE_TRY(bindings->acquire());
  const AcquiredChain acquired(*bindings);
  ChainLedger& ledger = *line_->ledger;
  device::JobRecord made;
  const Status status = run_parts(parts, bindings->executable(), made);
  made.id = ++ledger.jobs;
  made.queue = line_->id;
  made.code = status.code();
  ++ledger.submitted;
  ++ledger.completed;
  if (!status.ok()) ++ledger.failed;
  if (ledger.observers->wants_records()) ledger.observers->note(made);
  if (record != nullptr) *record = made;
  for (const auto& fence : job.signal) fence->signal(status);
  return status;
}

std::size_t ChainQueue::depth() const {
  const MutexLock lock(line_->mutex);
  return line_->depth;
}

bool ChainQueue::drain(TimePoint until) {
  std::shared_ptr<device::Fence> drained;
  {
    const MutexLock lock(line_->mutex);
    if (line_->depth == 0) return true;
    if (line_->drained == nullptr) line_->drained = std::make_shared<device::Fence>(line_->clock);
    drained = line_->drained;
  }
  return drained->wait(until);
}

}  // namespace corelane::runtime
