#include "adapters/rknn/custom/rknn_custom.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "adapters/rknn/api/rknn_log.h"
#include "adapters/rknn/custom/rknn_custom_node.h"
#include "adapters/rknn/model/rknn_context_lock.h"
#include "base/guard.h"
#include "base/leaked.h"
#include "edge/handle_table.h"

namespace corelane::rknn {

/// A copy of what was registered: the caller's struct may go.
struct CustomOps::Operator {
  std::string type;
  rknn_custom_op op{};
};

/// One node of the network, known by its type, its name and, where names are used twice, its
/// attributes.
struct CustomOps::Node {
  std::shared_ptr<const Operator> op;
  std::string name;
  Attributes attributes;
  std::vector<TensorDesc> inputs, outputs;
  std::shared_ptr<const NodeAttributes> answers;
  Instances instances;  ///< Guarded by the mutex of CustomOps.
};

struct CustomOps::Instance {
  using Callback = int (*)(rknn_custom_op_context*, rknn_custom_op_tensor*, std::uint32_t,
                           rknn_custom_op_tensor*, std::uint32_t);

  std::shared_ptr<const Operator> op;
  std::string node;
  rknn_custom_op_context context{};
  rknn_custom_op_interal_context number = 0;  ///< Its answers; callbacks may overwrite `context`.
  CallTensors tensors;
  bool busy = false;     ///< Guarded by the mutex of CustomOps.
  bool skipped = false;  ///< `init` left the node to the library.
  ~Instance();
  /// Calls back, if there is a callback; `code` is what it returned.
  Status call(const char* what, Callback callback, int* code);
};

namespace {

/// Answers by rknn_custom_op_context::internal_ctx, which is looked up and never followed.
edge::HandleTable<const NodeAttributes>& answers() {
  // Never destroyed: contexts may be left at exit.
  static Leaked<edge::HandleTable<const NodeAttributes>> answers(1);
  return *answers;
}

/// Calls back; an exception is reported as an error code.
template <class F>
Status call_back(const char* what, int* code, F&& call) {
  *code = RKNN_ERR_FAIL;  // If it throws.
  return no_throw(
      what,
      [&]() -> Status {
        *code = call();
        if (*code == RKNN_SUCC) return {};
        return error(Code::kHostOperatorFailed, "{} returned {}", what, *code);
      },
      Code::kHostOperatorFailed);
}

std::string type_of_operator(const rknn_custom_op& op) {
  return std::string(op.op_type, strnlen(op.op_type, sizeof op.op_type));
}

}  // namespace

Status CustomOps::Instance::call(const char* what, Callback callback, int* code) {
  *code = RKNN_SUCC;
  if (callback == nullptr) return {};
  context.internal_ctx = number;
  Status status = call_back(what, code, [&] {
    return callback(&context, tensors.inputs(), tensors.input_count(), tensors.outputs(),
                    tensors.output_count());
  });
  context.internal_ctx = number;
  return status;
}

/// `destroy`, once for each that was initialised.
CustomOps::Instance::~Instance() {
  if (number == 0) return;
  if (op->op.destroy != nullptr && !skipped) {
    const OperatorScope scope;
    int code = RKNN_SUCC;
    context.internal_ctx = number;
    const Status status = call_back("destroy", &code, [&] { return op->op.destroy(&context); });
    if (!status.ok())
      log::line(log::Level::kWarn, "custom operator '{}' (node '{}'): {}", op->type, node,
                status.message());
  }
  answers().take(number);
}

CustomOps::CustomOps() = default;
CustomOps::~CustomOps() = default;

/// Counted first and grown afterwards: `init` runs without the lock, and a node that is published
/// meanwhile counts this context itself.
Result<std::shared_ptr<const void>> CustomOps::join() {
  std::vector<Node*> nodes;
  std::size_t wanted = 0;
  {
    const MutexLock lock(mutex_);
    wanted = ++contexts_;
    for (const auto& node : nodes_) nodes.push_back(node.get());
  }
  std::shared_ptr<const void> share(static_cast<const void*>(this),
                                    [self = shared_from_this()](const void*) { self->leave(); });
  for (Node* node : nodes) CORELANE_TRY(grow(*node, wanted));
  return share;
}

void CustomOps::leave() {
  std::vector<Node*> nodes;
  std::size_t wanted = 0;
  {
    const MutexLock lock(mutex_);
    wanted = --contexts_;
    for (const auto& node : nodes_) nodes.push_back(node.get());
  }
  for (Node* node : nodes) shrink(*node, wanted);
}

Status CustomOps::grow(Node& node, std::size_t wanted) {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (node.instances.size() >= wanted) return {};
    }
    CORELANE_ASSIGN(std::unique_ptr<Instance> made, make_instance(node));
    const MutexLock lock(mutex_);
    // If another thread was faster, there is one too many until leave() removes it.
    node.instances.push_back(std::move(made));
    free_.notify_all();
  }
}

