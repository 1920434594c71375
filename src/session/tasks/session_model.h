/// The inputs and outputs of a session's model as callers see them: names, forms, checks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/program/description.h"
#include "corelane/tensor/convert.h"
#include "session/tasks/call.h"

namespace corelane {

struct FeedItem;
using Feed = std::vector<FeedItem>;
struct SessionOptions;
enum class InputLayout : std::uint8_t;
enum class InputRules : std::uint8_t;
enum class OutputForm : std::uint8_t;

namespace session {

/// Immutable after it is made; any thread.
class SessionModel {
 public:
  SessionModel(ProgramDescription description, std::vector<TensorDesc> inputs,
               std::vector<TensorDesc> outputs, const SessionOptions& options);

  const ProgramDescription& description() const noexcept { return description_; }
  const std::vector<TensorDesc>& native_inputs() const noexcept { return inputs_; }
  const std::vector<TensorDesc>& native_outputs() const noexcept { return outputs_; }
  /// As run() takes and gives them.
  std::vector<TensorDesc> shown_inputs() const;
  std::vector<TensorDesc> shown_outputs() const;
  /// True where inputs may have other shapes than the declared ones.
  bool has_open_shapes() const noexcept { return open_shapes_; }
  /// True where all results have the declared shapes.
  bool has_fixed_results() const noexcept { return fixed_results_; }

  Result<std::size_t> input_index(std::string_view name) const;
  Result<std::size_t> output_index(std::string_view name) const;
  /// One input, in model order; everything but what depends on the other inputs is checked.
  /// `samples`: dimension 0 may hold any number of samples.
  Result<TensorView> check_input(std::size_t index, const TensorView& given,
                                 bool samples = false) const;
  /// All inputs, by position.
  Result<std::vector<CallInput>> check_feed(const Feed& feed, bool samples = false) const;
  /// kShapeMismatch unless these shapes, or those of their samples, go together.
  Status check_shapes(std::span<const CallInput> inputs, bool samples = false) const;
  /// Fills `outputs` and `order` of a call.
  Status choose_outputs(const std::vector<std::string>& names, Call& call) const;

  /// How input `index` is converted to the program's form.
  const ConvertOptions& convert(std::size_t index) const noexcept { return convert_[index]; }
  /// True when the device can read it as it is.
  bool is_direct(std::size_t index, const TensorView& view) const noexcept;
  /// A copy in the program's form.
  Status capture(std::size_t index, CallInput& input) const;
  /// Type and quantization that run() gives for an output of this native type.
  DType result_dtype(std::size_t index, DType native) const noexcept;
  const Quant& result_quant(std::size_t index) const noexcept;

 private:
  /// kUnsupported where an input or output has no samples.
  Status check_samples() const;
  Status check_dtype(std::size_t index, const TensorView& given) const;
  bool is_nhwc(const Shape& shape) const noexcept;
  /// The description of an output that run() gives in its quantized form; null for others.
  const IoEntry* raw_output(std::size_t index) const noexcept;

  const ProgramDescription description_;
  const std::vector<TensorDesc> inputs_;
  const std::vector<TensorDesc> outputs_;
  const InputLayout layout_;
  const InputRules rules_;
  const OutputForm form_;
  bool open_shapes_ = false;
  bool fixed_results_ = false;
  std::vector<ConvertOptions> convert_;
};

}  // namespace session
}  // namespace corelane
