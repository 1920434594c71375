/// One node of a custom operator as its callbacks see it: tensors, and answers about attributes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/device/host_operator.h"
#include "corelane/tensor/desc.h"
#include "rknn_custom_op.h"

namespace corelane::rknn {

using Attributes = std::map<std::string, device::Attribute, std::less<>>;

/// Answers of rknn_custom_op_get_op_attr: INT64, FLOAT32, or UINT8 for text (its bytes, a zero
/// after them that n_elems does not count; of a list of texts the zeros between them count).
class NodeAttributes {
 public:
  explicit NodeAttributes(const Attributes& attributes);
  /// n_elems 0 and null data when the node has no attribute of that name.
  void answer(const char* name, rknn_custom_op_attr* out) const noexcept;

 private:
  struct Answer {
    rknn_tensor_type type;
    std::uint32_t count;
    ByteVector data;
  };
  std::map<std::string, Answer, std::less<>> answers_;
};

/// The tensors of one call: float kinds as FLOAT32 (converted where they are not), others in their
/// own type. Keeps its memory from call to call.
class CallTensors {
 public:
  /// What is known before the first run: no data, open dimensions 0.
  void describe(const std::vector<TensorDesc>& inputs, const std::vector<TensorDesc>& outputs);
  /// kUnsupported for a tensor of more dimensions than the API has.
  Status fill(const device::HostOperatorCall& call, const std::vector<TensorDesc>& inputs,
              const std::vector<TensorDesc>& outputs);
  /// After `compute`: outputs that are not FLOAT32 in the network take what was computed.
  Status store(const device::HostOperatorCall& call);

  rknn_custom_op_tensor* inputs() noexcept { return inputs_.data(); }
  rknn_custom_op_tensor* outputs() noexcept { return outputs_.data(); }
  std::uint32_t input_count() const noexcept { return static_cast<std::uint32_t>(inputs_.size()); }
  std::uint32_t output_count() const noexcept {
    return static_cast<std::uint32_t>(outputs_.size());
  }

 private:
  std::vector<rknn_custom_op_tensor> inputs_, outputs_;
  std::vector<ByteVector> wide_inputs_, wide_outputs_;
};

}  // namespace corelane::rknn
