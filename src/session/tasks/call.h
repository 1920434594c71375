/// What one inference reads and writes, checked and by position.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "corelane/tensor/desc.h"
#include "corelane/tensor/tensor.h"

namespace corelane::device {
class Buffer;
}

namespace corelane::session {

/// Whether the caller of a call stays until its result is delivered.
enum class Caller : std::uint8_t { kWaits, kGoesOn };

struct CallInput {
  TensorView view;  ///< Dimensions in the model's order; the layout says how they lie.
  std::shared_ptr<const void> keep;
  std::shared_ptr<device::Buffer> buffer;  ///< Instead of the view's data.
  std::size_t offset = 0;
  bool captured = false;  ///< The session's own copy, in the program's form and normalised.
};

struct CallOutput {
  std::size_t index = 0;
  Tensor tensor;       ///< The result.
  bool given = false;  ///< `tensor` is memory of the caller, to be written.
  std::shared_ptr<device::Buffer> buffer;
  std::size_t offset = 0;
};

struct Call {
  std::vector<CallInput> inputs;    ///< One for each input of the model.
  std::vector<CallOutput> outputs;  ///< Each index at most once.
  /// Positions in `outputs` in the order asked for; empty: as they are.
  std::vector<std::size_t> order;
  /// A call by a binding. Its user may hold the binding meanwhile, and callbacks may want it: the
  /// call does not wait for pending callbacks.
  bool bound = false;
};

}  // namespace corelane::session
