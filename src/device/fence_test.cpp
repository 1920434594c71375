#include "corelane/device/fence.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <thread>

#include "base/process/unique_fd.h"

namespace corelane::device {
namespace {

bool readable(int fd, int timeout_ms = 0) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, timeout_ms) == 1;
}

TEST(Fence, FirstSignalDecides) {
  Fence fence;
  EXPECT_FALSE(fence.signalled());
  EXPECT_TRUE(fence.status().ok());
  fence.signal(error(Code::kIo, "first"));
  fence.signal();
  EXPECT_TRUE(fence.signalled());
  EXPECT_EQ(fence.status().code(), Code::kIo);
}

TEST(Fence, CallbacksRunOnceEachAndMayThrowOrCallTheFence) {
  Fence fence;
  int calls = 0;
  fence.on_signal([](const Status&) -> void { throw 1; });
  fence.on_signal([&](const Status& status) {
    ++calls;
    EXPECT_TRUE(status.ok());
    EXPECT_TRUE(fence.wait());
    fence.on_signal([&](const Status&) { ++calls; });
  });
  fence.signal();
  fence.signal();
  EXPECT_EQ(calls, 2);
}

/// Numbers of one watcher are not those of another.
TEST(Fence, ForkedChildWatchesDescriptorsOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer's own allocator may be locked forever in a forked child";
#endif
  const UniqueFd of_parent(eventfd(0, EFD_CLOEXEC));
  auto inherited = *import_fence_fd(of_parent.get());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const UniqueFd own(eventfd(0, EFD_CLOEXEC));
    const auto fence = *import_fence_fd(own.get());
    inherited.reset();  // Ends no watch of the child's.
    const std::uint64_t one = 1;
    if (write(own.get(), &one, sizeof one) != sizeof one) _exit(2);
    _exit(fence->wait() ? 0 : 3);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_FALSE(inherited->signalled()) << "the child's descriptor is not the parent's";
  const std::uint64_t one = 1;
  ASSERT_EQ(write(of_parent.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  EXPECT_TRUE(inherited->wait());
}

TEST(Fence, WaitEndsBySignalOrByTime) {
  auto clock = std::make_shared<VirtualClock>();
  Fence fence(clock);
  EXPECT_FALSE(fence.wait(clock->now()));
  std::thread signaller([&] { fence.signal(); });
  EXPECT_TRUE(fence.wait());
  signaller.join();
  EXPECT_TRUE(fence.wait(clock->now()));
}

TEST(Fence, ExportedDescriptorPollsReadable) {
  Fence fence;
  UniqueFd early(*fence.export_fd());
  EXPECT_FALSE(readable(early.get()));
  fence.signal();
  EXPECT_TRUE(readable(early.get()));
  UniqueFd late(*fence.export_fd());
  EXPECT_TRUE(readable(late.get()));
}

TEST(Fence, DescriptorOutlivesItsFence) {
  UniqueFd fd;
  {
    Fence fence;
    fd = UniqueFd(*fence.export_fd());
  }
  EXPECT_FALSE(readable(fd.get()));
}

TEST(Fence, ImportedDescriptorSignals) {
  UniqueFd fd(eventfd(0, EFD_CLOEXEC));
  auto fence = import_fence_fd(fd.get());
  ASSERT_TRUE(fence.has_value());
  EXPECT_FALSE((*fence)->signalled());
  ASSERT_EQ(eventfd_write(fd.get(), 1), 0);
  EXPECT_TRUE((*fence)->wait());
  EXPECT_TRUE(readable(fd.get())) << "the caller's descriptor must not be consumed";
}

TEST(Fence, ExportAndImportCarryASignalAcross) {
  Fence source;
  UniqueFd fd(*source.export_fd());
  auto target = *import_fence_fd(fd.get());
  fd = UniqueFd();
  source.signal();
  EXPECT_TRUE(target->wait());
}

TEST(Fence, ProducerThatDiesIsNoSignal) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  auto fence = *import_fence_fd(reader.get());
  writer = UniqueFd();
  ASSERT_TRUE(fence->wait());
  EXPECT_EQ(fence->status().code(), Code::kIo);
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST(Fence, AnImportedFenceThatGoesOrIsSignalledOtherwiseGivesItsDescriptorBack) {
  UniqueFd fd(eventfd(0, EFD_CLOEXEC));
  ASSERT_TRUE(import_fence_fd(fd.get()).has_value());  // The watcher has one of its own from now.
  const std::ptrdiff_t before = open_descriptors();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(import_fence_fd(fd.get()).has_value());
  EXPECT_EQ(open_descriptors(), before);
  auto held = *import_fence_fd(fd.get());
  EXPECT_EQ(open_descriptors(), before + 1);
  held->signal(error(Code::kTimeout, "given up"));
  EXPECT_EQ(open_descriptors(), before);
  // Of those that went, none is in the way of one that is held.
  auto other = *import_fence_fd(fd.get());
  ASSERT_EQ(eventfd_write(fd.get(), 1), 0);
  EXPECT_TRUE(other->wait());
  EXPECT_EQ(held->status().code(), Code::kTimeout);
}

TEST(Fence, BadDescriptorIsRefused) {
  EXPECT_EQ(import_fence_fd(-1).error().code(), Code::kInvalidArgument);
  UniqueFd closed(eventfd(0, EFD_CLOEXEC));
  const int number = closed.get();
  closed = UniqueFd();
  EXPECT_EQ(import_fence_fd(number).error().code(), Code::kInvalidArgument);
  const UniqueFd folder(open("/", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(import_fence_fd(folder.get()).error().code(), Code::kInvalidArgument);
}

TEST(Fence, ASystemWithoutDescriptorsIsNotTheCallersMistake) {
  const pid_t child = fork();
  if (child == 0) {
    const UniqueFd good(eventfd(0, EFD_CLOEXEC));
    // All below it are taken by now, or by these.
    const rlimit limit{static_cast<rlim_t>(good.get()) + 1, static_cast<rlim_t>(good.get()) + 1};
    if (!good || setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(1);
    while (fcntl(good.get(), F_DUPFD_CLOEXEC, 0) >= 0) {
    }
    const auto refused = import_fence_fd(good.get());
    const bool why = !refused && refused.error().message().find("ulimit -n") != std::string::npos;
    _exit(why && refused.error().code() == Code::kIo ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace corelane::device
