/// The inputs of one set of bindings of which the program keeps a form of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/driver/kept_content.h"

namespace corelane::device {
class LaneProgram;
struct TensorRef;
}  // namespace corelane::device

namespace corelane::lanes {

/// Empty for all programs but matrix products, which keep B packed (LaneProgram::keeps_input()).
///
/// Bindings that use the same memory share one KeptContent, whose stamp counts the contents that
/// the memory has had. Invariant: **a form, and a shadow, is used only while the stamp is the one
/// that it was made at.** So the stamp moves, and all forms are stale, when an input is set, and
/// once more when the fences are signalled that the first job after that waits for, since that job
/// is to read what lies there then. The shadow is memory as well, with a content of its own: it is
/// filled when the stamp of the input's content is not the one at which it was filled last, and
/// then its own stamp moves.
///
/// Guarded as the bindings are.
class KeptInputs {
 public:
  explicit KeptInputs(device::LaneProgram& program);

  bool keeps(std::size_t index) const noexcept {
    return index < inputs_.size() && inputs_[index].kept;
  }
  /// `memory` is set: none has a form of it from now on. No data: nothing is set.
  Status set(std::size_t index, const device::TensorRef& memory);
  /// The fences are signalled that a job waited for.
  void fences_signalled() noexcept;
  /// A job has run.
  void ran() noexcept;

  bool has_shadow(std::size_t index) const noexcept { return inputs_[index].shadow != nullptr; }
  /// No data: there is none any more.
  Status set_shadow(std::size_t index, const device::TensorRef& memory);
  /// True when the shadow must be filled; to be called before the input's memory is read, since
  /// other bindings may set it meanwhile.
  bool begin_copy(std::size_t index) noexcept;
  void end_copy(std::size_t index) noexcept { inputs_[index].shadow->renew(); }

 private:
  struct Input {
    bool kept = false;
    bool fresh = false;  ///< Set since the last run.
    std::shared_ptr<device::KeptContent> content;
    std::shared_ptr<device::KeptContent> shadow;
    std::optional<std::uint64_t> copied;  ///< The stamp of `content` when the shadow was filled.
  };
  Result<std::shared_ptr<device::KeptContent>> content_of(std::size_t index,
                                                          const device::TensorRef& memory);

  device::LaneProgram& program_;
  std::vector<Input> inputs_;  ///< Empty when none is kept.
  bool fresh_ = false;         ///< One of them is.
};

}  // namespace corelane::lanes
