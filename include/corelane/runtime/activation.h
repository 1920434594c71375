/// An activation: a program resident on cores of a device, and contexts that run there.
///
///     corelane::ActivateOptions how;
///     how.cores = corelane::device::CoreSet::any(4);
///     auto activation = corelane::Activation::create(program, how).value();
///     auto context = activation.new_context().value();  // runs on the activation's cores
///
/// A program may have several. They share its constants and compiled forms; each has cores of its
/// own, or takes turns on cores with others (turn_group.h). The cores are given back when the last
/// of the activation, its contexts and their jobs is gone.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/device/core_set.h"
#include "corelane/device/residence.h"
#include "corelane/runtime/turn_group.h"

namespace corelane {

class Context;
class Program;
struct ActivationState;

/// How a program is activated.
struct ActivateOptions {
  /// The cores to hold; "any" is the program's own wish, one core mostly. "Any N" takes cores that
  /// nobody has, or with turns those of the group that the fewest activations share.
  device::CoreSet cores;
  /// See device::Residency. None: exclusive, and shared with turns, which allow nothing else.
  std::optional<device::Residency> residency;
  TurnGroup turns;  ///< Takes turns with the others of this group. Default-made: none.
  TurnOptions turn;
};

/// What an activation has.
struct ActivationFigures {
  std::size_t executables = 0;  ///< Forms of the program that reside: one for each shape set.
  TurnFigures turn;             ///< Zeros without a group.
};

/// A cheap handle; a default-made one stands for no activation (kWrongState). Any thread.
class CORELANE_API Activation {
 public:
  /// Makes all prepared forms of the program resident, so that no job compiles; a form that is
  /// prepared later, for other shapes, becomes resident when a context uses it. A failure holds
  /// nothing. kOutOfCores (with the cores that are free, and the holders of the others),
  /// kOutOfMemory, kInvalidArgument (cores that are not there, or not in the group; an exclusive
  /// residency with turns; TurnOptions; a group of another device), kWrongState (open dimensions on
  /// a device that wants them fixed: nothing is prepared), kCancelled (a group that was shut down),
  /// kDeviceLost.
  static Result<Activation> create(const Program& program, const ActivateOptions& options = {});
  /// The cores that it holds: a mask; the empty one where it stands for no activation. Others after
  /// a loss of the device, where somebody took these first and no mask was asked for.
  device::CoreSet cores() const noexcept;
  /// A context that runs on these cores alone. RunOptions::cores chooses among them: "any" is the
  /// program's own wish, "any N" so many of them, the platform's choice all; others are refused
  /// with kInvalidArgument.
  Result<Context> new_context() const;
  /// Gives the cores back before the last of the activation and its contexts goes: now, or once the
  /// jobs that are on their way have ended. Contexts of it refuse further runs with kWrongState.
  void release();
  /// A snapshot.
  ActivationFigures figures() const;

 private:
  std::shared_ptr<ActivationState> state_;
};

}  // namespace corelane
