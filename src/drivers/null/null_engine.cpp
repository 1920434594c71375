#include "drivers/null/null_engine.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <cstring>
#include <utility>

#include "base/guard.h"
#include "base/later.h"
#include "base/sync.h"
#include "drivers/null/null_image.h"

namespace corelane::drivers::null {
namespace {

using device::TensorRef;

/// What all programs of a device share.
struct NullState {
  Script script;
  std::shared_ptr<Clock> clock;
  std::atomic<std::uint64_t> runs{0};
  std::atomic<std::uint64_t> programs{0};  ///< Made so far.
  /// By core, the number of the program that ran last; 0: none yet.
  std::array<std::atomic<std::uint64_t>, device::CoreSet::kMaxCores> last_program{};
  std::function<void(std::string)> log;  ///< Set before the first run.
};

/// The job that this thread completes. Its completion starts jobs that waited for its cores: the
/// clock may call late, but a device with a line of its own would have begun them at once.
struct Completing {
  const NullState* device = nullptr;
  std::uint64_t core_bits = 0;
  TimePoint end{};
};
thread_local Completing completing;

/// The tensors of one inference.
class NullRequest final : public device::LaneRequest {
 public:
  NullRequest(std::shared_ptr<NullState> state, std::shared_ptr<const Description> description,
              std::uint64_t program)
      : state_(std::move(state)),
        description_(std::move(description)),
        program_(program),
        inputs_(description_->inputs.size()),
        outputs_(description_->outputs.size()),
        results_(description_->outputs.size()),
        own_(description_->outputs.size()) {}

  Status set_input(std::size_t index, const TensorRef& tensor) override {
    inputs_[index] = tensor;
    return {};
  }
  Status set_output(std::size_t index, const TensorRef& tensor) override {
    outputs_[index] = tensor;
    return {};
  }
  void set_batch(std::uint32_t batch) override { batch_ = batch; }

  Status run(std::uint64_t core_bits) override {
    const Duration time = sum_of(switch_on(core_bits), time_on(core_bits));
    if (time > Duration{}) {
      const TimePoint until = later(state_->clock->now(), time);
      Mutex mutex(LockRank::kUnranked);  // The clock takes its own.
      std::condition_variable never;
      MutexLock lock(mutex);
      while (state_->clock->wait_until(lock.native(), never, until)) {
      }
    }
    return compute();
  }

  /// On the clock: no thread waits, so that thousands of jobs cost nothing. The lane keeps this
  /// request until `done` was called.
  void start(std::uint64_t core_bits, TimePoint ready, std::function<void(Status)> done) override {
    const Duration time = time_on(core_bits);
    const Duration switched = switch_on(core_bits);
    span_.reset();
    if (time == Duration{} && switched == Duration{}) return done(compute());
    const TimePoint begin = later(begin_on(core_bits, ready), switched);
    const TimePoint end = later(begin, time);
    span_ = {begin, end};
    state_->clock->call_at(end, [this, core_bits, end, done = std::move(done)] {
      const Completing outer = std::exchange(completing, Completing{state_.get(), core_bits, end});
      done(compute());
      completing = outer;
    });
  }

  std::optional<device::RunSpan> span() const override { return span_; }
  Result<TensorRef> output(std::size_t index) override { return results_[index]; }
  Result<std::vector<device::LayerTime>> layer_times() const override {
    return error(Code::kUnsupported, "the null device has no layers");
  }

 private:
  TimePoint begin_on(std::uint64_t core_bits, TimePoint ready) const {
    const bool follows =
        completing.device == state_.get() && (core_bits & ~completing.core_bits) == 0;
    return follows ? std::max(ready, completing.end) : state_->clock->now();
  }

  /// What the cores take to change to this program, which they have from here on.
  Duration switch_on(std::uint64_t core_bits) {
    if (state_->script.switch_time == Duration{}) return {};
    bool switched = false;
    for (std::uint64_t bits = core_bits; bits != 0; bits &= bits - 1) {
      auto& last = state_->last_program[static_cast<std::size_t>(std::countr_zero(bits))];
      const std::uint64_t before = last.exchange(program_, std::memory_order_relaxed);
      switched |= before != 0 && before != program_;
    }
    return switched ? state_->script.switch_time : Duration{};
  }

  /// An image with a time of its own replaces a and b; factors of cores stay the device's.
  Duration time_on(std::uint64_t core_bits) const {
    if (!description_->a) return state_->script.time_of(core_bits, batch_);
    Script own = state_->script;
    own.a = *description_->a;
    own.b = description_->b.value_or(Duration{});
    return own.time_of(core_bits, batch_);
  }

  /// The declared shape with open dimensions taken from the first input, or 1.
  Shape actual_shape(const TensorDesc& desc) const {
    Shape shape = desc.shape;
    for (std::size_t d = 0; d < shape.rank(); ++d) {
      if (shape[d] != Shape::kOpen) continue;
      const bool same = !inputs_.empty() && inputs_[0].shape.rank() == shape.rank();
      shape[d] = same ? inputs_[0].shape[d] : 1;
    }
    return shape;
  }

  Status compute() noexcept {
    return no_throw("the null device", [&] { return copy_inputs(); });
  }

