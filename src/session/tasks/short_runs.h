/// How large the inputs of a run may be that is known to be short.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ranges>
#include <vector>

#include "base/guard.h"
#include "runtime/program/shape_choice.h"
#include "session/tasks/call.h"

namespace corelane::session {

/// The inputs of the last run that was short. Runs of the same and of smaller dimensions are short,
/// too; others may take any time. A value, no lock.
class ShortRuns {
 public:
  static bool is_short(Duration device_time) noexcept {
    return device_time > Duration{0} && device_time < std::chrono::milliseconds(50);
  }
  /// The same of Program::work(), before any run: a processor takes some 40 ms for as many steps,
  /// and a slow one with a network that suits no kernel of its engine not more than 250.
  static bool is_short(const std::optional<std::uint64_t>& work) noexcept {
    return work && *work < 1'000'000'000;
  }
  bool cover(const std::vector<CallInput>& inputs) const noexcept {
    return std::ranges::equal(inputs, shapes_, runtime::fits_in, &shape_of);
  }
  /// A short run had these shapes. Without memory for them they stay unknown.
  void note(const std::vector<Shape>& shapes) noexcept {
    if (std::ranges::equal(shapes, shapes_, runtime::fits_in)) return;
    static_cast<void>(no_throw("noting the shapes of a run", [&]() -> Status {
      shapes_ = shapes;
      return {};
    }));
  }

 private:
  static const Shape& shape_of(const CallInput& input) noexcept { return input.view.shape; }

  std::vector<Shape> shapes_;
};

}  // namespace corelane::session
