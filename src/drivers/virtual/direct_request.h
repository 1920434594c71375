/// Tensors bound to a direct network, and the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "corelane/base/status.h"
#include "device/lane_engine.h"
#include "drivers/virtual/direct_network.h"

namespace corelane::virtual_npu {

/// Reads and writes bound memory where it lies; what is not bound is memory of its own.
class DirectRequest final : public device::LaneRequest {
 public:
  DirectRequest(std::shared_ptr<const device::LaneProgram> program,
                std::shared_ptr<const DirectNetwork> network);

  Status set_input(std::size_t index, const device::TensorRef& tensor) override;
  Status set_output(std::size_t index, const device::TensorRef& tensor) override;
  Status run(std::uint64_t core_bits) override;
  Result<device::TensorRef> output(std::size_t index) override;
  Result<std::vector<device::LayerTime>> layer_times() const override;

 private:
  std::shared_ptr<const device::LaneProgram> program_;
  std::shared_ptr<const DirectNetwork> network_;
  std::vector<device::TensorRef> bound_inputs_;
  std::vector<device::TensorRef> bound_outputs_;
  std::vector<std::vector<float>> own_inputs_;
  std::vector<std::vector<float>> own_outputs_;
  std::vector<const float*> inputs_;
  std::vector<float*> outputs_;
  std::vector<float> scratch_;
};

}  // namespace corelane::virtual_npu
