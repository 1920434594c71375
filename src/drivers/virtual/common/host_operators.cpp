#include "drivers/virtual/common/host_operators.h"

#include <charconv>
#include <utility>

#include "base/guard.h"

namespace corelane::drivers::virtual_npu {
namespace {

constexpr std::string_view kMarker = "corelane-host-operator#";
/// Bounds the failures that no job collects, because it was abandoned.
constexpr std::size_t kMaxKept = 64;

}  // namespace

/// Declared dimensions win; open ones follow input 0 where the ranks agree. A classifier's labels
/// [N] go with its samples [N, features].
Result<Shape> HostOperators::output_shape(std::size_t index, std::size_t output,
                                          const Shape* input) const {
  const CustomNode& node = nodes_[index];
  const bool declared = output < node.output_shapes.size();
  if (!declared && input != nullptr) return *input;
  Shape shape = declared ? node.output_shapes[output] : Shape{Shape::kOpen};
  const bool same_rank = input != nullptr && input->rank() == shape.rank();
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] != Shape::kOpen) continue;
    if (same_rank || (i == 0 && input != nullptr && input->rank() > 0)) shape[i] = (*input)[i];
  }
  if (shape.is_static()) return shape;
  return error(Code::kHostOperatorFailed,
               "custom operator '{}' (node '{}'): output {} has shape {}, whose open dimensions do "
               "not follow from input 0; give it sizes in the model's value_info, or fix the "
               "model's open dimensions",
               node.type, node.name, output, shape.to_string());
}

/// Called from the engine's threads, one call for each run of the node; what the callback throws
/// stays here.
Status HostOperators::call(std::size_t index, std::span<const TensorView> inputs,
                           std::span<const MutableTensorView> outputs) const {
  const CustomNode& node = nodes_[index];
  if (!node.refusal.empty())
    return error(Code::kHostOperatorFailed, "custom operator '{}' (node '{}') cannot run: {}",
                 node.type, node.name, node.refusal);
  const device::HostOperator op = table_ ? table_->find(node.type) : device::HostOperator{};
  if (!op)
    return error(Code::kHostOperatorMissing,
                 "custom operator '{}' (node '{}') has no implementation; register one under that "
                 "type before the inference",
                 node.type, node.name);
  const device::HostOperatorCall call{node.type, node.name, node.attributes, inputs, outputs};
  const Status status = no_throw(
      "its callback", [&] { return op(call); }, Code::kHostOperatorFailed);
  if (status.ok()) return {};
  return status.wrap(Code::kHostOperatorFailed,
                     "custom operator '" + node.type + "' (node '" + node.name + "') failed");
}

/// Where no job takes them, the oldest are dropped.
std::string HostOperators::keep(Status status) {
  const MutexLock lock(mutex_);
  if (failures_.size() >= kMaxKept) failures_.erase(failures_.begin());
  const std::uint64_t id = next_++;
  failures_.emplace(id, std::move(status));
  return std::string(kMarker) + std::to_string(id) + ";";
}

/// An engine's message may quote the marker anywhere.
Status HostOperators::take(std::string_view what) {
  const auto at = what.find(kMarker);
  if (at == std::string_view::npos) return {};
  const std::string_view digits = what.substr(at + kMarker.size());
  std::uint64_t id = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), id);
  const MutexLock lock(mutex_);
  const auto found = failures_.find(id);
  if (found == failures_.end())
    return error(Code::kHostOperatorFailed, "a custom operator failed; its report was dropped");
  Status status = std::move(found->second);
  failures_.erase(found);
  return status;
}

}  // namespace corelane::drivers::virtual_npu
