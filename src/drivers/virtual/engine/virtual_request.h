/// Tensors bound to one compiled copy, and the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <openvino/runtime/infer_request.hpp>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/driver/lane_engine.h"
#include "drivers/virtual/engine/compiled_copy.h"

namespace corelane::drivers::virtual_npu {

class VirtualProgram;

/// Memory is wrapped, never copied, and given to the engine only when it changes (binding costs
/// 2 to 5 us, a small inference 3). Exception: an output with open dimensions is computed in the
/// engine's memory and copied to the bound one once its size is known.
class VirtualRequest final : public device::LaneRequest {
 public:
  /// `never_throws`: see network.h.
  static Result<std::unique_ptr<device::LaneRequest>> create(
      std::shared_ptr<VirtualProgram> program, std::shared_ptr<const CompiledCopy> copy,
      bool never_throws);

  Status set_input(std::size_t index, const device::TensorRef& tensor) override;
  Status set_output(std::size_t index, const device::TensorRef& tensor) override;
  Status run(std::uint64_t core_bits) override;
  Result<device::TensorRef> output(std::size_t index) override;
  Result<std::vector<device::LayerTime>> layer_times() const override;

 private:
  struct Slot {
    device::TensorRef bound;  ///< Null data: a tensor of the engine.
    ov::Tensor own;           ///< That tensor, once asked for, and the result of an open output.
  };

  VirtualRequest(std::shared_ptr<VirtualProgram> program, std::shared_ptr<const CompiledCopy> copy);
  Status check_inputs();
  Status infer();
  Status fetch_open_outputs();

  std::shared_ptr<VirtualProgram> program_;
  std::shared_ptr<const CompiledCopy> copy_;
  std::vector<Slot> inputs_;
  std::vector<Slot> outputs_;
  std::vector<std::size_t> open_inputs_;
  std::vector<std::size_t> open_outputs_;
  std::vector<Shape> checked_;  ///< Shapes of the inputs that fit; empty: none yet.
  bool through_queue_ = false;  ///< Must not run in the caller's thread.
  bool measured_ = false;
  bool ran_ = false;
  // Last, so that it is destroyed before the copy it belongs to. Mutable, since the engine's
  // getters are not const.
  mutable ov::InferRequest request_;
};

/// "jit_avx512_I8" -> kI8; kUndefined when the name ends in none.
DType kernel_dtype(std::string_view kernel) noexcept;

}  // namespace corelane::drivers::virtual_npu
