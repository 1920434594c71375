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
/// Runs in a row of equal shapes, after which the next one is taken to be equal, too.
constexpr int kSteadyRuns = 3;
constexpr std::string_view kRunning = "the engine failed while it ran the job";

/// Bound memory is wrapped, never copied. An output with open dimensions is computed in the
/// engine's memory, and copied to the bound one once its size is known. After some runs of equal
/// shapes a run writes to the engine's tensors of the last one: to make, describe and free them
/// took a tenth of the instructions of a run of 5 us.
class OrtRequest final : public device::LaneRequest {
 public:
  OrtRequest(std::shared_ptr<OrtProgram> program, std::shared_ptr<const OrtCopy> copy,
             std::size_t width, OwnedRunOptions run_options)
      : program_(std::move(program)),
        library_(program_->library()),
        copy_(std::move(copy)),
        width_(width),
        inputs_(program_->inputs().size()),
        outputs_(program_->outputs().size()),
        run_options_(std::move(run_options)) {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const TensorDesc& output = program_->outputs()[i];
      if (output.shape.is_static())
        outputs_[i].bytes = dtype_bytes(output.dtype, output.shape.elements().value_or(0));
      else
        open_outputs_.push_back(i);
      output_names_.push_back(program_->engine_output(i).c_str());
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const TensorDesc& input = program_->inputs()[i];
      if (!input.value.empty()) flat_inputs_.push_back(i);
      for (std::size_t k = 0; k < outputs_.size() && input.value.empty(); ++k)
        if (program_->engine_output(k) == input.name) passed_.push_back({i, k});
    }
    // A failed run is repeated, which nobody may notice; values have sizes that no shape tells.
    foresees_ = flat_inputs_.empty() && passed_.empty() && !program_->profiled() &&
                program_->host_operators() == nullptr;
    for (const std::size_t i : open_outputs_)
      foresees_ = foresees_ && program_->outputs()[i].value.empty();
  }

  Status set_input(std::size_t index, const device::TensorRef& tensor) override {
    Slot& slot = inputs_[index];
    const TensorDesc& desc = program_->inputs()[index];
    if (slot.bound.shape != tensor.shape) steady_runs_ = 0;
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
    return {};
  }

  /// The engine allocates an open output anew at each run, in the size that comes out.
  Status set_output(std::size_t index, const device::TensorRef& tensor) override {
    Slot& slot = outputs_[index];
    const TensorDesc& desc = program_->outputs()[index];
    // The engine that was bound first may know fewer dimensions, and take less memory.
    if (tensor.data != nullptr && tensor.size < slot.bytes)
      return memory_too_small(desc, slot.bytes, desc.shape, tensor.size);
    const bool same = slot.value != nullptr && slot.bound.data == tensor.data;
    slot.bound = tensor;
    if (!desc.shape.is_static() || same) return {};
    device::TensorRef memory = tensor;
    memory.shape = desc.shape;
    if (tensor.data == nullptr) own_memory(desc, slot, memory);
    CORELANE_ASSIGN(slot.value,
                    wrap_tensor(library_, desc.name, desc.dtype, memory.data, desc.shape));
    return {};
  }

  Status run(std::uint64_t /*core_bits*/) override {
    CORELANE_TRY(bind_rest());
    CORELANE_TRY(check_empty_inputs());
    if (program_->profiled()) CORELANE_TRY(begin_profile());
    if (auto better = program_->better_copy(*copy_)) {
      // What was bound is the library's. Open outputs are the session's, and hold all its memory.
      free_open_outputs();
      copy_ = std::move(better);
    }
    // The run before may have been abandoned, even at its very end: this one must not end for it.
    if (abandoned_.exchange(false))
      CORELANE_TRY(library_.call<entry::RunOptionsUnsetTerminate>("a new run", Code::kEngineFailed,
                                                                  run_options_.get()));
    const std::size_t before = measured_ < kMeasuredRuns ? heap_bytes() : 0;
    CORELANE_TRY(run_network());
    if (measured_ < kMeasuredRuns) {
      ++measured_;
      const std::size_t after = heap_bytes();
      if (after > before) program_->note_run_memory(after - before);
    }
    ran_ = true;
    return fetch_all();
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
    result.size = slot.bytes;
    return result;
  }

  Result<std::vector<device::LayerTime>> layer_times() const override {
    if (!program_->profiled()) return error(not_profiled());
    if (profile_ == nullptr || !ran_) return error(no_layer_times_yet());
    return program_->layer_times(*profile_);
  }

 private:
  struct Slot {
    device::TensorRef bound;  ///< Null data: `own`, or the engine's for an open output.
    std::vector<std::byte> own;
    std::size_t bytes = 0;     ///< Of an output of fixed size.
    OwnedValue value;          ///< The bound memory as the engine's tensor.
    device::TensorRef result;  ///< Of the last run, for an open output: the engine's memory.
    bool is_new = false;       ///< `value` is of the last run, and `result` not yet, or in part.
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
    if (!foresees_ || steady_runs_ < kSteadyRuns) free_open_outputs();
    return {};
  }

  void free_open_outputs() {
    for (const std::size_t i : open_outputs_) outputs_[i].value.reset();
  }

  Status check_empty_inputs() const {
    for (const EmptyBound& bound : program_->empty_bounds()) {
      const TensorDesc& desc = program_->inputs()[bound.input];
      const Slot& slot = inputs_[bound.input];
      if (!desc.value.empty()) {
        if (desc.value.is_tensor()) CORELANE_TRY(check_flat(bound));
        continue;
      }
      const void* const data = slot.bound.data != nullptr ? slot.bound.data : slot.own.data();
      CORELANE_TRY(check_empty(bound, desc.name, desc.dtype,
                               desc.shape.is_static() ? desc.shape : slot.bound.shape, data));
    }
    return {};
  }

  /// Checks a tensor whose rank the network does not declare.
  Status check_flat(const EmptyBound& bound) const {
    TensorDesc desc;
    desc.name = program_->inputs()[bound.input].name;
    desc.dtype = program_->inputs()[bound.input].value.element;
    CORELANE_ASSIGN(const device::TensorRef tensor,
                    tensor_of(library_, inputs_[bound.input].value.get(), desc));
    return check_empty(bound, desc.name, desc.dtype, tensor.shape, tensor.data);
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
    return {};
  }

  /// A new session where the last one has told its times.
  Status begin_profile() {
    if (profile_ == nullptr || profile_->is_over()) {
      profile_.reset();  // Not two sessions at a time.
      CORELANE_ASSIGN(profile_, program_->new_profile(width_));
    }
    profile_->note_run(program_->nodes());
    return {};
  }

  /// A custom operator's failure comes as a text; the table has the Status for it.
  Status call_engine() {
    OrtSession* const session = profile_ == nullptr ? copy_->session.get() : profile_->session();
    Status ran = library_.call<entry::Run>(
        kRunning, Code::kEngineFailed, session, run_options_.get(), given_names_.data(),
        given_.data(), given_.size(), output_names_.data(), results_.size(), results_.data());
    if (!ran.ok() && profile_ != nullptr) profile_->note_failure();
    if (ran.ok() || program_->host_operators() == nullptr) return ran;
    Status own = program_->host_operators()->take(ran.message());
    return own.ok() ? ran : own;
  }

  /// By name rather than through the engine's binding object: as quick, quicker with open outputs,
  /// and an optional without a value can be left out.
  Status run_network() {
    given_names_.clear();
    given_.clear();
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].value == nullptr) continue;
      given_names_.push_back(program_->inputs()[i].name.c_str());
      given_.push_back(inputs_[i].value.get());
    }
    list_results();
    const bool foreseen =
        !open_outputs_.empty() && outputs_[open_outputs_.front()].value != nullptr;
    Status ran = call_engine();
    if (!ran.ok() && foreseen && !abandoned_.load()) {
      // The engine refuses a tensor of another shape than comes out. Whatever it was: once more.
      foresees_ = false;
      free_open_outputs();
      list_results();
      ran = call_engine();
    }
    CORELANE_TRY(ran);
    for (const std::size_t i : open_outputs_) take_result(outputs_[i], results_[i]);
    return {};
  }

  void list_results() {
    results_.clear();
    for (const Slot& slot : outputs_) results_.push_back(slot.value.get());
  }

  void take_result(Slot& slot, OrtValue* value) {
    if (value == slot.value.get()) return;
    slot.value = OwnedValue(value, OwnedValue::deleter_type{&library_});
    slot.is_new = true;
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

  /// If an output is an input, the engine hands on the input's memory, and does not touch the
  /// memory that is bound to the output: copies the values there.
  void copy_passed() {
    for (const auto& [input, output] : passed_) {
      const Slot& from = inputs_[input];
      Slot& to = outputs_[output];
      const TensorDesc& desc = program_->outputs()[output];
      const void* const data = from.bound.data != nullptr ? from.bound.data : from.own.data();
      if (desc.shape.is_static()) {
        const std::size_t size = dtype_bytes(desc.dtype, desc.shape.elements().value_or(0));
        void* const memory = to.bound.data != nullptr ? to.bound.data : to.own.data();
        if (size > 0) std::memmove(memory, data, size);
      } else if (to.result.size > 0) {
        const auto* const bytes = static_cast<const std::byte*>(data);
        to.own.assign(bytes, bytes + to.result.size);
        to.result.data = to.own.data();
      }
    }
  }

  /// All results are known before the first of them is copied: one that does not fit into the
  /// memory that is bound leaves no other one unknown. After a failure no run counts as steady.
  Status fetch_all() {
    int steady = std::min(std::exchange(steady_runs_, 0) + 1, kSteadyRuns);
    for (const std::size_t i : open_outputs_) {
      Slot& slot = outputs_[i];
      if (!slot.is_new) continue;
      const Shape before = slot.result.shape;
      CORELANE_TRY(fetch(slot, i));
      slot.is_new = false;
      if (slot.result.shape != before) steady = 0;
    }
    for (const std::size_t i : open_outputs_) {
      const Slot& slot = outputs_[i];
      if (slot.bound.data == nullptr) continue;
      if (slot.result.size > slot.bound.size)
        return memory_too_small(program_->outputs()[i], slot.result.size, slot.result.shape,
                                slot.bound.size);
      if (slot.result.size > 0) std::memcpy(slot.bound.data, slot.result.data, slot.result.size);
    }
    copy_passed();
    steady_runs_ = steady;
    return {};
  }

  const std::shared_ptr<OrtProgram> program_;
  const OrtLibrary& library_;
  std::shared_ptr<const OrtCopy> copy_;
  const std::size_t width_;
  std::unique_ptr<OrtProfile> profile_;  ///< Of a profiled program, from the first run on.
  std::vector<Slot> inputs_;
  std::vector<Slot> outputs_;
  std::vector<std::size_t> open_outputs_;
  std::vector<std::size_t> flat_inputs_;
  struct Passed {
    std::size_t input = 0;
    std::size_t output = 0;
  };
  std::vector<Passed> passed_;  ///< Outputs that are inputs.
  std::vector<const char*> output_names_;
  std::vector<const char*>
      given_names_;  ///< This and the next two: of one run, kept for their memory.
  std::vector<const OrtValue*> given_;
  std::vector<OrtValue*> results_;
  OwnedRunOptions run_options_;
  std::atomic<bool> abandoned_{false};  ///< Since the last run began.
  bool ran_ = false;
  bool foresees_ = false;  ///< The shapes of open outputs, from those of the runs before.
  int steady_runs_ = 0;
  int measured_ = 0;
};

}  // namespace

Result<std::unique_ptr<device::LaneRequest>> make_ort_request(std::shared_ptr<OrtProgram> program,
                                                              std::shared_ptr<const OrtCopy> copy,
                                                              std::size_t width) {
  constexpr std::string_view kWhat = "making a request of the engine";
  const OrtLibrary& library = program->library();
  CORELANE_ASSIGN(auto run_options, (make_owned<OwnedRunOptions, entry::CreateRunOptions>(
                                        library, kWhat, Code::kEngineFailed)));
  return std::make_unique<OrtRequest>(std::move(program), std::move(copy), width,
                                      std::move(run_options));
}

}  // namespace corelane::drivers::virtual_npu::ort
