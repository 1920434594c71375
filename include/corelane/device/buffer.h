/// Device memory as an object: bytes with an address, a file descriptor that other contexts and
/// processes can map, an offset, cache attributes, and explicit synchronisation.
#pragma once

#include <cstddef>
#include <memory>

#include "corelane/base/api.h"
#include "corelane/base/status.h"

namespace corelane::device {

enum class Cache : unsigned char { kCacheable, kUncached };
enum class SyncDirection : unsigned char { kToDevice = 1, kFromDevice = 2, kBoth = 3 };
enum class BufferOrigin : unsigned char { kDevice, kFd, kUser };

struct BufferOptions {
  Cache cache = Cache::kCacheable;
  std::size_t alignment = 4096;  ///< A power of two up to 2 MiB.
};

/// Memory that a device can read and write. Lives as long as one shared_ptr to it; jobs that use it
/// hold one. The bytes are not synchronised between threads.
class CORELANE_API Buffer {
 public:
  virtual ~Buffer() = default;
  /// The first byte; the same address while the buffer lives. Any thread.
  virtual void* data() const noexcept = 0;
  /// Bytes from data(), not from the beginning of the block. Any thread.
  virtual std::size_t size() const noexcept = 0;
  /// A descriptor that maps the block (a memfd where the library allocated it), or -1. Owned by the
  /// buffer: duplicate it to keep it. Any thread.
  virtual int fd() const noexcept = 0;
  /// Bytes from the beginning of the block of fd() to data(). Any thread.
  virtual std::size_t offset() const noexcept = 0;
  /// As it was created; kCacheable for imported memory. Any thread.
  virtual Cache cache() const noexcept = 0;
  /// Where the memory came from. Any thread.
  virtual BufferOrigin origin() const noexcept = 0;
  /// Makes writes of one side visible to the other; a check only on devices that share the CPU's
  /// caches. kOutOfRange when the range leaves the buffer. Any thread.
  virtual Status sync(SyncDirection direction, std::size_t offset, std::size_t size) = 0;
};

/// Buffers every CPU-side device uses: memfd-backed, page-aligned, zeroed.
/// kInvalidArgument for size 0 or a bad alignment, kOutOfMemory when the system refuses. Any
/// thread.
CORELANE_API Result<std::shared_ptr<Buffer>> create_host_buffer(std::size_t size,
                                                                const BufferOptions& options = {});
/// Maps `size` bytes at `offset` of a descriptor, which is duplicated. kInvalidArgument for a
/// descriptor that is not open for reading and writing or cannot be mapped, or size 0; kOutOfRange
/// when the block is shorter; kIo when the system has no descriptor or no addresses left. Any
/// thread.
CORELANE_API Result<std::shared_ptr<Buffer>> import_fd_buffer(int fd, std::size_t size,
                                                              std::size_t offset);
/// Wraps memory of the caller, which must stay valid while the buffer or a job with it lives.
/// kInvalidArgument for null or size 0. Any thread.
CORELANE_API Result<std::shared_ptr<Buffer>> import_user_buffer(void* data, std::size_t size);

}  // namespace corelane::device
