#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <openvino/runtime/infer_request.hpp>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include "base/process/heap.h"
#include "corelane/base/log.h"
#include "drivers/virtual/common/heap_growth.h"
#include "drivers/virtual/common/request_errors.h"
#include "drivers/virtual/common/wide_integers.h"
#include "drivers/virtual/engine/virtual_program.h"

namespace corelane::drivers::virtual_npu {
namespace {

/// Shapes whose first run is measured; what else runs in the process disturbs it, so not all are.
constexpr std::size_t kMostMeasured = 16;
/// Runs of one shape in a row after which no new ones are expected.
constexpr std::size_t kSettled = 16;

/// True when the engine has this memory in this shape already.
bool same_memory(const device::TensorRef& a, const device::TensorRef& b) {
  return a.data == b.data && a.shape == b.shape;
}

/// Frames of their own, this one and infer(): tools/sanitizers/tsan.supp names infer() to leave out
/// what lies below this call.
[[gnu::noinline]] void call_engine(ov::InferRequest& request, bool through_queue) {
  if (through_queue) {
    request.start_async();
    request.wait();
  } else {
    request.infer();
  }
}

class StreamHold {
 public:
  explicit StreamHold(std::counting_semaphore<>& streams) : streams_(streams) {
    streams_.acquire();
  }
  ~StreamHold() { streams_.release(); }
  StreamHold(const StreamHold&) = delete;
  StreamHold& operator=(const StreamHold&) = delete;

 private:
  std::counting_semaphore<>& streams_;
};

/// The caller's memory or, where there is none, a new tensor's. It replaces the tensor that the
/// request was made with, which would double the memory of every context.
ov::Tensor wrap(const TensorDesc& desc, const device::TensorRef& tensor) {
  if (tensor.data == nullptr) return {engine_type(desc.dtype), engine_shape(desc.shape)};
  return {engine_type(desc.dtype), engine_shape(tensor.shape), tensor.data};
}

/// Positions of the tensors with open dimensions.
std::vector<std::size_t> open_ones(const std::vector<TensorDesc>& descs) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < descs.size(); ++i)
    if (!descs[i].shape.is_static()) result.push_back(i);
  return result;
}

/// "jit_avx512_I8" -> kI8: from the ending of the kernel's name; kUndefined when it names no type.
DType kernel_dtype(std::string_view kernel) {
  const auto underscore = kernel.rfind('_');
  if (underscore == std::string_view::npos) return DType::kUndefined;
  std::string ending;
  for (const char c : kernel.substr(underscore + 1))
    ending += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (ending.starts_with("fp")) ending.erase(1, 1);  // "FP32", where the engine means f32.
  return dtype_from_name(ending).value_or(DType::kUndefined);
}

}  // namespace

/// Memory is wrapped, never copied, and given to the engine only when it changes (binding costs
/// 2 to 5 us, a small inference 3). Exception: an output with open dimensions is computed in the
/// engine's memory and copied to the bound one once its size is known.
class VirtualRequest final : public device::LaneRequest {
 public:
  /// `never_throws`: see network.h. Throws what the engine throws.
  VirtualRequest(std::shared_ptr<VirtualProgram> program, std::shared_ptr<const CompiledCopy> copy,
                 bool never_throws)
      : program_(std::move(program)),
        copy_(std::move(copy)),
        inputs_(program_->inputs().size()),
        outputs_(program_->outputs().size()),
        open_inputs_(open_ones(program_->inputs())),
        open_outputs_(open_ones(program_->outputs())) {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (may_be_wide(program_->inputs()[i].dtype) && program_->engine_inputs()[i] >= 0)
        wide_inputs_.push_back(i);
    const CopySettings& settings = copy_->settings();
    // With one stream and one thread infer() runs here and swallows exceptions (network.h).
    through_queue_ = !never_throws && settings.streams == 1 && settings.threads == 1;
    ov::CompiledModel model = copy_->model();  // create_infer_request() is not const.
    request_ = model.create_infer_request();
  }

