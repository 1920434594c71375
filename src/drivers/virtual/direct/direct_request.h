/// Tensors bound to a program that may run without the engine, and the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/driver/lane_engine.h"
#include "drivers/virtual/direct/direct_forms.h"

namespace corelane::drivers::virtual_npu {

/// Reads and writes bound memory in place; tensors that are not bound have memory of the request.
/// Shapes that give no direct network run on a request of the engine, made at the first of them.
class DirectRequest final : public device::LaneRequest {
 public:
  using MakeRequest = std::function<Result<std::unique_ptr<device::LaneRequest>>()>;

  DirectRequest(std::shared_ptr<const device::LaneProgram> program,
                std::shared_ptr<DirectForms> forms, MakeRequest engine_request);

  Status set_input(std::size_t index, const device::TensorRef& tensor) override;
  Status set_output(std::size_t index, const device::TensorRef& tensor) override;
  Status run(std::uint64_t core_bits) override;
  Result<device::TensorRef> output(std::size_t index) override;
  Result<std::vector<device::LayerTime>> layer_times() const override;

 private:
  void choose_form();
  Status place_outputs();
  Status run_engine(std::uint64_t core_bits);

  std::shared_ptr<const device::LaneProgram> program_;
  std::shared_ptr<DirectForms> forms_;
  MakeRequest make_engine_;
  std::unique_ptr<device::LaneRequest> engine_;  ///< Null until it is needed.

  std::vector<device::TensorRef> inputs_;
  std::vector<device::TensorRef> outputs_;
  std::vector<std::vector<float>> own_inputs_;  ///< Where a static input is not bound.
  std::vector<std::vector<float>> own_outputs_;
  std::vector<const float*> input_data_;
  std::vector<float*> output_data_;
  std::vector<float> scratch_;

  bool changed_ = true;     ///< Bindings, since the last run.
  bool by_engine_ = false;  ///< The last run was the engine's.
  bool ran_ = false;
  std::vector<Shape> shapes_;  ///< Of the inputs, of network_.
  std::shared_ptr<const DirectNetwork> network_;
};

}  // namespace corelane::drivers::virtual_npu
