/// Custom operators: the callbacks of rknn_register_custom_ops behind the host operators of the
/// runtime.
///
/// One CustomOps is shared by a context and its duplicates, as they share the compiled model. Each
/// node has as many instances (rknn_custom_op_context) as there are contexts, so that every context
/// can run at once; a call takes a free one. An instance is initialised when it is made (at the
/// registration, or at rknn_dup_context after it) and destroyed as contexts go.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/device/host_operator.h"
#include "corelane/onnx/network_nodes.h"
#include "rknn_custom_op.h"

namespace corelane::rknn {

/// All functions from any thread; callbacks are called without a lock.
class CustomOps : public std::enable_shared_from_this<CustomOps> {
 public:
  CustomOps();
  ~CustomOps();
  CustomOps(const CustomOps&) = delete;
  CustomOps& operator=(const CustomOps&) = delete;

  /// One context more; it leaves with the last copy of what is returned, which calls `destroy`.
  Result<std::shared_ptr<const void>> join();
  /// Checks `ops`, calls `init` for each node of their types and makes them known in `table`. All
  /// or nothing.
  Status add(const rknn_custom_op* ops, std::uint32_t count, const std::vector<NetworkNode>& nodes,
             device::HostOperatorTable& table);

  /// Fills `out` for a callback's `context`.
  static void answer(const rknn_custom_op_context* context, const char* name,
                     rknn_custom_op_attr* out) noexcept;

 private:
  struct Instance;
  struct Node;
  struct Operator;
  class Taken;

  using Operators = std::vector<std::shared_ptr<const Operator>>;
  using Nodes = std::vector<std::unique_ptr<Node>>;

  /// Checks `ops` and takes their types, so that nobody else registers them meanwhile.
  Status reserve(const rknn_custom_op* ops, std::uint32_t count, Operators& reserved);
  /// Makes the instances of `nodes` for the contexts there are, then both known at once, or
  /// nothing.
  Status publish(const Operators& added, Nodes& nodes, device::HostOperatorTable& table);
  Status call(const std::shared_ptr<const Operator>& op, const device::HostOperatorCall& call);
  Result<std::unique_ptr<Instance>> make_instance(const Node& node);
  Result<Instance*> take(Node& node);
  void give_back(Instance& instance) noexcept;
  Node& node_of(const std::shared_ptr<const Operator>& op, const device::HostOperatorCall& call);
  Status grow(Node& node, std::size_t wanted);
  void shrink(Node& node, std::size_t wanted) noexcept;
  void leave();

  mutable std::mutex mutex_;
  std::condition_variable free_;
  std::size_t contexts_ = 0;
  std::map<std::string, std::shared_ptr<const Operator>, std::less<>>
      operators_;  ///< Those being registered too.
  Nodes nodes_;
};

}  // namespace corelane::rknn
