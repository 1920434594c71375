/// What the kernel orders and ThreadSanitizer does not know: a write to a descriptor comes before
/// the wait that it ends. One place stands for all descriptors. Nothing without the sanitizer.
#pragma once

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace corelane::device {

#ifdef __SANITIZE_THREAD__
/// One in a process, which may have this library and a program's own copy of it.
[[gnu::visibility("default")]] inline char all_descriptors;
/// Before the write.
inline void before_descriptor_write() { __tsan_release(&all_descriptors); }
/// After the wait.
inline void after_descriptor_wait() { __tsan_acquire(&all_descriptors); }
#else
inline void before_descriptor_write() {}
inline void after_descriptor_wait() {}
#endif

}  // namespace corelane::device
