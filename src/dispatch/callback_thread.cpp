#include "dispatch/callback_thread.h"

#include <pthread.h>

#include <csignal>
#include <exception>
#include <system_error>
#include <utility>

#include "corelane/base/log.h"

namespace corelane::session {
namespace {

/// The callback thread that this thread is.
thread_local const CallbackThread* current = nullptr;

}  // namespace

void call_guarded(const std::function<void()>& f) noexcept {
  try {
    f();
  } catch (const std::exception& e) {
    log::error("session", "a callback threw: {}", e.what());
  } catch (...) {
    log::error("session", "a callback threw something that is no exception");
  }
}

CallbackThread::~CallbackThread() {
  if (thread_.joinable()) thread_.detach();
}

bool CallbackThread::is_current() const noexcept { return current == this; }

bool CallbackThread::any_is_current() noexcept { return current != nullptr; }

void CallbackThread::start_locked() {
  if (thread_.joinable()) thread_.detach();  // It has ended or is about to.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // Signals stay with the program's threads.
  try {
    thread_ = std::thread([keep = shared_from_this()] { keep->work(); });
    alive_ = true;
  } catch (const std::system_error& e) {
    log::error("session", "cannot start the callback thread, calling back in place: {}", e.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool CallbackThread::post(std::function<void()>& job) {
  const std::lock_guard lock(mutex_);
  if (!alive_) start_locked();
  if (!alive_) return false;
  jobs_.push_back(std::move(job));
  changed_.notify_one();
  return true;
}

void CallbackThread::work() {
  pthread_setname_np(pthread_self(), "corelane-callbk");
  current = this;
  std::unique_lock lock(mutex_);
  for (;;) {
    while (jobs_.empty() && !stop_) changed_.wait(lock);
    if (jobs_.empty()) break;
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    running_ = true;
    lock.unlock();
    call_guarded(job);
    job = nullptr;  // May hold the last handle of the session.
    lock.lock();
    running_ = false;
    if (jobs_.empty()) idle_.notify_all();
  }
  alive_ = false;
  idle_.notify_all();
}

bool CallbackThread::wait_idle(TimePoint until) {
  if (is_current()) return false;
  std::unique_lock lock(mutex_);
  while (!jobs_.empty() || running_) {
    if (any_is_current()) return false;
    if (!clock_->wait_until(lock, idle_, until)) return jobs_.empty() && !running_;
  }
  return true;
}

void CallbackThread::stop() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
  changed_.notify_all();
}

void CallbackThread::finish() {
  stop();
  std::thread thread;
  {
    const std::lock_guard lock(mutex_);
    if (!is_current()) thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
}

}  // namespace corelane::session
