#include "base/thread.h"

#include <pthread.h>

#include <csignal>
#include <new>
#include <system_error>
#include <utility>

namespace corelane {
namespace {

/// Blocks all signals of this thread, and those of the threads it makes meanwhile.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Result<std::thread> start_thread(const char* name, std::function<void()> body) {
  const SignalsBlocked blocked;
  try {
    return std::thread([name, run = std::move(body)]() noexcept {
      pthread_setname_np(pthread_self(), name);
      run();
    });
  } catch (const std::system_error& e) {
    return error(Code::kIo, "cannot start the thread '{}': {}", name, e.what());
  } catch (const std::bad_alloc&) {
    return error(Code::kOutOfMemory, "no memory to start the thread '{}'", name);
  }
}

}  // namespace corelane
