#include "scheduler/stages/instance_thread.h"

#include <future>
#include <utility>

#include "base/guard.h"
#include "base/thread.h"
#include "corelane/base/log.h"

namespace corelane::scheduler {
namespace {

thread_local const void* owner = nullptr;

std::uint64_t items_of(std::span<const RequestPtr> batch) {
  std::uint64_t sum = 0;
  for (const RequestPtr& request : batch) sum += request->options.items;
  return sum;
}

}  // namespace

InstanceThread::~InstanceThread() { stop_and_join(); }

const void* InstanceThread::current_owner() noexcept { return owner; }

void InstanceThread::stop_and_join() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    changed_.notify_one();
  }
  if (!thread_.joinable()) return;
  thread_.join();
}

Status InstanceThread::make_inner(const Config& config) {
  if (inner_ != nullptr) return {};
  const auto found = config.find("backend");
  name_ = found == config.end() ? "Identity" : found->second;
  CORELANE_ASSIGN(inner_, surroundings_.names->make(name_, surroundings_));
  return {};
}

Status InstanceThread::init_inner(const Config& config, const SharedDict& shared) {
  Status made = no_throw(
      "init() of backend " + name_, [&] { return inner_->init(config, shared); },
      Code::kEngineFailed);
  if (!made.ok()) return made.wrap(fmt::format("backend '{}' could not be initialised", name_));
  range_ = {inner_->min(), inner_->max()};
  repeatable_ = inner_->repeatable();
  if (range_.min == 0 || range_.max < range_.min)
    return error(Code::kInvalidArgument,
                 "backend '{}' reports a range of {} to {} items; allowed is 1 <= min <= max; see "
                 "its settings 'min' and 'max'",
                 name_, range_.min, range_.max);
  return {};
}

Status InstanceThread::init(const Config& config, const SharedDict& shared) {
  CORELANE_TRY(make_inner(config));
  CORELANE_ASSIGN(thread_, start_thread("corelane-batch", [this] { work(); }));
  std::promise<Status> made;
  {
    const MutexLock lock(mutex_);
    task_ = [&] { made.set_value(init_inner(config, shared)); };
    changed_.notify_one();
  }
  Status status = made.get_future().get();
  if (!status.ok()) stop_and_join();
  return status;
}

Status InstanceThread::start(StageCall call) {
  const MutexLock lock(mutex_);
  if (busy_ || stop_) return error(Code::kBusy, "the instance of backend '{}' has a call", name_);
  busy_ = true;
  next_ = std::move(call);
  changed_.notify_one();
  return {};
}

Status InstanceThread::run(const StageCall& call) {
  const std::uint64_t items = items_of(call.batch);
  if (items < range_.min || items > range_.max)
    return error(Code::kOutOfRange, "backend '{}' takes {} to {} items a call; it was given {}",
                 name_, range_.min, range_.max, items);
  Status status = no_throw(
      "forward() of backend " + name_, [&] { return inner_->forward(call.batch); },
      Code::kEngineFailed);
  return status.ok() ? status : status.wrap(fmt::format("backend '{}' failed", name_));
}

/// The backend lives and dies in this thread's time: it is destroyed by whoever destroys the stage,
/// after the thread has ended.
void InstanceThread::work() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!task_ && !next_ && !stop_) changed_.wait(lock.native());
    if (task_) {
      const std::function<void()> task = std::exchange(task_, nullptr);
      lock.unlock();
      task();
      lock.lock();
      continue;
    }
    if (!next_) return;
    StageCall call = *std::exchange(next_, std::nullopt);
    lock.unlock();
    owner = call.owner;
    Status status = run(call);
    owner = nullptr;
    lock.lock();
    busy_ = false;
    lock.unlock();
    // It may start the next call here, which this thread then finds without being woken.
    run_callback("scheduler", "the end of a call", call.done, std::move(status));
    call = {};
    lock.lock();
  }
}

}  // namespace corelane::scheduler
