/// Memory that a session reads and writes, bound once and used by many runs.
///
/// Errors of all functions that bind: kNotFound (no such name; the message lists the names),
/// kWrongState (the binding was never made, or its session is gone).
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/session/future.h"
#include "corelane/tensor/desc.h"
#include "corelane/tensor/tensor.h"

namespace corelane {

namespace device {
class Buffer;
}
namespace session {
struct BindingState;
}

/// Made by Session::io_binding and used with that session alone. One caller at a time; what a
/// custom operator binds in a run is for the next one. Inputs and outputs are found by name
/// (kNotFound lists the names).
class CORELANE_API IoBinding {
 public:
  IoBinding() = default;
  /// Whether a session made it.
  bool valid() const noexcept { return state_ != nullptr; }

  /// Reads this memory at each run: no copy where type and layout are the program's own. It must
  /// stay valid until the run is over, which `keep_alive` can ensure. Errors: those of an input of
  /// Session::run (kShapeMismatch, kTypeMismatch, kInvalidArgument).
  Status bind_input(std::string_view name, const TensorView& view,
                    std::shared_ptr<const void> keep_alive = nullptr);
  /// Reads device memory in the program's own form, from byte `offset` on. kInvalidArgument (a null
  /// or short buffer), kOutOfRange (`offset`).
  Status bind_input(std::string_view name, std::shared_ptr<device::Buffer> buffer,
                    std::size_t offset = 0);
  /// Copies now, so that the caller's memory may change afterwards. Errors as bind_input().
  Status copy_input(std::string_view name, const TensorView& view);

  /// Writes to this memory at each run; type and layout may differ from the program's. It must stay
  /// valid until the run is over, which `keep_alive` can ensure. A result with open
  /// dimensions may be smaller than the view, and is the first part of its memory then.
  /// kInvalidArgument (null memory), kShapeMismatch: here, or of the run whose result is larger.
  Status bind_output(std::string_view name, const MutableTensorView& view,
                     std::shared_ptr<const void> keep_alive = nullptr);
  /// Writes to device memory in the program's own form, from byte `offset` on. kInvalidArgument (a
  /// null buffer), kOutOfRange (`offset`).
  Status bind_output(std::string_view name, std::shared_ptr<device::Buffer> buffer,
                     std::size_t offset = 0);
  /// Allocates fresh memory at each run.
  Status bind_output(std::string_view name);

  /// Unbinds all inputs.
  void clear_inputs();
  /// Unbinds all outputs, and releases the results of the last run.
  void clear_outputs();
  /// What the last run with this binding gave, one for each bound output in order of binding (all,
  /// in model order, when none is bound). Bound memory is shown as it is, not copied.
  const Outputs& outputs() const;
  /// Names of the bound inputs in model order; valid as long as the session.
  std::vector<std::string_view> input_names() const;
  /// Names of the bound outputs in order of binding; valid as long as the session.
  std::vector<std::string_view> output_names() const;

 private:
  friend class Session;
  std::shared_ptr<session::BindingState> state_;
};

}  // namespace corelane
