#include "runtime/chain/chain_queue.h"

#include <algorithm>
#include <utility>

#include "base/guard.h"
#include "corelane/device/fence.h"

namespace corelane::runtime {
namespace {

/// Bindings that are acquired: given back with it, unless a job has them.
class AcquiredChain {
 public:
  explicit AcquiredChain(ChainBindings& bindings) : bindings_(&bindings) {}
  ~AcquiredChain() { give_back({}); }
  AcquiredChain(const AcquiredChain&) = delete;
  AcquiredChain& operator=(const AcquiredChain&) = delete;
  void give_back(ChainBindings::Jobs jobs) noexcept {
    if (bindings_ != nullptr) std::exchange(bindings_, nullptr)->give_back(std::move(jobs));
  }

 private:
  ChainBindings* bindings_;
};

/// Jobs of parts, none of which has begun; cancels those it still holds when it is destroyed.
class PartJobs {
 public:
  explicit PartJobs(std::size_t parts) : jobs_(parts) {}
  ~PartJobs() { take_back(); }
  PartJobs(const PartJobs&) = delete;
  PartJobs& operator=(const PartJobs&) = delete;
  std::shared_ptr<device::Completion>& operator[](std::size_t part) { return jobs_[part]; }
  const ChainBindings::Jobs& all() const noexcept { return jobs_; }
  ChainBindings::Jobs take() noexcept { return std::exchange(jobs_, {}); }
  void take_back() {
    for (const auto& job : jobs_)
      if (job != nullptr) job->cancel();
    for (const auto& job : jobs_)
      if (job != nullptr) job->wait_released();
    jobs_.clear();
  }

 private:
  ChainBindings::Jobs jobs_;
};

/// A run is under way in its caller's thread.
class CountedRun {
 public:
  explicit CountedRun(ChainLine& line) : line_(line) { line_.begin(); }
  ~CountedRun() { line_.end(); }
  CountedRun(const CountedRun&) = delete;
  CountedRun& operator=(const CountedRun&) = delete;

 private:
  ChainLine& line_;
};

/// How long a submission sleeps when a device had room for some of its parts, but not for all.
constexpr Duration kRoomPause = std::chrono::milliseconds(1);

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
    // The end of the other parts begins the next one, which copies its inputs.
    own.brief_callbacks = job.brief_callbacks && part + 1 == parts.size();
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

/// All parts that are on one device wait in its line at first.
Status ChainQueue::check_room(const ChainExecutable& executable) const {
  std::vector<std::size_t> waiting(queues_.size());
  for (std::size_t part = 0; part < executable.parts().size(); ++part)
    ++waiting[device_->member_of(part)];
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const device::DeviceInfo& info = device_->members()[i].device->info();
    if (info.depth_limit != 0 && waiting[i] > info.depth_limit)
      return error(Code::kUnsupported,
                   "{} parts run on device '{}', in whose line {} jobs may wait; open it with "
                   "depth={} or more, or without depth",
                   waiting[i], info.instance, info.depth_limit, waiting[i]);
  }
  return {};
}

/// The first part waits for the fence that this gives, each other one for the one before it. All
/// are new: where a part was taken back, its fence is signalled.
std::shared_ptr<device::Fence> ChainQueue::link(
    std::vector<device::Submission>& parts,
    const std::vector<std::shared_ptr<device::Fence>>& wait) const {
  std::shared_ptr<device::Fence> first;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    auto fence = std::make_shared<device::Fence>(line_->clock);
    if (part == 0) {
      first = fence;
      parts[part].wait = wait;
    } else {
      parts[part].wait.clear();
      parts[part - 1].signal = {fence};
    }
    parts[part].wait.push_back(std::move(fence));
  }
  return first;
}

/// All or none, and none waits for room while another holds a place: the part whose device is full
/// is submitted first at the next try, as std::lock() takes mutexes. On success `jobs` wait for the
/// fence.
Result<std::shared_ptr<device::Fence>> ChainQueue::submit_parts(
    const device::Submission& job, std::vector<device::Submission>& parts,
    ChainBindings::Jobs& jobs) const {
  const TimePoint until = std::min(job.room_until, job.deadline);
  std::size_t first = 0;
  for (;;) {
    PartJobs placed(parts.size());
    auto begin = link(parts, job.wait);
    Status refused;
    std::size_t full = first;
    for (std::size_t i = 0; i < parts.size() && refused.ok(); ++i) {
      const std::size_t part = (first + i) % parts.size();
      parts[part].room_until = i == 0 ? job.room_until : TimePoint{};
      auto submitted = queue_of(part).submit(parts[part]);
      if (submitted) {
        placed[part] = *std::move(submitted);
        continue;
      }
      refused = submitted.error();
      full = part;
    }
    if (refused.ok()) {
      jobs = placed.take();
      return begin;
    }
    // It has waited for room already, or there is nothing to wait for.
    const bool again =
        refused.code() == Code::kBusy && full != first && line_->clock->now() < until;
    if (!again) return error(std::move(refused));
    // Room for one would be found at once, again and again.
    const bool shared = std::ranges::any_of(placed.all(), [&](const auto& other) {
      return other != nullptr &&
             device_->member_of(static_cast<std::size_t>(&other - placed.all().data())) ==
                 device_->member_of(full);
    });
    first = full;
    placed.take_back();
    if (shared) begin->wait(std::min(until, line_->clock->now() + kRoomPause));
  }
}

Result<std::shared_ptr<device::Completion>> ChainQueue::submit(const device::Submission& job) {
  CORELANE_ASSIGN(const auto bindings, bindings_of(job));
  CORELANE_ASSIGN(std::vector<device::Submission> parts, parts_of(job, *bindings));
  CORELANE_TRY(check_room(bindings->executable()));
  CORELANE_TRY(bindings->acquire());
  AcquiredChain acquired(*bindings);
  auto made = std::make_shared<ChainJob>(line_, bindings, job);
  ChainBindings::Jobs jobs;
  ChainBindings::Jobs kept(parts.size());
  CORELANE_ASSIGN(const auto begin, submit_parts(job, parts, jobs));
  // Nothing fails from here on.
  std::ranges::copy(jobs, kept.begin());
  acquired.give_back(std::move(kept));
  made->take(std::move(jobs));
  begin->signal();
  return made;
}

/// In the calling thread, part after part.
Status ChainQueue::run_parts(std::vector<device::Submission>& parts,
                             const ChainExecutable& executable, device::JobRecord& record) const {
  std::vector<device::JobRecord> records(parts.size());
  Status status;
  for (std::size_t part = 0; part < parts.size() && status.ok(); ++part)
    status = part_failure(executable, part, queue_of(part).run(parts[part], &records[part]));
  run_callback("runtime", "the record of a chain",
               [&] { record = chain_record(executable, records); });
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
  AcquiredChain acquired(*bindings);
  const CountedRun counted(*line_);
  ChainLedger& ledger = *line_->ledger;
  device::JobRecord made;
  Status status = run_parts(parts, bindings->executable(), made);
  made.id = ++ledger.jobs;
  made.queue = line_->id;
  made.code = status.code();
  ++ledger.submitted;
  ++ledger.completed;
  if (!status.ok()) ++ledger.failed;
  if (ledger.observers->wants_records()) ledger.observers->note(made);
  if (record != nullptr) *record = made;
  // A callback of a fence may submit these bindings again.
  acquired.give_back({});
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
