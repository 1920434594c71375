/// Shared memory on a PC: what MMZ and the DMA heaps hand out on a board, an address and an fd.
#pragma once

#include <cstddef>

/// Owns the block. Make it before the context that uses it, so that it goes after.
class PcBlock {
 public:
  explicit PcBlock(std::size_t size);
  ~PcBlock();
  PcBlock(const PcBlock&) = delete;
  PcBlock& operator=(const PcBlock&) = delete;

  /// False where the system has no memory for it.
  bool ok() const { return data_ != nullptr; }
  void* data() const { return data_; }
  int fd() const { return fd_; }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  int fd_ = -1;
  void* data_ = nullptr;
};
