#include "device/lease_fds.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "base/fork.h"

namespace corelane::device {

struct UnsharedFd::Place {
  std::atomic<int> fd{kFree};
  Place* next = nullptr;
  static constexpr int kFree = -1;
};

namespace {

using Place = UnsharedFd::Place;

// Free of locks: in a child, one could be held by a thread that does not exist there.
constinit std::atomic<Place*> places{nullptr};
constinit std::atomic<unsigned> forks_begun{0};
constinit std::atomic<unsigned> forks_ended{0};

void before_fork() { forks_begun.fetch_add(1); }
void after_fork() { forks_ended.fetch_add(1); }

void in_child() {
  for (Place* place = places.load(); place != nullptr; place = place->next) {
    const int fd = place->fd.exchange(Place::kFree);
    if (fd >= 0) ::close(fd);
  }
  // The other threads that were about to fork are not here.
  forks_ended.store(forks_begun.load());
}

// Not call_in_forked_child(): the thread that forks has to be counted before and after, too.
[[maybe_unused]] const int kRegistered = pthread_atfork(&before_fork, &after_fork, &in_child);

Place* add_place(int fd) {
  for (Place* place = places.load(); place != nullptr; place = place->next) {
    int expected = Place::kFree;
    if (place->fd.compare_exchange_strong(expected, fd)) return place;
  }
  auto* const added = new Place;
  added->fd.store(fd);
  added->next = places.load();
  while (!places.compare_exchange_weak(added->next, added)) {
  }
  return added;
}

}  // namespace

/// A fork between the opening and the entry in the list would leave the child a descriptor that it
/// does not close: then it is opened again.
UnsharedFd UnsharedFd::open(int folder, const char* name, int flags, unsigned mode) {
  for (;;) {
    const unsigned begun = forks_begun.load();
    if (begun != forks_ended.load()) {
      sched_yield();
      continue;
    }
    const int fd = ::openat(folder, name, flags | O_CLOEXEC, mode);
    if (fd < 0) return {};
    UnsharedFd made;
    made.place_ = add_place(fd);
    made.forks_ = fork_count();
    if (begun == forks_begun.load()) return made;
  }
}

UnsharedFd::UnsharedFd(UnsharedFd&& other) noexcept
    : place_(std::exchange(other.place_, nullptr)), forks_(other.forks_) {}

UnsharedFd& UnsharedFd::operator=(UnsharedFd&& other) noexcept {
  std::swap(place_, other.place_);
  std::swap(forks_, other.forks_);
  return *this;
}

UnsharedFd::~UnsharedFd() { close(); }

int UnsharedFd::get() const noexcept {
  return place_ == nullptr || forks_ != fork_count() ? Place::kFree : place_->fd.load();
}

/// In a forked child the place may have another owner by now.
void UnsharedFd::close() noexcept {
  if (place_ == nullptr || forks_ != fork_count()) return;
  const int saved = errno;
  const int fd = place_->fd.load();
  // A child that is forked between the next two steps keeps the descriptor, but not the lock.
  struct flock unlock {};
  unlock.l_type = F_UNLCK;
  unlock.l_whence = SEEK_SET;
  fcntl(fd, F_OFD_SETLK, &unlock);
  place_->fd.store(Place::kFree);
  ::close(fd);
  errno = saved;
}

}  // namespace corelane::device