CustomOps::Instances::iterator CustomOps::wait_for_free(Node& node, MutexLock& lock) {
  for (;;) {
    const auto found = std::find_if(node.instances.begin(), node.instances.end(),
                                    [](const auto& instance) { return !instance->busy; });
    if (found != node.instances.end()) return found;
    free_.wait(lock.native());
  }
}

/// Waits for an instance that no run uses; `destroy` is never called during `compute`.
void CustomOps::shrink(Node& node, std::size_t wanted) noexcept {
  for (;;) {
    std::unique_ptr<Instance> gone;  // Its `destroy` runs after the lock.
    MutexLock lock(mutex_);
    if (node.instances.size() <= wanted) return;
    const auto found = wait_for_free(node, lock);
    gone = std::move(*found);
    node.instances.erase(found);
  }
}

Result<std::unique_ptr<CustomOps::Instance>> CustomOps::make_instance(const Node& node) {
  auto made = std::make_unique<Instance>();
  Instance& instance = *made;
  instance.op = node.op;
  instance.node = node.name;
  instance.context.target = node.op->op.target;
  instance.number = answers().add(node.answers);
  instance.tensors.describe(node.inputs, node.outputs);
  const OperatorScope scope;
  int code = RKNN_SUCC;
  const Status status = instance.call("init", node.op->op.init, &code);
  if (status.ok()) return made;
  instance.skipped = true;  // What was not initialised is not destroyed.
  if (code != RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE)
    return error(status.wrap(
        fmt::format("custom operator '{}' (node '{}') failed", node.op->type, node.name)));
  log::write(log::Level::kWarn,
             fmt::format("custom operator '{}' (node '{}'): init left the node to the library, "
                         "which has no operator of that type; runs will fail",
                         node.op->type, node.name));
  return made;
}

/// Types are taken before `init` is called, without the lock, so that two calls cannot both
/// register one.
Status CustomOps::reserve(const rknn_custom_op* ops, std::uint32_t count, Operators& reserved) {
  if (ops == nullptr || count == 0)
    return error(Code::kInvalidArgument,
                 "no operators given; pass an array of rknn_custom_op and its length");
  const MutexLock lock(mutex_);
  for (std::uint32_t i = 0; i < count; ++i) {
    const rknn_custom_op& op = ops[i];
    const std::string type = type_of_operator(op);
    if (type.empty() || type.size() == sizeof op.op_type)
      return error(Code::kInvalidArgument,
                   "op[{}].op_type has {} characters; 1 to {} and a zero after them are allowed", i,
                   type.size(), sizeof op.op_type - 1);
    if (op.target == RKNN_TARGET_TYPE_GPU)
      return error(Code::kInvalidArgument,
                   "op[{}] '{}': target is the GPU, which this device does not have; give "
                   "RKNN_TARGET_TYPE_CPU and a compute callback",
                   i, type);
    if (op.target != RKNN_TARGET_TYPE_CPU)
      return error(Code::kInvalidArgument,
                   "op[{}] '{}': target {} does not exist; use {} (the CPU)", i, type,
                   static_cast<std::uint32_t>(op.target), static_cast<int>(RKNN_TARGET_TYPE_CPU));
    if (op.compute == nullptr)
      return error(Code::kInvalidArgument,
                   "op[{}] '{}' has no compute callback{}; give `compute`, which gets float "
                   "tensors in the model's order",
                   i, type,
                   op.compute_native == nullptr ? "" : ", and compute_native is not supported");
    const auto same = [&](const std::shared_ptr<const Operator>& o) { return o->type == type; };
    if (operators_.contains(type) || std::any_of(reserved.begin(), reserved.end(), same))
      return error(Code::kWrongState,
                   "op[{}] '{}' is registered already; register each type once, duplicates of a "
                   "context have it as well",
                   i, type);
    reserved.push_back(std::make_shared<const Operator>(Operator{type, op}));
  }
  for (const auto& op : reserved) operators_.emplace(op->type, op);
  return {};
}

