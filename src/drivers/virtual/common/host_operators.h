/// The custom operators of one program: what its engine calls when it comes to such a node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/sync.h"
#include "corelane/base/status.h"
#include "corelane/device/host_operator.h"
#include "drivers/virtual/common/onnx_patch.h"

namespace corelane::drivers::virtual_npu {

/// Immutable but for the failures; any thread.
///
/// A node fails by an exception or a text through the engine, so the Status waits here under a
/// number that the text carries.
class HostOperators {
 public:
  HostOperators(std::vector<CustomNode> nodes, std::shared_ptr<device::HostOperatorTable> table)
      : nodes_(std::move(nodes)), table_(std::move(table)) {}

  const std::vector<CustomNode>& nodes() const noexcept { return nodes_; }
  /// The shape of an output where input 0 has the shape `input`; null: the node has no input.
  /// kHostOperatorFailed where dimensions stay open.
  Result<Shape> output_shape(std::size_t index, std::size_t output, const Shape* input) const;
  /// Runs node `index`.
  Status call(std::size_t index, std::span<const TensorView> inputs,
              std::span<const MutableTensorView> outputs) const;
  /// Keeps `status` and returns the text to fail with.
  std::string keep(Status status);
  /// Removes and returns the Status that keep() stored for a failure's text; ok when the text has
  /// none of its numbers.
  Status take(std::string_view what);

 private:
  std::vector<CustomNode> nodes_;
  std::shared_ptr<device::HostOperatorTable> table_;
  Mutex mutex_{LockRank::kLeaf};
  std::map<std::uint64_t, Status> failures_ CORELANE_GUARDED_BY(mutex_);
  std::uint64_t next_ CORELANE_GUARDED_BY(mutex_) = 1;
};

}  // namespace corelane::drivers::virtual_npu
