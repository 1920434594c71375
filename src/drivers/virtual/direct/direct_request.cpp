#include "drivers/virtual/direct/direct_request.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "drivers/virtual/common/request_errors.h"

namespace corelane::drivers::virtual_npu {
namespace {

class DirectRequest final : public device::LaneRequest {
 public:
  DirectRequest(std::shared_ptr<const device::LaneProgram> program,
                std::shared_ptr<DirectForms> forms, MakeRequest engine_request)
      : program_(std::move(program)),
        forms_(std::move(forms)),
        make_engine_(std::move(engine_request)),
        inputs_(program_->inputs().size()),
        outputs_(program_->outputs().size()),
        own_inputs_(inputs_.size()),
        own_outputs_(outputs_.size()),
        input_data_(inputs_.size()),
        output_data_(outputs_.size()) {}

  /// Shapes are compared at the next run, not here: setting a tensor must cost next to nothing.
  Status set_input(std::size_t index, const device::TensorRef& tensor) override {
    inputs_[index] = tensor;
    changed_ = true;
    return {};
  }

  Status set_output(std::size_t index, const device::TensorRef& tensor) override {
    outputs_[index] = tensor;
    changed_ = true;
    return {};
  }

  /// A form for other shapes is found in the run; the first one of them takes longer.
  bool is_brief() const noexcept override {
    if (network_ == nullptr) return false;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (!program_->inputs()[i].shape.is_static() &&
          (inputs_[i].data == nullptr || inputs_[i].shape != shapes_[i]))
        return false;
    return true;
  }

  /// Computes in the calling thread; nothing is allocated while the bindings stay the same.
  Status run(std::uint64_t core_bits) override {
    if (changed_) {
      try {
        choose_form();
      } catch (...) {
        network_ = nullptr;  // Without memory for it: nothing of these shapes is known.
        shapes_.clear();
        throw;
      }
      if (network_) CORELANE_TRY(place_outputs());
      changed_ = false;
    }
    if (!network_) return run_engine(core_bits);
    if (by_engine_) rest_engine();
    by_engine_ = false;
    network_->run(input_data_, output_data_, scratch_.data());
    ran_ = true;
    return {};
  }

  bool lost() const noexcept override { return by_engine_ && engine_ && engine_->lost(); }

  /// Before the first run a static output has its shape and memory already.
  Result<device::TensorRef> output(std::size_t index) override {
    if (by_engine_) return engine_->output(index);
    const TensorDesc& desc = program_->outputs()[index];
    if (!ran_ && !desc.shape.is_static()) return error(no_shape_yet(desc));
    device::TensorRef result = outputs_[index];
    result.shape = ran_ ? network_->output_shape(index) : desc.shape;
    result.size = result.shape.elements().value_or(0) * sizeof(float);
    if (result.data == nullptr) {
      own_outputs_[index].resize(result.size / sizeof(float));
      result.data = own_outputs_[index].data();
    }
    return result;
  }

  Result<std::vector<device::LayerTime>> layer_times() const override {
    return error(not_profiled());
  }

 private:
  /// Sets network_ for the shapes that are bound, and where it reads. Null: the engine runs them.
  void choose_form() {
    bool known = !shapes_.empty();
    shapes_.resize(inputs_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Shape& declared = program_->inputs()[i].shape;
      const bool bound = inputs_[i].data != nullptr;
      if (!bound && !declared.is_static()) {
        network_ = nullptr;  // The engine's request reports that it is missing.
        shapes_.clear();
        return;
      }
      const Shape& shape = bound && !declared.is_static() ? inputs_[i].shape : declared;
      if (shapes_[i] != shape) {
        shapes_[i] = shape;
        known = false;
      }
      if (!bound) own_inputs_[i].resize(declared.elements().value_or(0));
      input_data_[i] = bound ? static_cast<const float*>(inputs_[i].data) : own_inputs_[i].data();
    }
    if (known) return;
    network_ = forms_->find(shapes_);
    if (network_) scratch_.resize(network_->scratch());
  }

  /// After choose_form(): sizes of outputs are known only with the shapes of the inputs.
  Status place_outputs() {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const std::size_t count = network_->output_elements(i);
      if (outputs_[i].data == nullptr) {
        own_outputs_[i].resize(count);
        output_data_[i] = own_outputs_[i].data();
        continue;
      }
      if (outputs_[i].size < count * sizeof(float)) {
        return memory_too_small(program_->outputs()[i], count * sizeof(float),
                                network_->output_shape(i), outputs_[i].size);
      }
      output_data_[i] = static_cast<float*>(outputs_[i].data);
    }
    return {};
  }

  /// The engine's request gets all bindings anew, since it has not followed them.
  Status run_engine(std::uint64_t core_bits) {
    ran_ = false;
    if (!engine_) {
      // The macro is two statements.
      CORELANE_ASSIGN(engine_, make_engine_());
    }
    by_engine_ = true;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      CORELANE_TRY(engine_->set_input(i, inputs_[i]));
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      CORELANE_TRY(engine_->set_output(i, outputs_[i]));
    return engine_->run(core_bits);
  }

  /// The engine's request lets go of what was bound to it: its owner may be waiting for that.
  void rest_engine() {
    if (engine_ == nullptr) return;
    bool rests = true;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      rests = rests && engine_->set_input(i, {}).ok();
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      rests = rests && engine_->set_output(i, {}).ok();
    if (!rests) engine_.reset();
  }

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

}  // namespace

std::unique_ptr<device::LaneRequest> make_direct_request(
    std::shared_ptr<const device::LaneProgram> program, std::shared_ptr<DirectForms> forms,
    MakeRequest engine_request) {
  return std::make_unique<DirectRequest>(std::move(program), std::move(forms),
                                         std::move(engine_request));
}

}  // namespace corelane::drivers::virtual_npu
