/// Small networks that run without the engine. A call of the engine costs about 3 us before the
/// first multiplication; a network of a few simple f32 operators on a few hundred values is done in
/// a tenth of that, in the caller's thread, step by step.
///
/// This room holds such networks: direct_forms.h makes one for each list of shapes,
/// direct_request.h runs it or passes the job on to the engine, direct_kernels.h has the operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <openvino/core/model.hpp>
#include <span>
#include <vector>

#include "corelane/tensor/desc.h"

namespace corelane::drivers::virtual_npu {

/// Where a step reads: an input of the network, a constant, or what an earlier step wrote.
struct DirectOperand {
  enum class Place : std::uint8_t { kInput, kConstant, kScratch } place = Place::kInput;
  std::size_t at = 0;  ///< The input's index; else the first float.
};

struct DirectStep {
  using Kernel = void (*)(const DirectStep& step, const float* a, const float* b, float* y);
  Kernel kernel = nullptr;
  DirectOperand a;
  DirectOperand b;      ///< As `a` where the operator has one operand.
  std::size_t out = 0;  ///< First float in the scratch memory.
  std::size_t count = 0;
  float low = 0;  ///< Parameters: the bounds of Clamp.
  float high = 0;
  std::size_t m = 0, n = 0, k = 0;            ///< MatMul; Softmax: `n` values a row.
  std::vector<std::uint32_t> from_a, from_b;  ///< Broadcasting: the value of each y.
};

/// Immutable; any thread.
class DirectNetwork {
 public:
  /// Null for networks that are too large or have another operator or type. `inputs`: in the order
  /// of run(), found in the network by their names. The engine's exceptions pass through.
  static std::shared_ptr<const DirectNetwork> make(const ov::Model& network,
                                                   std::span<const TensorDesc> inputs);

  /// Floats of scratch memory that a run needs.
  std::size_t scratch() const noexcept { return scratch_; }
  const Shape& output_shape(std::size_t index) const noexcept { return results_[index].shape; }
  std::size_t output_elements(std::size_t index) const noexcept { return results_[index].count; }
  /// Every pointer valid; outputs may be inputs.
  void run(std::span<const float* const> inputs, std::span<float* const> outputs,
           float* scratch) const noexcept;

 private:
  struct Copy {
    DirectOperand from;
    Shape shape;
    std::size_t count = 0;
  };
  friend class DirectBuilder;

  std::vector<DirectStep> steps_;
  std::vector<Copy> results_;
  std::vector<float> constants_;
  std::size_t scratch_ = 0;
};

/// A network with more ONNX nodes or bytes of constants is never small, and is not read for it.
inline constexpr std::size_t kDirectNodes = 64;
inline constexpr std::size_t kDirectConstantBytes = 65536;

}  // namespace corelane::drivers::virtual_npu
