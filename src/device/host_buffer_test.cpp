#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/process/unique_fd.h"
#include "corelane/device/buffer.h"

namespace corelane::device {
namespace {

TEST(HostBuffer, IsZeroedAlignedAndHasADescriptor) {
  for (const std::size_t alignment : {std::size_t{1}, std::size_t{4096}, std::size_t{2} << 20}) {
    BufferOptions options;
    options.alignment = alignment;
    auto buffer = *create_host_buffer(10000, options);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % alignment, 0U);
    EXPECT_EQ(buffer->size(), 10000U);
    EXPECT_GE(buffer->fd(), 0);
    EXPECT_EQ(buffer->origin(), BufferOrigin::kDevice);
    const auto* bytes = static_cast<const char*>(buffer->data());
    EXPECT_TRUE(std::all_of(bytes, bytes + 10000, [](char c) { return c == 0; }));
  }
}

TEST(HostBuffer, DescriptorMapsTheSameBytes) {
  BufferOptions options;
  options.alignment = std::size_t{1} << 20;
  auto buffer = *create_host_buffer(5000, options);
  auto twin = *import_fd_buffer(buffer->fd(), 100, buffer->offset() + 4097);
  static_cast<char*>(buffer->data())[4097] = 'x';
  EXPECT_EQ(static_cast<char*>(twin->data())[0], 'x');
  EXPECT_EQ(twin->origin(), BufferOrigin::kFd);
  buffer.reset();
  EXPECT_EQ(static_cast<char*>(twin->data())[0], 'x');
}

TEST(HostBuffer, ADescriptorWithoutASizeIsMappedWhereItCanBe) {
  const int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
  ASSERT_GE(zero, 0);
  const auto buffer = import_fd_buffer(zero, 5000, 0);
  ASSERT_TRUE(buffer.has_value()) << buffer.error().to_string();
  auto* bytes = static_cast<char*>((*buffer)->data());
  bytes[4999] = 'x';
  EXPECT_EQ(bytes[4999], 'x');
  EXPECT_EQ(import_fd_buffer(zero, SIZE_MAX, 1).error().code(), Code::kOutOfRange);
  close(zero);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(import_fd_buffer(ends[0], 1, 0).error().code(), Code::kInvalidArgument);
  const int empty = memfd_create("empty", MFD_CLOEXEC);
  EXPECT_EQ(import_fd_buffer(empty, 1, 0).error().code(), Code::kOutOfRange);
  for (const int fd : {ends[0], ends[1], empty}) close(fd);
}

TEST(HostBuffer, ALimitOnFilesIsAFailure) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{4096, 4096};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
    const auto refused = create_host_buffer(1 << 20);
    _exit(!refused && refused.error().code() == Code::kOutOfMemory ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "a signal ended it, or the buffer was made";
}

TEST(HostBuffer, BadArgumentsAreNamed) {
  EXPECT_EQ(create_host_buffer(0).error().code(), Code::kInvalidArgument);
  for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{4} << 20}) {
    BufferOptions options;
    options.alignment = alignment;
    EXPECT_EQ(create_host_buffer(1, options).error().code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(create_host_buffer(SIZE_MAX / 2).error().code(), Code::kOutOfMemory);
  EXPECT_EQ(create_host_buffer(std::size_t{1} << 60).error().code(), Code::kOutOfMemory);
  EXPECT_EQ(import_fd_buffer(-1, 1, 0).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(import_user_buffer(nullptr, 1).error().code(), Code::kInvalidArgument);
  auto buffer = *create_host_buffer(4096);
  EXPECT_EQ(import_fd_buffer(buffer->fd(), 4096, 1).error().code(), Code::kOutOfRange);
  EXPECT_EQ(import_fd_buffer(buffer->fd(), 1, SIZE_MAX).error().code(), Code::kOutOfRange);
  EXPECT_EQ(import_fd_buffer(buffer->fd(), 0, 0).error().code(), Code::kInvalidArgument);
}

TEST(HostBuffer, ABlockThatCannotBeMappedIsTheDescriptorsFaultOrTheSystems) {
  const UniqueFd read_only(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(import_fd_buffer(read_only.get(), 16, 0).error().code(), Code::kInvalidArgument);
  constexpr std::size_t kMoreThanThereAreAddresses = std::size_t{1} << 60;
  const UniqueFd large(memfd_create("large", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(large.get(), static_cast<off_t>(kMoreThanThereAreAddresses)), 0);
  EXPECT_EQ(import_fd_buffer(large.get(), kMoreThanThereAreAddresses, 0).error().code(), Code::kIo);
}

TEST(HostBuffer, SyncChecksItsRange) {
  std::vector<char> memory(100);
  auto buffer = *import_user_buffer(memory.data(), memory.size());
  EXPECT_EQ(buffer->data(), memory.data());
  EXPECT_EQ(buffer->fd(), -1);
  EXPECT_TRUE(buffer->sync(SyncDirection::kBoth, 0, 100).ok());
  EXPECT_TRUE(buffer->sync(SyncDirection::kToDevice, 100, 0).ok());
  EXPECT_EQ(buffer->sync(SyncDirection::kBoth, 1, 100).code(), Code::kOutOfRange);
  EXPECT_EQ(buffer->sync(SyncDirection::kBoth, SIZE_MAX, 2).code(), Code::kOutOfRange);
}

}  // namespace
}  // namespace corelane::device
