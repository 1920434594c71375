/// What one inference reads and writes, checked and by position.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "corelane/session/tensor.h"
#include "corelane/tensor/desc.h"

namespace corelane::device {
class Buffer;
}

namespace corelane::session {

struct CallInput {
  TensorView view;  ///< Model order; the layout says how it lies.
  std::shared_ptr<const void> keep;
  std::shared_ptr<device::Buffer> buffer;  ///< Instead of the view's data.
  std::size_t offset = 0;
  bool captured = false;  ///< A copy of ours in the program's own form, normalised.
};

struct CallOutput {
  std::size_t index = 0;
  Tensor tensor;       ///< The result; with `given`, memory that was there before.
  bool given = false;  ///< `tensor` is to be written, not made.
  std::shared_ptr<device::Buffer> buffer;
  std::size_t offset = 0;
};

struct Call {
  std::vector<CallInput> inputs;    ///< One for each input of the model.
  std::vector<CallOutput> outputs;  ///< Each index at most once.
  /// Positions in `outputs` in the order asked for; empty: as they are.
  std::vector<std::size_t> order;
};

}  // namespace corelane::session