  /// Runs are counted over all programs of the device, in the order in which they end.
  Status copy_inputs() {
    const std::uint64_t run = state_->runs.fetch_add(1, std::memory_order_relaxed) + 1;
    const std::uint64_t lines = state_->script.log_every;
    if (lines != 0 && run % lines == 0 && state_->log)
      state_->log(fmt::format("run {} of the null device, by its script (log={})", run, lines));
    if (state_->script.fail_every != 0 && run % state_->script.fail_every == 0)
      return error(Code::kEngineFailed, "run {} of the null device fails by its script (fail={})",
                   run, state_->script.fail_every);
    for (std::size_t i = 0; i < outputs_.size(); ++i) CORELANE_TRY(write_output(i));
    return {};
  }

  /// A copy of the input at the same place, or the first, where sizes agree; else zeros.
  Status write_output(std::size_t index) {
    const TensorDesc& desc = description_->outputs[index];
    Shape shape = actual_shape(desc);
    const std::size_t size = dtype_bytes(desc.dtype, shape.elements().value_or(0));
    TensorRef& target = outputs_[index];
    if (target.data == nullptr) {
      own_[index].resize(std::max<std::size_t>(size, 1));
      results_[index].data = own_[index].data();
    } else if (target.size < size) {
      return error(Code::kShapeMismatch, "output '{}' has {} bytes; the memory bound to it {}",
                   desc.name, size, target.size);
    } else {
      results_[index].data = target.data;
      results_[index].keep_alive = target.keep_alive;
    }
    results_[index].size = size;
    results_[index].shape = std::move(shape);
    if (size == 0) return {};
    const TensorRef* source =
        inputs_.empty() ? nullptr : &inputs_[index < inputs_.size() ? index : 0];
    const bool copy = source != nullptr && input_bytes(*source) == size;
    if (!copy)
      std::memset(results_[index].data, 0, size);
    else if (source->data != results_[index].data)
      std::memmove(results_[index].data, source->data, size);
    return {};
  }

  std::size_t input_bytes(const TensorRef& input) const {
    const auto index = static_cast<std::size_t>(&input - inputs_.data());
    return dtype_bytes(description_->inputs[index].dtype, input.shape.elements().value_or(0));
  }

  const std::shared_ptr<NullState> state_;
  const std::shared_ptr<const Description> description_;
  const std::uint64_t program_;  ///< Its number on the device, from 1.
  std::vector<TensorRef> inputs_;
  std::vector<TensorRef> outputs_;
  std::vector<TensorRef> results_;
  std::vector<ByteVector> own_;
  std::uint32_t batch_ = 1;
  std::optional<device::RunSpan> span_;  ///< Of the last start().
};

/// Nothing is compiled: the description is all there is.
class NullProgram final : public device::LaneProgram {
 public:
  NullProgram(std::shared_ptr<NullState> state, Description description)
      : state_(std::move(state)),
        description_(std::make_shared<const Description>(std::move(description))),
        number_(++state_->programs) {}

  const std::vector<TensorDesc>& inputs() const noexcept override { return description_->inputs; }
  const std::vector<TensorDesc>& outputs() const noexcept override { return description_->outputs; }
  device::Placement placement() const noexcept override { return device::Placement::kShared; }
  device::MemoryFigures memory() const override {
    device::MemoryFigures figures;
    figures.weights = description_->constants;
    return figures;
  }
  Result<std::unique_ptr<device::LaneRequest>> new_request(std::size_t, std::size_t) override {
    return std::make_unique<NullRequest>(state_, description_, number_);
  }
  Result<device::Executable::Precompiled> export_precompiled() const override {
    return error(Code::kUnsupported,
                 "the null device has no pre-compiled form; it compiles nothing");
  }

 private:
  const std::shared_ptr<NullState> state_;
  const std::shared_ptr<const Description> description_;
  const std::uint64_t number_;
};

class NullEngine final : public device::LaneEngine {
 public:
  NullEngine(Script script, std::shared_ptr<Clock> clock) : state_(std::make_shared<NullState>()) {
    state_->script = std::move(script);
    state_->clock = std::move(clock);
  }

  Result<std::shared_ptr<device::LaneProgram>> prepare(
      const device::Image& image, const device::PrepareOptions& options) override {
    if (options.profile_layers)
      return error(Code::kUnsupported, "the null device has no layers to profile");
    if (!options.exposed_values.empty())
      return error(Code::kUnsupported, "the null device has no inner value '{}' to expose",
                   options.exposed_values.front());
    if (!options.custom_operators.empty())
      return error(Code::kUnsupported, "the null device runs no operators, so not '{}'",
                   options.custom_operators.front().type);
    CORELANE_ASSIGN(Description description, describe(image, options.input_shapes));
    return std::make_shared<NullProgram>(state_, std::move(description));
  }

  void set_log(std::function<void(std::string)> log) override { state_->log = std::move(log); }
  bool event_driven() const noexcept override { return !state_->script.threads; }

 private:
  const std::shared_ptr<NullState> state_;
};

}  // namespace

std::shared_ptr<device::LaneEngine> make_null_engine(Script script, std::shared_ptr<Clock> clock) {
  return std::make_shared<NullEngine>(std::move(script), std::move(clock));
}

}  // namespace corelane::drivers::null
