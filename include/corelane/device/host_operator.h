/// Host operators: custom operators of a model that run as a callback on the CPU.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"

namespace corelane::device {

using Attribute = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>,
                               std::vector<float>, std::vector<std::string>>;

/// One node of the model with its tensors for this run; valid during the call only.
struct HostOperatorCall {
  std::string_view type;  ///< Operator type, such as "MyOp".
  std::string_view name;  ///< Node name.
  const std::map<std::string, Attribute, std::less<>>& attributes;
  std::span<const TensorView> inputs;
  std::span<const MutableTensorView> outputs;
};

/// Computes the outputs. Called on a lane's thread, for one job at a time per context but from
/// several lanes at once. A failure or an exception fails that inference with kHostOperatorFailed.
using HostOperator = std::function<Status(const HostOperatorCall&)>;

/// Type -> callback. May be filled after an executable was prepared with it; a type that is still
/// missing when a job runs fails that job with kHostOperatorMissing. Any thread.
class CORELANE_API HostOperatorTable {
 public:
  /// Has no operators.
  HostOperatorTable();
  ~HostOperatorTable();
  HostOperatorTable(const HostOperatorTable&) = delete;
  HostOperatorTable& operator=(const HostOperatorTable&) = delete;

  /// kWrongState when the type has one already; kInvalidArgument for an empty type or callback.
  Status add(std::string type, HostOperator op);
  /// Nothing where there is none.
  void remove(std::string_view type);
  /// Empty when there is none. The callback may run after remove() while a job holds it.
  HostOperator find(std::string_view type) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace corelane::device
