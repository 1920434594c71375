#include "pc_block.h"

#include <sys/mman.h>
#include <unistd.h>

PcBlock::PcBlock(std::size_t size) : size_(size), fd_(memfd_create("frames", MFD_CLOEXEC)) {
  if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(size)) != 0) return;
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (data != MAP_FAILED) data_ = data;
}

PcBlock::~PcBlock() {
  if (data_ != nullptr) munmap(data_, size_);
  if (fd_ >= 0) close(fd_);
}
