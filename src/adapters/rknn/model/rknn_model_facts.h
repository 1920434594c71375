/// What the parts of a model's context share, and no part changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "adapters/rknn/api/rknn_chip.h"
#include "adapters/rknn/model/rknn_attr.h"
#include "corelane/device/host_operator.h"
#include "corelane/program/description.h"
#include "rknn_api.h"

namespace corelane::device {
class Device;
}  // namespace corelane::device

namespace corelane::rknn {

/// For each listed set the shape of each output.
using SetOutputs = std::vector<std::vector<std::optional<Shape>>>;

/// Constant once rknn_init or rknn_dup_context has returned; read from any thread.
struct ModelFacts {
  std::uint32_t flags = 0;  ///< RKNN_FLAG_*.
  rknn_context number = 0;  ///< The context's handle.
  std::shared_ptr<device::Device> device;
  Chip chip;
  std::shared_ptr<const ProgramDescription> description;
  /// The shapes of the outputs in each listed set, where no set is the largest in all dimensions.
  /// An output whose shape only a run decides has none.
  SetOutputs set_outputs;
  Duration timeout{0};  ///< Of runs whose caller sets none; 0: none.
  /// Where external data of an ONNX file lie whose bytes are read from other memory; else empty.
  std::filesystem::path folder;
  std::size_t program_bytes = 0;  ///< Of the program: what rknn_set_weight_mem must hold.
  /// Bytes of intermediate results, 0 until somebody asks. Duplicates share the number: a form's
  /// figure grows with its contexts.
  std::shared_ptr<std::atomic<std::size_t>> internal_bytes =
      std::make_shared<std::atomic<std::size_t>>(0);
  std::shared_ptr<device::HostOperatorTable> operators =
      std::make_shared<device::HostOperatorTable>();

  bool has(std::uint32_t flag) const noexcept { return (flags & flag) != 0; }
  /// Two frames that take turns.
  bool asynchronous() const noexcept { return has(RKNN_FLAG_ASYNC_MASK); }
  IoTensor input(std::size_t index, const Shape& shape) const {
    return {&description->inputs[index], shape, Side::kInput, static_cast<std::uint32_t>(index)};
  }
  IoTensor output(std::size_t index, const Shape& shape) const {
    return {&description->outputs[index], shape, Side::kOutput, static_cast<std::uint32_t>(index)};
  }
};

/// The listed sets that no other covers: of which no other has all dimensions at least as large.
std::vector<std::vector<Shape>> largest_sets(const ProgramDescription& description);

/// The shapes that are current first: of several allowed ones those with most elements. If only
/// dimension 0 is open, it is 1. Empty: there is no choice, or it cannot be made here.
std::vector<Shape> first_shapes(const ProgramDescription& description);

}  // namespace corelane::rknn
