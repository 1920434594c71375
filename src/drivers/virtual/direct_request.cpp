#include "drivers/virtual/direct_request.h"

#include <utility>

namespace corelane::virtual_npu {
namespace {

std::size_t elements_of(const TensorDesc& desc) { return desc.shape.elements().value_or(0); }

Status bad_index(std::string_view role, std::size_t index, std::size_t count) {
  return failure(Code::kOutOfRange, "{} {} does not exist, the program has {}", role, index, count);
}

}  // namespace

DirectRequest::DirectRequest(std::shared_ptr<const device::LaneProgram> program,
                             std::shared_ptr<const DirectNetwork> network)
    : program_(std::move(program)), network_(std::move(network)), scratch_(network_->scratch()) {
  for (const TensorDesc& desc : program_->inputs()) {
    inputs_.push_back(own_inputs_.emplace_back(elements_of(desc)).data());
  }
  for (const TensorDesc& desc : program_->outputs()) {
    outputs_.push_back(own_outputs_.emplace_back(elements_of(desc)).data());
  }
  bound_inputs_.resize(inputs_.size());
  bound_outputs_.resize(outputs_.size());
}

Status DirectRequest::set_input(std::size_t index, const device::TensorRef& tensor) {
  if (index >= inputs_.size()) return bad_index("input", index, inputs_.size());
  bound_inputs_[index] = tensor;
  inputs_[index] =
      tensor.data == nullptr ? own_inputs_[index].data() : static_cast<const float*>(tensor.data);
  return {};
}

Status DirectRequest::set_output(std::size_t index, const device::TensorRef& tensor) {
  if (index >= outputs_.size()) return bad_index("output", index, outputs_.size());
  bound_outputs_[index] = tensor;
  outputs_[index] =
      tensor.data == nullptr ? own_outputs_[index].data() : static_cast<float*>(tensor.data);
  return {};
}

Status DirectRequest::run(std::uint64_t) {
  network_->run(inputs_, outputs_, scratch_.data());
  return {};
}

Result<device::TensorRef> DirectRequest::output(std::size_t index) {
  if (index >= outputs_.size()) {
    return tl::unexpected(bad_index("output", index, outputs_.size()));
  }
  device::TensorRef result = bound_outputs_[index];
  const TensorDesc& desc = program_->outputs()[index];
  result.data = outputs_[index];
  result.size = elements_of(desc) * sizeof(float);
  result.shape = desc.shape;
  return result;
}

Result<std::vector<device::LayerTime>> DirectRequest::layer_times() const {
  return error(Code::kUnsupported,
               "this program was prepared without profile_layers; prepare it again with it");
}

}  // namespace corelane::virtual_npu
