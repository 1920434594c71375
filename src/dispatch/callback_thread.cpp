#include "dispatch/callback_thread.h"

#include <utility>

#include "base/guard.h"
#include "base/thread.h"
#include "corelane/base/log.h"

namespace corelane::dispatch {
namespace {

/// The callback thread that this thread is.
thread_local const CallbackThread* current = nullptr;

}  // namespace

CallbackThread::~CallbackThread() {
  if (thread_.joinable()) thread_.detach();
}

bool CallbackThread::is_current() const noexcept { return current == this; }

bool CallbackThread::any_is_current() noexcept { return current != nullptr; }

Status CallbackThread::start() {
  if (thread_.joinable()) thread_.detach();  // It has ended or is about to.
  CORELANE_ASSIGN(thread_, start_thread(name_, [keep = shared_from_this()] { keep->work(); }));
  alive_ = true;
  return {};
}

Result<std::uint64_t> CallbackThread::add(Job& job) noexcept {
  const MutexLock lock(mutex_);
  if (!alive_)
    CORELANE_TRY(no_throw("starting a thread", [this]() CORELANE_NO_THREAD_SAFETY_ANALYSIS {
      return start();  // At once, under the lock.
    }));
  jobs_.emplace_hint(jobs_.end(), ++last_, std::move(job));
  changed_.notify_one();
  return last_;
}

Status CallbackThread::post(Job& job) noexcept {
  const auto added = add(job);
  return added ? Status() : added.error();
}

std::uint64_t CallbackThread::post_or_call(Job job) noexcept {
  const auto added = add(job);
  if (added) return *added;
  log::error(log_part_, "calling back in place: {}", added.error().message());
  run_callback(log_part_, "a callback", job);
  return 0;
}

void CallbackThread::withdraw(std::uint64_t number) noexcept {
  Job job;
  {
    const MutexLock lock(mutex_);
    const auto found = jobs_.find(number);
    if (found == jobs_.end()) return;
    job = std::move(found->second);
    jobs_.erase(found);
    if (idle()) idle_.notify_all();
  }
  run_callback(log_part_, "a callback", job);
}

void CallbackThread::work() noexcept {
  current = this;
  MutexLock lock(mutex_);
  for (;;) {
    while (jobs_.empty() && !stop_) changed_.wait(lock.native());
    if (jobs_.empty()) break;
    Job job = std::move(jobs_.begin()->second);
    jobs_.erase(jobs_.begin());
    running_ = true;
    lock.unlock();
    run_callback(log_part_, "a callback", job);
    job = nullptr;  // It may hold the last handle of the object that owns this thread.
    lock.lock();
    running_ = false;
    if (jobs_.empty()) idle_.notify_all();
  }
  alive_ = false;
  idle_.notify_all();
}

bool CallbackThread::wait_idle(TimePoint until) {
  if (is_current()) return false;
  MutexLock lock(mutex_);
  while (!idle()) {
    if (any_is_current()) return false;
    if (!clock_->wait_until(lock.native(), idle_, until)) return idle();
  }
  return true;
}

void CallbackThread::stop() {
  const MutexLock lock(mutex_);
  stop_ = true;
  changed_.notify_all();
}

void CallbackThread::stop_and_join() {
  stop();
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    if (!is_current()) thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
}

}  // namespace corelane::dispatch