  /// The engine looks for it between two nodes. A run that may not end there goes on to its end,
  /// and nobody takes its results.
  void abandon() noexcept override {
    auto running = State::kRunning;
    if (state_.compare_exchange_strong(running, State::kAbandoned)) copy_->abandoned().begin();
    if (!program_->may_end_early()) return;
    try {
      request_.cancel();
    } catch (const std::exception& e) {
      log::debug("virtual", "a run that was abandoned goes on: {}", e.what());
    }
  }

  /// An input that no node reads has no port: it is remembered, not passed on.
  Status set_input(std::size_t index, const device::TensorRef& tensor) override {
    Slot& slot = inputs_[index];
    if (same_memory(slot.bound, tensor)) {
      slot.bound.keep_alive = tensor.keep_alive;
      return {};
    }
    const int port = program_->engine_inputs()[index];
    const TensorDesc& desc = program_->inputs()[index];
    try {
      if (port >= 0 && (tensor.data != nullptr || desc.shape.is_static()))
        request_.set_input_tensor(static_cast<std::size_t>(port), wrap(desc, tensor));
      slot.bound = tensor;
      return {};
    } catch (...) {
      return engine_failure(
          "input '" + desc.name + "' " + desc.shape.to_string() + " does not take this tensor",
          Code::kShapeMismatch);
    }
  }

  /// An open output is not bound: the engine must be free to allocate the size that comes out.
  Status set_output(std::size_t index, const device::TensorRef& tensor) override {
    Slot& slot = outputs_[index];
    const TensorDesc& desc = program_->outputs()[index];
    try {
      if (desc.shape.is_static() && slot.bound.data != tensor.data) {
        slot.own = {};
        request_.set_output_tensor(index, wrap(desc, {tensor.data, tensor.size, desc.shape, {}}));
      }
      slot.bound = tensor;
      return {};
    } catch (...) {
      return engine_failure(
          "output '" + desc.name + "' " + desc.shape.to_string() + " does not take this memory",
          Code::kShapeMismatch);
    }
  }

  /// Static programs run without any check but those of integers. With open shapes the growth of
  /// the heap by the first run of each counts as the program's memory, which the engine does not
  /// report.
  Status run(std::uint64_t /*core_bits*/) override {
    if (!copy_->abandoned().wait(kHung)) return lose("hangs in");
    for (const std::size_t index : wide_inputs_) CORELANE_TRY(check_width(index));
    for (const IndexBound& bound : program_->bounds()) CORELANE_TRY(check_bound(bound));
    const bool open = !open_inputs_.empty() || !open_outputs_.empty();
    if (!open) {
      ran_ = true;
      return infer();
    }
    CORELANE_TRY(check_inputs());
    const std::size_t before = measure_ ? heap_bytes() : 0;
    CORELANE_TRY(infer());
    if (measure_) {
      const std::size_t after = heap_bytes();
      if (after > before) program_->note_run_memory(after - before);
      measured_.push_back(checked_);
      measure_ = false;
    }
    ran_ = true;
    return fetch_open_outputs();
  }

  /// Runs on its copy would wait for one that hangs, or be wrong after one that failed.
  bool lost() const noexcept override { return lost_; }

  /// The engine's tensor is kept once it was asked for.
  Result<device::TensorRef> output(std::size_t index) override {
    Slot& slot = outputs_[index];
    const TensorDesc& desc = program_->outputs()[index];
    const bool open = !desc.shape.is_static();
    if (open && !ran_) return error(no_shape_yet(desc));
    try {
      if (!slot.own && (open || slot.bound.data == nullptr))
        slot.own = request_.get_output_tensor(index);
      device::TensorRef result;
      result.shape = open ? shape_of(slot.own.get_shape()) : desc.shape;
      if (slot.bound.data != nullptr) {
        result.data = slot.bound.data;
        result.keep_alive = slot.bound.keep_alive;
        result.size = open ? slot.own.get_byte_size()
                           : dtype_bytes(desc.dtype, desc.shape.elements().value_or(0));
      } else {
        result.size = slot.own.get_byte_size();
        result.data = result.size == 0 ? nullptr : slot.own.data();
      }
      return result;
    } catch (...) {
      return error(engine_failure("output '" + desc.name + "'", Code::kEngineFailed));
    }
  }

