/// The content of memory of which a program keeps a form of its own (LaneProgram::keeps_input).
#pragma once

#include <cstdint>

namespace corelane::device {

/// Generation counter of such an input's content, shared by all bindings that use the same memory
/// for it. Any thread; the functions call nothing of the library.
class KeptContent {
 public:
  virtual ~KeptContent() = default;
  /// The memory has new content from now on: forms made of it are stale.
  virtual void renew() noexcept = 0;
  /// Another number after each renew().
  virtual std::uint64_t stamp() const noexcept = 0;
};

}  // namespace corelane::device
