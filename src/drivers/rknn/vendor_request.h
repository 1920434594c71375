/// The tensors of one inference and the context they run in.
#pragma once

#include <memory>
#include <vector>

#include "drivers/rknn/vendor_program.h"

namespace corelane::drivers::rknn {

/// One job at a time. Inputs are copied in and outputs out by the library (rknn_inputs_set,
/// rknn_outputs_get with the caller's memory): the API's zero copy takes memory of its own only.
class VendorRequest final : public device::LaneRequest {
 public:
  VendorRequest(std::shared_ptr<VendorProgram> program, std::unique_ptr<VendorContext> context);
  ~VendorRequest() override;

  Status set_input(std::size_t index, const device::TensorRef& tensor) override;
  Status set_output(std::size_t index, const device::TensorRef& tensor) override;
  Status run(std::uint64_t core_bits) override;
  Result<device::TensorRef> output(std::size_t index) override;
  Result<std::vector<device::LayerTime>> layer_times() const override;

 private:
  struct Slot {
    device::TensorRef bound;
    ByteVector own;   ///< Stands in where nothing is bound.
    ByteVector wire;  ///< In the form of the library, where that is not the caller's.
  };

  Status choose_cores(std::uint64_t core_bits);
  Status hand_over_inputs();
  Status fetch_outputs();
  Status read_outputs(const std::vector<rknn_output>& outputs,
                      const std::vector<rknn_output>& asked);
  Result<rknn_input> input_at(std::size_t index, const Port& port);
  /// After the library refused inputs as NCHW: the 4-D ones as NHWC. False when there is none.
  Result<bool> turn_to_nhwc();

  const std::shared_ptr<VendorProgram> program_;
  const std::unique_ptr<VendorContext> context_;
  std::vector<Port> input_ports_;
  std::vector<Slot> inputs_;
  std::vector<Slot> outputs_;
  std::uint64_t core_bits_ = 0;  ///< Chosen last; 0: never.
};

}  // namespace corelane::drivers::rknn