  Result<std::vector<device::LayerTime>> layer_times() const override {
    if (!program_->profiled()) return error(not_profiled());
    if (!ran_) return error(no_layer_times_yet());
    using Times = std::vector<device::LayerTime>;
    return engine_call("the engine's layer times", Code::kEngineFailed, [&]() -> Result<Times> {
      Times times;
      for (const ov::ProfilingInfo& info : request_.get_profiling_info()) {
        device::LayerTime time;
        time.name = info.node_name;
        time.type = info.node_type;
        time.kernel = info.exec_type;
        time.dtype = kernel_dtype(info.exec_type);
        time.duration = std::chrono::duration_cast<Duration>(info.real_time);
        time.executed = info.status == ov::ProfilingInfo::Status::EXECUTED;
        times.push_back(std::move(time));
      }
      return times;
    });
  }

 private:
  struct Slot {
    device::TensorRef bound;  ///< Null data: a tensor of the engine.
    ov::Tensor own;           ///< That tensor, once asked for, and the result of an open output.
  };

  /// In memory that is bound; the engine's own holds zeros.
  std::size_t bound_elements(std::size_t index) const {
    const device::TensorRef& tensor = inputs_[index].bound;
    const Shape& declared = program_->inputs()[index].shape;
    if (tensor.data == nullptr) return 0;
    return (declared.is_static() ? declared : tensor.shape).elements().value_or(0);
  }

  Status check_bound(const IndexBound& bound) const {
    const TensorDesc& desc = program_->inputs()[bound.input];
    return check_indices(bound, desc.name, desc.dtype, inputs_[bound.input].bound.data,
                         bound_elements(bound.input));
  }

  /// The engine takes the low 32 bits of a value without a word.
  Status check_width(std::size_t index) const {
    const TensorDesc& desc = program_->inputs()[index];
    return check_narrow(desc.name, desc.dtype, inputs_[index].bound.data, bound_elements(index));
  }

  /// The engine itself would compute with shapes that contradict each other (see ShapeCheck).
  /// Shapes that are the same as in the last run are not checked again.
  Status check_inputs() {
    for (const std::size_t index : open_inputs_)
      if (inputs_[index].bound.data == nullptr)
        return error(Code::kWrongState, "input '{}' has open dimensions {} and no tensor is bound",
                     program_->inputs()[index].name, program_->inputs()[index].shape.to_string());
    if (open_inputs_.empty()) return {};
    bool known = !checked_.empty();
    checked_.resize(inputs_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Shape& declared = program_->inputs()[i].shape;
      const Shape& shape = declared.is_static() ? declared : inputs_[i].bound.shape;
      if (checked_[i] == shape && known) continue;
      checked_[i] = shape;
      known = false;
    }
    if (known) {
      if (++settled_ == kSettled) program_->end_shape_check();
      return {};
    }
    settled_ = 0;
    if (Status status = check_elements(); !status.ok()) {
      checked_.clear();
      return status;
    }
    measure_ = measured_.size() < kMostMeasured &&
               std::find(measured_.begin(), measured_.end(), checked_) == measured_.end();
    Status status = program_->check_shapes(checked_);
    if (!status.ok()) checked_.clear();
    return status;
  }

  Status check_elements() const {
    for (const std::size_t index : open_inputs_)
      if (!program_->may_be_empty()[index] && checked_[index].elements() == std::size_t{0})
        return refuse_empty(program_->inputs()[index].name, checked_[index]);
    return {};
  }

  Status lose(std::string_view what) {
    lost_ = true;
    return error(Code::kDeviceReset,
                 "an earlier run of the network {} the engine; this one needs a request of its own",
                 what);
  }

