/// Programs that are dropped by the threads that work for them.
#pragma once

#include <memory>
#include <utility>

#include "runtime/program/program_state.h"

namespace corelane::runtime {

/// While one lives, programs that this thread drops stay until it ends: a callback of the log,
/// which is a user's code, may drop the program for which the thread works, and the work goes on.
class LateEnds {
 public:
  LateEnds() noexcept : around_(std::exchange(innermost(), this)) {}
  LateEnds(const LateEnds&) = delete;
  LateEnds& operator=(const LateEnds&) = delete;
  ~LateEnds() {
    // One that ends may drop others.
    while (dropped_ != nullptr) {
      const std::unique_ptr<ProgramState> state = std::move(dropped_);
      dropped_ = std::move(state->dropped_before);
    }
    innermost() = around_;
  }
  /// Ends `state`, or keeps it for later. Allocates nothing.
  static void end(ProgramState* state) noexcept {
    std::unique_ptr<ProgramState> ended(state);
    LateEnds* const keeper = innermost();
    if (keeper == nullptr) return;
    ended->dropped_before = std::move(keeper->dropped_);
    keeper->dropped_ = std::move(ended);
  }

 private:
  static LateEnds*& innermost() noexcept {
    thread_local LateEnds* keeper = nullptr;
    return keeper;
  }

  LateEnds* const around_;
  std::unique_ptr<ProgramState> dropped_;
};

}  // namespace corelane::runtime
