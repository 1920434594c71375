#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <limits>

#include "base/process/errno_text.h"
#include "base/process/unique_fd.h"
#include "base/trust/file_size_signal.h"
#include "corelane/device/buffer.h"

namespace corelane::device {
namespace {

/// 2 MiB, a huge page.
constexpr std::size_t kMaxAlignment = std::size_t{2} << 20;

/// Bytes of a page; offsets of mmap are multiples of it. The kernel's choice: 4, 16 or 64 KiB.
std::size_t page_size() {
  static const long kSize = sysconf(_SC_PAGESIZE);
  return static_cast<std::size_t>(kSize);
}

/// Memory that the CPU and the device see alike: syncing only checks the range.
class HostBuffer final : public Buffer {
 public:
  struct Block {
    void* data = nullptr;
    std::size_t size = 0;
    std::size_t offset = 0;  ///< Of data in the descriptor's block.
    void* mapping = nullptr;
    std::size_t mapped = 0;
    Cache cache = Cache::kCacheable;
    BufferOrigin origin = BufferOrigin::kUser;
    UniqueFd fd;
  };
  explicit HostBuffer(Block block) : block_(std::move(block)) {}
  ~HostBuffer() override {
    if (block_.mapping != nullptr) munmap(block_.mapping, block_.mapped);
  }

  void* data() const noexcept override { return block_.data; }
  std::size_t size() const noexcept override { return block_.size; }
  int fd() const noexcept override { return block_.fd.get(); }
  std::size_t offset() const noexcept override { return block_.offset; }
  Cache cache() const noexcept override { return block_.cache; }
  BufferOrigin origin() const noexcept override { return block_.origin; }
  Status sync(SyncDirection, std::size_t offset, std::size_t size) override {
    if (offset <= block_.size && size <= block_.size - offset) return {};
    return error(Code::kOutOfRange, "sync of {} bytes at {} leaves the buffer, which has {} bytes",
                 size, offset, block_.size);
  }

 private:
  Block block_;
};

/// Bytes of the block; as many as there can be where only mmap can tell: a device file such as
/// /dev/zero says 0, and so do dma-bufs of kernels before 5.3, which can be sought.
std::size_t block_bytes(int fd, const struct stat& facts) {
  if (facts.st_size != 0 || S_ISREG(facts.st_mode)) return static_cast<std::size_t>(facts.st_size);
  const off_t at = lseek(fd, 0, SEEK_CUR);
  const off_t end = lseek(fd, 0, SEEK_END);
  if (at >= 0) lseek(fd, at, SEEK_SET);
  return static_cast<std::size_t>(end > 0 ? end : std::numeric_limits<off_t>::max());
}

Result<UniqueFd> make_memfd(std::size_t size) {
  const NoFileSizeSignal failure_instead;  // The limit on files holds for such a block, too.
  UniqueFd fd(memfd_create("corelane-buffer", MFD_CLOEXEC));
  if (!fd || ftruncate(fd.get(), static_cast<off_t>(size)) != 0)
    return error(Code::kOutOfMemory,
                 "the system gives no memory block of {} bytes: {}; free buffers or raise the "
                 "limits (ulimit -n, ulimit -f, memory)",
                 size, errno_text());
  return fd;
}

}  // namespace

Result<std::shared_ptr<Buffer>> create_host_buffer(std::size_t size, const BufferOptions& options) {
  if (size == 0)
    return error(Code::kInvalidArgument, "a buffer of 0 bytes; ask for at least 1 byte");
  if (!std::has_single_bit(options.alignment) || options.alignment > kMaxAlignment)
    return error(Code::kInvalidArgument, "buffer alignment {} is not a power of two from 1 to {}",
                 options.alignment, kMaxAlignment);
  // mmap aligns to a page; for more, the block is so much larger that an aligned part lies in it.
  const std::size_t page = page_size();
  const std::size_t slack = options.alignment > page ? options.alignment : 0;
  // Keeps the sums below from wrapping; the system refuses such a size anyway.
  if (size > SIZE_MAX / 4 - slack)
    return error(Code::kOutOfMemory, "a buffer of {} bytes is more than any system has", size);
  HostBuffer::Block block;
  block.mapped = (size + slack + page - 1) / page * page;
  CORELANE_ASSIGN(block.fd, make_memfd(block.mapped));
  void* at = mmap(nullptr, block.mapped, PROT_READ | PROT_WRITE, MAP_SHARED, block.fd.get(), 0);
  if (at == MAP_FAILED)
    return error(Code::kOutOfMemory, "cannot map a buffer of {} bytes: {}", size, errno_text());
  block.mapping = at;
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const auto aligned = (address + options.alignment - 1) & ~(options.alignment - 1);
  block.offset = aligned - address;
  block.data = static_cast<std::byte*>(at) + block.offset;
  block.size = size;
  block.cache = options.cache;
  block.origin = BufferOrigin::kDevice;
  return std::make_shared<HostBuffer>(std::move(block));
}

Result<std::shared_ptr<Buffer>> import_fd_buffer(int fd, std::size_t size, std::size_t offset) {
  if (size == 0)
    return error(Code::kInvalidArgument, "import of 0 bytes; name at least 1 byte of the block");
  struct stat facts {};
  if (fd < 0 || fstat(fd, &facts) != 0)
    return error(Code::kInvalidArgument, "descriptor {} is not open; pass an open memory block",
                 fd);
  const std::size_t block_size = block_bytes(fd, facts);
  if (offset > block_size || size > block_size - offset)
    return error(Code::kOutOfRange,
                 "{} bytes at {} leave the block of descriptor {}, which has {} bytes", size,
                 offset, fd, block_size);
  HostBuffer::Block block;
  block.fd = UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!block.fd) return error(Code::kIo, "cannot duplicate descriptor {}: {}", fd, errno_text());
  // mmap takes offsets of whole pages: the mapping begins before the buffer.
  const std::size_t start = offset / page_size() * page_size();
  block.mapped = offset - start + size;
  void* at = mmap(nullptr, block.mapped, PROT_READ | PROT_WRITE, MAP_SHARED, block.fd.get(),
                  static_cast<off_t>(start));
  if (at == MAP_FAILED) {
    const bool ours = errno == ENOMEM || errno == EAGAIN || errno == ENFILE;
    return error(ours ? Code::kIo : Code::kInvalidArgument,
                 "descriptor {} cannot be mapped for reading and writing: {}", fd, errno_text());
  }
  block.mapping = at;
  block.data = static_cast<std::byte*>(at) + (offset - start);
  block.size = size;
  block.offset = offset;
  block.origin = BufferOrigin::kFd;
  return std::make_shared<HostBuffer>(std::move(block));
}

Result<std::shared_ptr<Buffer>> import_user_buffer(void* data, std::size_t size) {
  if (data == nullptr || size == 0)
    return error(Code::kInvalidArgument,
                 "user memory at {} of {} bytes is not a buffer; pass an address and a size", data,
                 size);
  HostBuffer::Block block;
  block.data = data;
  block.size = size;
  return std::make_shared<HostBuffer>(std::move(block));
}

}  // namespace corelane::device
