/// Writing under a limit on the size of files (RLIMIT_FSIZE).
#pragma once

#include <csignal>

#include "corelane/base/api.h"

namespace corelane {

/// While it lives, a write of this thread that passes RLIMIT_FSIZE fails with EFBIG and sends
/// nothing: the kernel's SIGXFSZ, which ends a process that does not handle it, is held back and
/// taken. Every write of the library to a file, a block of memory with a descriptor, or stderr
/// stands in one. One thread; may be nested. Keeps errno.
class CORELANE_API NoFileSizeSignal {
 public:
  NoFileSizeSignal() noexcept;
  ~NoFileSizeSignal();
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  sigset_t before_;  ///< The thread's mask.
  bool ours_;        ///< A signal that is pending at the end came from a write in between.
};

}  // namespace corelane
