#include "scheduler/stages/instance_thread.h"

#include <future>
#include <utility>

#include "base/guard.h"
#include "base/thread.h"
#include "scheduler/stages/release_scope.h"
#include "scheduler/stages/stage_maker.h"

namespace corelane::scheduler {
namespace {

thread_local const void* owner = nullptr;

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

Result<InnerBackend> InstanceThread::make_inner(const Config& config) {
  if (adopted_ != nullptr) return InnerBackend::adopt(name_, config, std::move(adopted_));
  auto found = config.find("InstanceThread::backend");
  if (found == config.end()) found = config.find("backend");
  CORELANE_ASSIGN(const BackendText text,
                  parse_backend(found == config.end() ? "Identity" : found->second));
  return InnerBackend::make(text, config, surroundings_);
}

Status InstanceThread::init(const Config& config, const SharedDict& shared) {
  if (inner_) return initialised_before("InstanceThread");
  CORELANE_ASSIGN(InnerBackend made, make_inner(config));
  inner_.emplace(std::move(made));
  // The thread comes first: a backend is promised init() and forward() in the same one.
  CORELANE_ASSIGN(thread_, start_thread("corelane-batch", [this] { work(); }));
  std::promise<Status> ended;
  {
    const MutexLock lock(mutex_);
    task_ = [&] {
      ended.set_value(no_throw("init() of an instance", [&] { return inner_->init(shared); }));
    };
    changed_.notify_one();
  }
  Status status = ended.get_future().get();
  if (!status.ok()) stop_and_join();
  return status;
}

Status InstanceThread::start(StageCall call) {
  if (!inner_) return error(Code::kWrongState, "'InstanceThread' was called before init()");
  const MutexLock lock(mutex_);
  if (busy_ || stop_)
    return error(Code::kBusy, "the instance of backend '{}' has a call", inner_->name());
  busy_ = true;
  next_ = std::move(call);
  changed_.notify_one();
  return {};
}

/// It may start the next call here, which this thread then finds without being woken.
void InstanceThread::end(StageCall& call, Status status) noexcept {
  const ReleaseScope releasing;
  run_callback("scheduler", "the end of a call", call.done, std::move(status));
  call = {};
}

/// The backend outlives this thread: the thread that destroys the stage joins this one first.
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
    // A call that was accepted runs even after `stop_`, so that done() is called once for each.
    if (!next_) return;
    StageCall call = *std::exchange(next_, std::nullopt);
    lock.unlock();
    owner = call.owner;
    Status status = inner_->forward(call.batch);
    owner = nullptr;
    lock.lock();
    // Idle before done() is called, which may start the next call here.
    busy_ = false;
    lock.unlock();
    end(call, std::move(status));
    lock.lock();
  }
}

}  // namespace corelane::scheduler