  Status infer() {
    state_.store(State::kRunning, std::memory_order_release);
    const bool is_first = copy_->is_first_run();
    Status status = program_->may_end_early() ? infer_now() : infer_on_a_stream();
    if (is_first) trim_heap();
    if (state_.exchange(State::kIdle) == State::kAbandoned) copy_->abandoned().end();
    return status;
  }

  /// Runs open shapes, but not on a stream where an earlier run has failed.
  Status infer_on_a_stream() {
    const StreamHold hold(copy_->streams());
    if (copy_->is_spoilt()) return lose("failed within");
    if (state_.load() == State::kAbandoned)
      return error(Code::kCancelled, "the run was abandoned before it began");
    Status status = infer_now();
    if (!status.ok()) copy_->spoil();
    return status;
  }

  /// A custom operator's failure comes as an exception's text; the table has the Status for it.
  [[gnu::noinline]] Status infer_now() {
    try {
      call_engine(request_, through_queue_);
      return {};
    } catch (const std::exception& e) {
      if (HostOperators* operators = program_->host_operators())
        if (Status status = operators->take(e.what()); !status.ok()) return status;
      return engine_failure("the engine failed while it ran the job", Code::kEngineFailed);
    } catch (...) {
      return engine_failure("the engine failed while it ran the job", Code::kEngineFailed);
    }
  }

  /// Results whose size was not known before: they lie in the engine's memory, and are copied where
  /// memory is bound. Nothing is written beyond its size.
  Status fetch_open_outputs() {
    for (const std::size_t index : open_outputs_) {
      device::TensorRef& bound = outputs_[index].bound;
      try {
        const ov::Tensor result = request_.get_output_tensor(index);
        outputs_[index].own = result;
        if (bound.data == nullptr) continue;
        const Shape shape = shape_of(result.get_shape());
        if (result.get_byte_size() > bound.size)
          return memory_too_small(program_->outputs()[index], result.get_byte_size(), shape,
                                  bound.size);
        if (result.get_byte_size() > 0)
          std::memcpy(bound.data, result.data(), result.get_byte_size());
      } catch (...) {
        return engine_failure("output '" + program_->outputs()[index].name + "'",
                              Code::kEngineFailed);
      }
    }
    return {};
  }

  enum class State : std::uint8_t { kIdle, kRunning, kAbandoned };

  std::shared_ptr<VirtualProgram> program_;
  std::shared_ptr<const CompiledCopy> copy_;
  std::atomic<State> state_{State::kIdle};
  std::vector<Slot> inputs_;
  std::vector<Slot> outputs_;
  std::vector<std::size_t> open_inputs_;
  std::vector<std::size_t> wide_inputs_;  ///< Of types with values beyond 32 bits.
  std::vector<std::size_t> open_outputs_;
  std::vector<Shape> checked_;  ///< Shapes of the inputs that fit; empty: none yet.
  std::size_t settled_ = 0;     ///< Runs in a row with these.
  bool through_queue_ = false;  ///< Must not run in the caller's thread.
  /// Whose first run was measured; `measure_`: so is the next run.
  std::vector<std::vector<Shape>> measured_;
  bool measure_ = true;
  bool ran_ = false;
  bool lost_ = false;
  // Last, so that it is destroyed before the copy it belongs to. Mutable, since the engine's
  // getters are not const.
  mutable ov::InferRequest request_;
};

Result<std::unique_ptr<device::LaneRequest>> VirtualProgram::engine_request(std::size_t width,
                                                                            std::size_t core) {
  CORELANE_ASSIGN(CopyPtr copy, copy_for(width, core));
  using Made = Result<std::unique_ptr<device::LaneRequest>>;
  return engine_call("making a request of the engine", Code::kEngineFailed, [&]() -> Made {
    return std::make_unique<VirtualRequest>(shared_from_this(), std::move(copy), runs_.never_throw);
  });
}

}  // namespace corelane::drivers::virtual_npu
