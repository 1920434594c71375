/// Custom operators: the host operators of the runtime that call what rknn_register_custom_ops
/// registered.
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
#include <string>
#include <vector>

#include "base/sync.h"
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

  /// Adds a context. It leaves with the last copy of what is returned; `destroy` is called then.
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

  using Operators = std::vector<std::shared_ptr<const Operator>>;
  using Nodes = std::vector<std::unique_ptr<Node>>;
  using Instances = std::vector<std::unique_ptr<Instance>>;

  /// Checks `ops` and takes their types, so that no other call registers them meanwhile.
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
  Instances::iterator wait_for_free(Node& node, MutexLock& lock) CORELANE_REQUIRES(mutex_);
  void shrink(Node& node, std::size_t wanted) noexcept;
  void leave();

  /// Taken under a context's lock and by workers of the device; held while functions are added to
  /// the table of host operators, never while a callback runs.
  mutable Mutex mutex_{LockRank::kDoorOperators};
  std::condition_variable free_;
  std::size_t contexts_ CORELANE_GUARDED_BY(mutex_) = 0;
  /// Includes those that are being registered.
  std::map<std::string, std::shared_ptr<const Operator>, std::less<>> operators_
      CORELANE_GUARDED_BY(mutex_);
  Nodes nodes_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace corelane::rknn
