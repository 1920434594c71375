#include "runtime/chain/chain_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/guard.h"
#include "base/reserve.h"

namespace corelane::runtime {

device::JobRecord chain_record(const ChainExecutable& executable,
                               const std::vector<device::JobRecord>& parts) {
  device::JobRecord record;
  const ChainDevice& device = *executable.device();
  std::vector<device::JobPart> ran;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const device::JobRecord& own = parts[part];
    // A part that never began has no core; a stamp may be 0 of its clock.
    if (record.core_bits == 0) record.started = own.started;
    const auto cores = device.members()[device.member_of(part)].cores.among_all(own.core_bits);
    if (cores != 0) ran.push_back({cores, own.started, own.ended});
    record.core_bits |= cores;
    record.ended = std::max(record.ended, own.ended);
  }
  record.parts = std::make_shared<const std::vector<device::JobPart>>(std::move(ran));
  if (!parts.empty()) {
    record.queued = parts.front().queued;
    record.queue_depth = parts.front().queue_depth;
    record.priority = parts.front().priority;
    record.batch = parts.front().batch;
    record.tag = parts.front().tag;
  }
  record.bytes_in = executable.bytes_in();
  record.bytes_out = executable.bytes_out();
  return record;
}

Status part_failure(const ChainExecutable& executable, std::size_t part,
                    const Status& status) noexcept {
  if (status.ok()) return status;
  return status.wrap(text_or_none([&] {
    return fmt::format("part '{}' on device '{}'", executable.part_name(part),
                       executable.device()->device_of(part)->info().instance);
  }));
}

void ChainLine::end() noexcept {
  std::shared_ptr<device::Fence> none;
  {
    const MutexLock lock(mutex);
    if (--depth == 0) none.swap(drained);
  }
  if (none != nullptr) none->signal();
}

ChainJob::ChainJob(std::shared_ptr<ChainLine> line, std::shared_ptr<ChainBindings> bindings,
                   const device::Submission& submission)
    : line_(std::move(line)), bindings_(std::move(bindings)), finished_(line_->clock) {
  record_.id = ++line_->ledger->jobs;
  record_.queue = line_->id;
  // Callbacks of a fence run in the order in which they came: these are the first.
  for (const auto& fence : submission.signal)
    finished_.on_signal([fence](const Status& status) { fence->signal(status); });
}

void ChainJob::take(ChainBindings::Jobs parts) noexcept {
  parts_ = std::move(parts);
  // Before the callbacks, the first of which may come at once.
  pending_ = parts_.size();
  ++line_->ledger->submitted;
  line_->begin();
  for (std::size_t part = 0; part < parts_.size(); ++part)
    parts_[part]->on_done(sure_once<void(device::Completion&)>(
        [self = shared_from_this(), part](device::Completion&) { self->part_done(part); }));
}

/// In the thread that completes the part's job, with no lock held.
void ChainJob::part_done(std::size_t part) noexcept {
  if (!parts_[part]->status().ok()) cancel_parts();
  if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) finish();
}

void ChainJob::cancel_parts() noexcept {
  for (const auto& part : parts_) part->cancel();
}

Status ChainJob::outcome() const noexcept {
  Status cancelled;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const Status own = parts_[part]->status();
    if (own.ok()) continue;
    if (own.code() != Code::kCancelled) return part_failure(bindings_->executable(), part, own);
    // Kept in case no part failed in another way: then the job was cancelled as a whole.
    if (cancelled.ok()) cancelled = own;
  }
  return cancelled;
}

void ChainJob::finish() noexcept {
  status_ = outcome();
  run_callback("runtime", "the record of a chain", [&] {
    std::vector<device::JobRecord> records;
    for (const auto& part : parts_) records.push_back(part->record());
    device::JobRecord record = chain_record(bindings_->executable(), records);
    record.id = record_.id;
    record.queue = record_.queue;
    record_ = record;
  });
  record_.code = status_.code();
  ChainLedger& ledger = *line_->ledger;
  ++ledger.completed;
  if (!status_.ok()) ++ledger.failed;
  if (!released()) ++ledger.abandoned;
  if (ledger.observers->wants_records()) ledger.observers->note(record_);
  // Status and record are whole before this, and the queue's depth is less before anybody is
  // called.
  done_.store(true, std::memory_order_release);
  line_->end();
  finished_.signal(status_);
}

bool ChainJob::released() const noexcept {
  return std::ranges::all_of(parts_, [](const auto& part) { return part->released(); });
}

/// A wait without an end may run the parts in this thread.
bool ChainJob::wait(TimePoint until) {
  for (const auto& part : parts_)
    if (!part->wait(until)) return done();
  return finished_.wait(until);
}

bool ChainJob::wait_released(TimePoint until) {
  if (!wait(until)) return false;
  return std::ranges::all_of(parts_, [&](const auto& part) { return part->wait_released(until); });
}

Status ChainJob::status() const {
  if (done()) return status_;
  return error(Code::kWrongState, "the job is not done; wait for it before asking for its status");
}

device::JobRecord ChainJob::record() const { return done() ? record_ : device::JobRecord{}; }

/// Until its first part begins; the others wait for that.
bool ChainJob::cancel() {
  if (!parts_.front()->cancel()) return false;
  cancel_parts();
  return true;
}

void ChainJob::on_done(std::function<void(device::Completion&)> f) {
  finished_.on_signal(sure_once<void(const Status&)>(
      [self = shared_from_this(), call = std::move(f)](const Status&) { call(*self); }));
}

}  // namespace corelane::runtime
