/// What bindings tell a program about memory of which it keeps a form of its own.
#pragma once

#include <cstdint>

namespace corelane::device {

/// What lies in the memory of an input that a program keeps a form of, for all bindings that use
/// this memory so. Any thread.
class KeptContent {
 public:
  virtual ~KeptContent() = default;
  /// What lies in the memory is new from now on: forms of it are stale.
  virtual void renew() noexcept = 0;
  /// Another number after each renew().
  virtual std::uint64_t stamp() const noexcept = 0;
};

}  // namespace corelane::device
