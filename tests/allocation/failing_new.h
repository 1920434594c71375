/// Memory that runs out by a plan: operator new of the whole process, for the library's own calls.
#pragma once

#include <cstdint>

namespace corelane::allocation {

/// From now on a part of the allocations that the library asks for fails, by `seed`: `share` from 0
/// to 1. Those of threads of the test fail only where they are Exposed; an engine's, or those of
/// another library, never.
void begin_failing(double share, std::uint64_t seed);
void end_failing();
/// Allocations that have failed so far.
std::uint64_t failures();

/// The thread that holds one is the test's: its allocations succeed.
class Shielded {
 public:
  Shielded() noexcept;
  ~Shielded();
  Shielded(const Shielded&) = delete;
  Shielded& operator=(const Shielded&) = delete;

 private:
  const bool before_;
};

/// A call of the library in a thread that is shielded.
class Exposed {
 public:
  Exposed() noexcept;
  ~Exposed();
  Exposed(const Exposed&) = delete;
  Exposed& operator=(const Exposed&) = delete;

 private:
  const bool before_;
};

/// `f()`, exposed.
template <class F>
auto exposed(F&& f) {
  const Exposed here;
  return f();
}

}  // namespace corelane::allocation
