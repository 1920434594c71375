#include <fcntl.h>
#include <sys/epoll.h>

#include <cerrno>
#include <map>

#include "base/fork.h"
#include "base/process/errno_text.h"
#include "base/process/unique_fd.h"
#include "base/sync.h"
#include "base/thread.h"
#include "corelane/device/fence.h"
#include "device/fence_order.h"
#include "device/fence_watch.h"

namespace corelane::device {
namespace {

thread_local bool this_thread_watches = false;

/// One thread that waits for all imported descriptors of a process: a forked child has another, and
/// descriptors of its own. It starts with the first import and lives as long as the process. Fences
/// are held weakly: a descriptor is watched until it turns readable, its fence is signalled
/// otherwise, or the last reference to the fence is gone.
class Watcher {
 public:
  static Watcher& instance() { return per_process<Watcher>(); }

  /// The number to remove() it by. `given` is the descriptor as its caller knows it.
  Result<std::uint64_t> add(UniqueFd fd, std::weak_ptr<Fence> fence, int given) {
    const MutexLock lock(mutex_);
    CORELANE_TRY(start());
    const std::uint64_t id = ++last_id_;
    epoll_event event{};
    // Once is enough, and a readable descriptor must not wake the watcher forever.
    event.events = EPOLLIN | EPOLLONESHOT;
    event.data.u64 = id;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
      if (errno != EPERM)
        return error(Code::kIo, "the system does not watch descriptor {} for a fence: {}", given,
                     errno_text());
      return error(Code::kInvalidArgument,
                   "descriptor {} cannot be polled for a fence; pass an eventfd, a pipe, a socket "
                   "or a sync file",
                   given);
    }
    watched_.emplace(id, Watched{std::move(fd), std::move(fence)});
    return id;
  }

  /// Nothing happens when it is gone already.
  void remove(std::uint64_t id) noexcept {
    const MutexLock lock(mutex_);
    const auto place = watched_.find(id);
    if (place != watched_.end()) (void)take(place);
  }

 private:
  struct Watched {
    UniqueFd fd;
    std::weak_ptr<Fence> fence;
  };
  using Table = std::map<std::uint64_t, Watched>;

  Watched take(Table::iterator place) noexcept CORELANE_REQUIRES(mutex_) {
    Watched taken = std::move(place->second);
    watched_.erase(place);
    // Closing is not enough: the caller's descriptor keeps the file open, and the file is watched.
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, taken.fd.get(), nullptr);
    return taken;
  }

  Status start() CORELANE_REQUIRES(mutex_) {
    if (epoll_) return {};
    UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll)
      return error(Code::kIo, "the system gives no descriptor to watch fences: {}", errno_text());
    CORELANE_ASSIGN(std::thread thread,
                    start_thread("corelane-fences", [this, fd = epoll.get()] { run(fd); }));
    thread.detach();
    epoll_ = std::move(epoll);
    return {};
  }

  void run(int epoll) noexcept {
    this_thread_watches = true;
    for (;;) {
      epoll_event event{};
      if (epoll_wait(epoll, &event, 1, -1) != 1) continue;
      after_descriptor_wait();
      const std::uint64_t number = event.data.u64;  // The structure is packed.
      Watched found;
      {
        const MutexLock lock(mutex_);
        const auto place = watched_.find(number);
        if (place == watched_.end()) continue;
        found = take(place);
      }
      // Outside of the lock, which the fence's last holder takes.
      const std::shared_ptr<Fence> fence = found.fence.lock();
      if (fence == nullptr) continue;
      if ((event.events & EPOLLIN) != 0) {
        fence->signal();
      } else {
        fence->signal(error(Code::kIo,
                            "the descriptor of an imported fence was closed at its other "
                            "end, or failed, before it turned readable"));
      }
    }
  }

  Mutex mutex_{LockRank::kFenceWatcher};
  UniqueFd epoll_ CORELANE_GUARDED_BY(mutex_);
  std::uint64_t last_id_ CORELANE_GUARDED_BY(mutex_) = 0;
  Table watched_ CORELANE_GUARDED_BY(mutex_);
};

/// A fence whose descriptor is watched for as long as it lives.
struct Imported {
  Fence fence;
  std::uint64_t id = 0;  ///< 0: not watched.
  /// The process that watches it: numbers belong to that process's watcher.
  const std::uint64_t made_in = fork_count();
  ~Imported() { end_watch(id, made_in); }
  static void end_watch(std::uint64_t id, std::uint64_t made_in) noexcept {
    if (id != 0 && made_in == fork_count()) Watcher::instance().remove(id);
  }
};

}  // namespace

bool watches_fences() noexcept { return this_thread_watches; }

Result<std::shared_ptr<Fence>> import_fence_fd(int fd) {
  // The caller may close its descriptor at once, and a number that is closed may be given out
  // again.
  UniqueFd own(fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own && fd >= 0 && errno != EBADF)
    return error(Code::kIo, "cannot duplicate descriptor {}: {} (see ulimit -n)", fd, errno_text());
  if (!own)
    return error(Code::kInvalidArgument,
                 "descriptor {} is not open; pass one that can be polled, such as an eventfd", fd);
  auto imported = std::make_shared<Imported>();
  // Shares the life of `imported`, whose destructor ends the watch.
  std::shared_ptr<Fence> fence(imported, &imported->fence);
  CORELANE_ASSIGN(const std::uint64_t id, Watcher::instance().add(std::move(own), fence, fd));
  imported->id = id;
  // A fence that is signalled otherwise needs no watch. Nothing happens where the watcher was
  // first.
  fence->on_signal(
      [id, made_in = imported->made_in](const Status&) { Imported::end_watch(id, made_in); });
  return fence;
}

}  // namespace corelane::device
