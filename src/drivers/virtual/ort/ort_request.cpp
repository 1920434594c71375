#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/virtual/common/heap_growth.h"
#include "drivers/virtual/common/request_errors.h"
#include "drivers/virtual/ort/ort_program.h"
#include "drivers/virtual/ort/ort_tensor.h"
#include "drivers/virtual/ort/ort_value.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

/// Runs in which the growth of the heap counts as the program's memory: later ones only reuse it.
constexpr int kMeasuredRuns = 2;
constexpr std::string_view kRunning = "the engine failed while it ran the job";

/// Output `index` gets memory of the engine at the next run.
Status let_engine_allocate(const OrtProgram& program, std::size_t index, OrtIoBinding* binding) {
  const OrtLibrary& library = program.library();
  return library.call<entry::BindOutputToDevice>(program.outputs()[index].name, Code::kEngineFailed,
                                                 binding, program.engine_output(index).c_str(),
                                                 library.cpu());
}

/// Bound memory is wrapped, never copied. An output with open dimensions is computed in the
/// engine's memory, and copied to the bound one once its size is known.
class OrtRequest final : public device::LaneRequest {
 public:
  OrtRequest(std::shared_ptr<OrtProgram> program, std::shared_ptr<const OrtCopy> copy,
             OwnedBinding binding, OwnedRunOptions run_options)
      : program_(std::move(program)),
        library_(program_->library()),
        copy_(std::move(copy)),
        inputs_(program_->inputs().size()),
        outputs_(program_->outputs().size()),
        run_options_(std::move(run_options)),
        binding_(std::move(binding)) {
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      if (!program_->outputs()[i].shape.is_static()) open_outputs_.push_back(i);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const ValueType& type = program_->inputs()[i].value;
      if (!type.empty()) flat_inputs_.push_back(i);
      by_name_ |= type.kind() == ValueKind::kOptional;
    }
  }

  Status set_input(std::size_t index, const device::TensorRef& tensor) override {
    Slot& slot = inputs_[index];
    const TensorDesc& desc = program_->inputs()[index];
    if (!desc.value.empty()) {
      // What it holds is read at each run.
      slot.bound = tensor;
      return {};
    }
    if (slot.value && slot.bound.data == tensor.data && slot.bound.shape == tensor.shape) {
      slot.bound.keep_alive = tensor.keep_alive;
      return {};
    }
    device::TensorRef memory = tensor;
    if (tensor.data == nullptr && !desc.shape.is_static()) {
      slot = {};
      slot.bound = tensor;
      return {};
    }
    if (tensor.data == nullptr) own_memory(desc, slot, memory);
    CORELANE_ASSIGN(slot.value,
                    wrap_tensor(library_, desc.name, desc.dtype, memory.data, memory.shape));
    slot.bound = tensor;
    return library_.call<entry::BindInput>(desc.name, Code::kShapeMismatch, binding_.get(),
                                           desc.name.c_str(), slot.value.get());
  }

  /// An open output is bound at each run: the engine allocates the size that comes out.
  Status set_output(std::size_t index, const device::TensorRef& tensor) override {
    Slot& slot = outputs_[index];
    const TensorDesc& desc = program_->outputs()[index];
    const bool same = slot.value != nullptr && slot.bound.data == tensor.data;
    slot.bound = tensor;
    if (!desc.shape.is_static() || same) return {};
    device::TensorRef memory = tensor;
    memory.shape = desc.shape;
    if (tensor.data == nullptr) own_memory(desc, slot, memory);
    CORELANE_ASSIGN(slot.value,
                    wrap_tensor(library_, desc.name, desc.dtype, memory.data, desc.shape));
    return library_.call<entry::BindOutput>(desc.name, Code::kShapeMismatch, binding_.get(),
                                            program_->engine_output(index).c_str(),
                                            slot.value.get());
  }

  Status run(std::uint64_t /*core_bits*/) override {
    CORELANE_TRY(bind_rest());
    // The run before may have been abandoned, even at its very end: this one must not end for it.
    if (abandoned_.exchange(false))
      CORELANE_TRY(library_.call<entry::RunOptionsUnsetTerminate>("a new run", Code::kEngineFailed,
                                                                  run_options_.get()));
    const std::size_t before = measured_ < kMeasuredRuns ? heap_bytes() : 0;
    CORELANE_TRY(by_name_ ? run_by_name()
                          : library_.call<entry::RunWithBinding>(
                                kRunning, Code::kEngineFailed, copy_->session.get(),
                                run_options_.get(), binding_.get()));
    if (measured_ < kMeasuredRuns) {
      ++measured_;
      const std::size_t after = heap_bytes();
      if (after > before) program_->note_run_memory(after - before);
    }
    ran_ = true;
    if (open_outputs_.empty()) return {};
    return by_name_ ? fetch_all() : fetch_open_outputs();
  }

  /// The engine looks for it between two nodes, in those of subgraphs, too.
  void abandon() noexcept override {
    (void)library_.call<entry::RunOptionsSetTerminate>("ending a run", Code::kEngineFailed,
                                                       run_options_.get());
    abandoned_.store(true);  // Last, so that the next run takes the flag back.
  }

  Result<device::TensorRef> output(std::size_t index) override {
    Slot& slot = outputs_[index];
    const TensorDesc& desc = program_->outputs()[index];
    if (!desc.shape.is_static()) {
      if (!ran_) return error(no_shape_yet(desc));
      device::TensorRef result = slot.result;
      if (slot.bound.data != nullptr) {
        result.data = slot.bound.data;
        result.keep_alive = slot.bound.keep_alive;
      }
      return result;
    }
    if (slot.value == nullptr) CORELANE_TRY(set_output(index, {}));
    device::TensorRef result = slot.bound;
    if (result.data == nullptr) result.data = slot.own.data();
    result.shape = desc.shape;
    result.size = dtype_bytes(desc.dtype, desc.shape.elements().value_or(0));
    return result;
  }

  Result<std::vector<device::LayerTime>> layer_times() const override {
    return error(not_profiled());
  }

 private:
  struct Slot {
    device::TensorRef bound;  ///< Null data: `own`, or the engine's for an open output.
    std::vector<std::byte> own;
    OwnedValue value;          ///< The bound memory as the engine's tensor.
    device::TensorRef result;  ///< Of the last run, for an open output: the engine's memory.
  };

  static void own_memory(const TensorDesc& desc, Slot& slot, device::TensorRef& memory) {
    slot.own.assign(
        std::max<std::size_t>(1, dtype_bytes(desc.dtype, desc.shape.elements().value_or(0))),
        std::byte{});
    memory.data = slot.own.data();
    memory.shape = desc.shape;
  }

  /// What nobody has bound, and the outputs whose size each run decides.
  Status bind_rest() {
    for (const std::size_t i : flat_inputs_) CORELANE_TRY(bind_flat(i));
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const TensorDesc& desc = program_->inputs()[i];
      if (inputs_[i].value != nullptr || !desc.value.empty()) continue;
      if (!desc.shape.is_static())
        return error(Code::kWrongState, "input '{}' has open dimensions {} and no tensor is bound",
                     desc.name, desc.shape.to_string());
      CORELANE_TRY(set_input(i, {}));
    }
    for (std::size_t i = 0; i < outputs_.size() && !ran_; ++i)
      if (outputs_[i].value == nullptr) CORELANE_TRY(set_output(i, outputs_[i].bound));
    for (const std::size_t i : open_outputs_) {
      outputs_[i].value.reset();
      CORELANE_TRY(let_engine_allocate(*program_, i, binding_.get()));
    }
    return {};
  }

  /// The bytes bound now, as the engine's value.
  Status bind_flat(std::size_t index) {
    Slot& slot = inputs_[index];
    const TensorDesc& desc = program_->inputs()[index];
    if (slot.bound.data == nullptr)
      return error(Code::kWrongState, "input '{}' is a {} and nothing is bound", desc.name,
                   desc.value.to_string());
    const ByteSpan bytes(static_cast<const std::byte*>(slot.bound.data), slot.bound.size);
    CORELANE_ASSIGN(slot.value, value_of_flat(library_, desc, bytes, slot.own));
    if (by_name_) return {};
    return library_.call<entry::BindInput>(desc.name, Code::kShapeMismatch, binding_.get(),
                                           desc.name.c_str(), slot.value.get());
  }

  /// Without the binding, which keeps its inputs: an optional without a value is one that is left
  /// out.
  Status run_by_name() {
    std::vector<const char*> input_names;
    std::vector<const OrtValue*> inputs;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].value == nullptr) continue;
      input_names.push_back(program_->inputs()[i].name.c_str());
      inputs.push_back(inputs_[i].value.get());
    }
    std::vector<const char*> output_names;
    std::vector<OrtValue*> outputs;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      output_names.push_back(program_->engine_output(i).c_str());
      outputs.push_back(outputs_[i].value.get());
    }
    CORELANE_TRY(library_.call<entry::Run>(
        kRunning, Code::kEngineFailed, copy_->session.get(), run_options_.get(), input_names.data(),
        inputs.data(), inputs.size(), output_names.data(), outputs.size(), outputs.data()));
    for (const std::size_t i : open_outputs_)
      outputs_[i].value = OwnedValue(outputs[i], OwnedValue::deleter_type{&library_});
    return {};
  }

  /// An output with open dimensions, in the engine's memory; a flat form in the slot's.
  Status fetch(Slot& slot, std::size_t index) {
    const TensorDesc& desc = program_->outputs()[index];
    if (desc.value.empty()) {
      CORELANE_ASSIGN(slot.result, tensor_of(library_, slot.value.get(), desc));
      return {};
    }
    if (const ZipLabels* const labels = program_->zip_labels(index)) {
      TensorDesc floats;
      floats.name = desc.name;
      floats.dtype = DType::kF32;
      CORELANE_ASSIGN(const device::TensorRef rows, tensor_of(library_, slot.value.get(), floats));
      CORELANE_ASSIGN(slot.own, zip_rows({rows.data, rows.size, DType::kF32, rows.shape, {}, {}},
                                         *labels, desc.name));
    } else {
      CORELANE_ASSIGN(slot.own, flat_of_value(library_, desc, slot.value.get()));
    }
    slot.result = {slot.own.data(), slot.own.size(),
                   Shape{static_cast<std::int64_t>(slot.own.size())}, nullptr};
    return {};
  }

  /// Outputs come in the order in which they were bound first: the network's.
  Status fetch_open_outputs() {
    OrtValue** values = nullptr;
    std::size_t count = 0;
    constexpr std::string_view kWhat = "fetching the outputs";
    CORELANE_TRY(library_.call<entry::GetBoundOutputValues>(
        kWhat, Code::kEngineFailed, binding_.get(), library_.allocator(), &values, &count));
    std::vector<OwnedValue> owned;
    for (std::size_t i = 0; i < count; ++i)
      owned.emplace_back(values[i], OwnedValue::deleter_type{&library_});
    CORELANE_TRY(library_.call<entry::AllocatorFree>(
        kWhat, Code::kEngineFailed, library_.allocator(), static_cast<void*>(values)));
    if (owned.size() != outputs_.size())
      return error(Code::kEngineFailed, "{}: {} of {}", kWhat, owned.size(), outputs_.size());
    for (const std::size_t i : open_outputs_) outputs_[i].value = std::move(owned[i]);
    return fetch_all();
  }

  /// To the memory that is bound, where there is some.
  Status fetch_all() {
    for (const std::size_t i : open_outputs_) {
      Slot& slot = outputs_[i];
      const TensorDesc& desc = program_->outputs()[i];
      CORELANE_TRY(fetch(slot, i));
      if (slot.bound.data == nullptr) continue;
      if (slot.result.size > slot.bound.size)
        return memory_too_small(desc, slot.result.size, slot.result.shape, slot.bound.size);
      if (slot.result.size > 0) std::memcpy(slot.bound.data, slot.result.data, slot.result.size);
    }
    return {};
  }

  const std::shared_ptr<OrtProgram> program_;
  const OrtLibrary& library_;
  const std::shared_ptr<const OrtCopy> copy_;
  std::vector<Slot> inputs_;
  std::vector<Slot> outputs_;
  std::vector<std::size_t> open_outputs_;
  std::vector<std::size_t> flat_inputs_;
  OwnedRunOptions run_options_;
  OwnedBinding binding_;                ///< Refers to the values above, and copies them.
  std::atomic<bool> abandoned_{false};  ///< Since the last run began.
  bool by_name_ = false;                ///< Runs without the binding.
  bool ran_ = false;
  int measured_ = 0;
};

}  // namespace

Result<std::unique_ptr<device::LaneRequest>> make_ort_request(std::shared_ptr<OrtProgram> program,
                                                              std::shared_ptr<const OrtCopy> copy) {
  constexpr std::string_view kWhat = "making a request of the engine";
  const OrtLibrary& library = program->library();
  OrtSession* const session = copy->session.get();
  CORELANE_ASSIGN(auto binding, (make_owned<OwnedBinding, entry::CreateIoBinding>(
                                    library, kWhat, Code::kEngineFailed, session)));
  CORELANE_ASSIGN(auto run_options, (make_owned<OwnedRunOptions, entry::CreateRunOptions>(
                                        library, kWhat, Code::kEngineFailed)));
  // All of them now, so that their order is the network's whatever is bound later.
  for (std::size_t i = 0; i < program->outputs().size(); ++i)
    CORELANE_TRY(let_engine_allocate(*program, i, binding.get()));
  return std::make_unique<OrtRequest>(std::move(program), std::move(copy), std::move(binding),
                                      std::move(run_options));
}

}  // namespace corelane::drivers::virtual_npu::ort