Status CustomOps::publish(const Operators& added, Nodes& nodes, device::HostOperatorTable& table) {
  std::size_t wanted = 0;
  for (;;) {
    for (const auto& node : nodes) {
      CORELANE_TRY(grow(*node, wanted));
      shrink(*node, wanted);
    }
    const MutexLock lock(mutex_);
    // Contexts that joined or left meanwhile did not see these nodes: count again.
    if (std::exchange(wanted, contexts_) != contexts_) continue;
    for (std::size_t i = 0; i < added.size(); ++i) {
      Status status = table.add(added[i]->type, [self = shared_from_this(), op = added[i]](
                                                    const device::HostOperatorCall& call) {
        return self->call(op, call);
      });
      if (status.ok()) continue;
      while (i-- > 0) table.remove(added[i]->type);
      return status;
    }
    for (auto& node : nodes) nodes_.push_back(std::move(node));
    return {};
  }
}

Status CustomOps::add(const rknn_custom_op* ops, std::uint32_t count,
                      const std::vector<NetworkNode>& nodes, device::HostOperatorTable& table) {
  Operators added;
  CORELANE_TRY(reserve(ops, count, added));
  Nodes own;
  for (const auto& op : added) {
    const std::size_t before = own.size();
    for (const NetworkNode& node : nodes) {
      if (node.type != op->type) continue;
      auto made = std::make_unique<Node>();
      made->op = op;
      made->name = node.name;
      made->attributes = node.attributes;
      made->inputs = node.inputs;
      made->outputs = node.outputs;
      made->answers = std::make_shared<const NodeAttributes>(made->attributes);
      own.push_back(std::move(made));
    }
    if (own.size() == before)
      log::line(log::Level::kWarn,
                "rknn_register_custom_ops: no node of the model's graph has the type '{}'",
                op->type);
  }
  Status status = publish(added, own, table);
  if (status.ok()) return status;
  const MutexLock lock(mutex_);
  for (const auto& op : added) operators_.erase(op->type);
  return status;
}

/// A node that the graph does not show (it is inside a function or a loop) is added at its first
/// run.
CustomOps::Node& CustomOps::node_of(const std::shared_ptr<const Operator>& op,
                                    const device::HostOperatorCall& call) {
  const MutexLock lock(mutex_);
  for (const auto& node : nodes_)
    if (node->op == op && node->name == call.name && node->attributes == call.attributes)
      return *node;
  auto made = std::make_unique<Node>();
  made->op = op;
  made->name = std::string(call.name);
  made->attributes = call.attributes;
  for (const TensorView& view : call.inputs)
    made->inputs.push_back({.dtype = view.dtype, .shape = view.shape});
  for (const MutableTensorView& view : call.outputs)
    made->outputs.push_back({.dtype = view.dtype, .shape = view.shape});
  made->answers = std::make_shared<const NodeAttributes>(made->attributes);
  return *nodes_.emplace_back(std::move(made));
}

/// Nodes are never removed, so that `node` stays valid without the lock.
Result<CustomOps::Instance*> CustomOps::take(Node& node) {
  MutexLock lock(mutex_);
  if (node.instances.empty()) {
    const std::size_t wanted = std::max<std::size_t>(contexts_, 1);
    lock.unlock();
    CORELANE_TRY(grow(node, wanted));
    lock.lock();
  }
  // There is one for each context; two runs of one context (ASYNC_MASK) wait for each other.
  Instance* const found = wait_for_free(node, lock)->get();
  found->busy = true;
  return found;
}

void CustomOps::give_back(Instance& instance) noexcept {
  const MutexLock lock(mutex_);
  instance.busy = false;
  free_.notify_all();
}

Status CustomOps::call(const std::shared_ptr<const Operator>& op,
                       const device::HostOperatorCall& call) {
  Node& node = node_of(op, call);
  CORELANE_ASSIGN(Instance* const taken, take(node));
  auto back = [this](Instance* used) { give_back(*used); };
  const std::unique_ptr<Instance, decltype(back)> instance(taken, back);
  if (instance->skipped)
    return error(Code::kHostOperatorMissing,
                 "init left the node to the library's own operator (code {}), and there is none "
                 "of that type; compute it in the callback, or build the model without it",
                 RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE);
  CallTensors& tensors = instance->tensors;
  CORELANE_TRY(tensors.fill(call, node.inputs, node.outputs));
  const OperatorScope scope;
  int code = RKNN_SUCC;
  CORELANE_TRY(instance->call("prepare", op->op.prepare, &code));
  CORELANE_TRY(instance->call("compute", op->op.compute, &code));
  return tensors.store(call);
}

void CustomOps::answer(const rknn_custom_op_context* context, const char* name,
                       rknn_custom_op_attr* out) noexcept {
  if (out == nullptr) return;
  *out = {};
  if (name == nullptr) return;
  std::strncpy(out->name, name, sizeof out->name - 1);
  if (context == nullptr) return;
  if (const auto node = answers().find(context->internal_ctx)) node->answer(name, out);
}

}  // namespace corelane::rknn
