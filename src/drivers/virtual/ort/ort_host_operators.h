/// Custom operators of a program as operators of the engine: each custom node is one, which calls
/// the host operator table when it runs.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/virtual/common/host_operators.h"
#include "drivers/virtual/ort/ort_library.h"

namespace corelane::drivers::virtual_npu::ort {

using OwnedCustomOpDomain = OrtOwned<OrtCustomOpDomain, entry::ReleaseCustomOpDomain>;

/// The host operators of one program; must outlive its sessions. Any thread.
class OrtHostOperators {
 public:
  /// kUnsupportedModel where the type of an output cannot be known.
  static Result<std::unique_ptr<OrtHostOperators>> make(
      const OrtLibrary& library, std::vector<CustomNode> nodes,
      std::shared_ptr<device::HostOperatorTable> table);

  /// Makes the operators known to a session.
  Status add_to(OrtSessionOptions* options) const;
  /// As HostOperators::take().
  Status take(std::string_view what) { return operators_.take(what); }
  /// Writes the network's own type over the name of an operator made here.
  void give_back_type(std::string& type) const;

 private:
  /// What the engine holds of one node. It is the engine's kernel, too, since it has no state.
  struct Node : OrtCustomOp {
    OrtHostOperators* all = nullptr;
    std::size_t index = 0;
    std::string name;
    const CustomNode& facts() const { return all->operators_.nodes()[index]; }
  };

  OrtHostOperators(const OrtLibrary& library, std::vector<CustomNode> nodes,
                   std::shared_ptr<device::HostOperatorTable> table)
      : library_(library), operators_(std::move(nodes), std::move(table)) {}

  Status add(std::size_t index);
  static void set_functions(OrtCustomOp& op);
  static const Node& of(const OrtCustomOp* op) { return *static_cast<const Node*>(op); }
  static ONNXTensorElementDataType output_type(const OrtCustomOp* op, std::size_t index);
  static OrtStatus* compute(void* kernel, OrtKernelContext* context) noexcept;
  Status run(const Node& node, OrtKernelContext* context) const;
  Result<TensorView> input(const Node& node, OrtKernelContext* context, std::size_t index) const;

  const OrtLibrary& library_;
  HostOperators operators_;
  std::vector<std::unique_ptr<Node>> nodes_;  ///< The engine keeps their addresses.
  OwnedCustomOpDomain domain_;
};

}  // namespace corelane::drivers::virtual_npu::ort
