/// The tensors of one inference on a LanedDevice, and the engine's requests they are bound to.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "corelane/driver/lane_engine.h"
#include "lanes/kept_inputs.h"
#include "lanes/lane_job.h"

namespace corelane::lanes {

class LanedExecutable;

/// One caller at a time sets tensors; one job at a time has it acquired, and then only the thread
/// that runs the job touches it.
class LanedBindings final : public device::Bindings {
 public:
  explicit LanedBindings(std::shared_ptr<LanedExecutable> executable);
  ~LanedBindings() override;

  Status set_input(std::size_t index, const device::TensorRef& tensor) override;
  Status set_output(std::size_t index, const device::TensorRef& tensor) override;
  Result<device::TensorRef> input(std::size_t index) override;
  Result<device::TensorRef> output(std::size_t index) override;
  Result<std::vector<device::LayerTime>> layer_times() const override;

  LanedExecutable& executable() const noexcept { return *executable_; }

  /// For one job; false when another has it.
  bool acquire() noexcept { return !busy_.exchange(true, std::memory_order_acq_rel); }
  void release() noexcept { busy_.store(false, std::memory_order_release); }

  /// Acquired, before the job: gives all inputs memory. kWrongState names one of open shape that
  /// the caller must bind.
  Status complete_tensors() { return complete_ ? Status() : make_complete(); }
  /// Makes a shadow for each tensor in user memory that nothing keeps alive; true when there is
  /// one: then run with `shadow`.
  Result<bool> make_shadows();
  /// The fences that the job waited for are signalled: its inputs have their content only now.
  void fences_signalled() noexcept { kept_.fences_signalled(); }
  /// Copies the inputs to their shadows; a kept one only when it is new.
  void copy_in() noexcept;
  /// Copies the results from their shadows.
  Status copy_out();
  /// What the request is told of the job: its batch, and the cores it asks for, not what it gets.
  void take_terms(const device::Submission& job) noexcept {
    batch_ = job.batch;
    cores_ = job.cores;
  }
  /// After take_terms(), for this run: the engine's request is told the cores that the job was
  /// granted, as if it had asked for these.
  void pin_to(std::uint64_t core_bits) noexcept { cores_ = device::CoreSet::mask(core_bits); }
  /// Acquired: whether a run on last_core_bits(), with the memory as it is bound, is brief (see
  /// LaneRequest). Then the request has that memory.
  bool is_brief() noexcept;
  Outcome run(std::uint64_t core_bits, bool shadow) noexcept;
  /// Asks a run that is under way to end early. Any thread, while the job has these bindings.
  void abandon() noexcept {
    if (device::LaneRequest* const request = running_.load(std::memory_order_acquire))
      request->abandon();
  }
  /// A failure, or an exception: the engine has not got the job, and `done` is not called.
  Status start(std::uint64_t core_bits, TimePoint ready, bool shadow,
               std::function<void(Outcome)> done);

  std::uint64_t last_core_bits() const noexcept { return last_core_bits_; }
  std::uint64_t bytes_in() const noexcept { return bytes_in_; }
  std::uint64_t bytes_out() const noexcept { return bytes_out_; }

 private:
  struct Tensor {
    const TensorDesc* desc = nullptr;  ///< Of the executable.
    device::TensorRef bound;  ///< Memory of the user, or `own`; null while there is neither.
    bool user = false;
    bool has_result = false;    ///< Output: the last run succeeded with this memory.
    std::uint64_t version = 1;  ///< Of `bound`.
    std::shared_ptr<std::byte> own;
    std::size_t own_size = 0;
    std::shared_ptr<std::byte> shadow;  ///< Stands in for user memory that may go away.
    std::size_t shadow_size = 0;
    bool kept = false;  ///< An input that the program keeps a form of.
    bool shadowable() const noexcept { return user && bound.keep_alive == nullptr; }
  };
  /// One request of the engine, with the versions of the tensors it has.
  struct Slot {
    std::size_t width = 0;
    std::size_t core = 0;
    std::uint64_t stamp = 0;
    std::uint32_t batch = 1;
    device::CoreSet cores;
    std::vector<std::uint64_t> inputs;
    std::vector<std::uint64_t> outputs;
    std::unique_ptr<device::LaneRequest> request;
    bool lost = false;  ///< Not run again; destroyed before the next job, when no call is in it.
  };

  /// kBusy, or kOutOfRange, for a call on one of `tensors`, which are inputs_ or outputs_.
  Status check(const std::vector<Tensor>& tensors, std::size_t index) const;
  Status set_tensor(std::vector<Tensor>& tensors, std::size_t index,
                    const device::TensorRef& tensor);
  Status make_complete();
  Status ensure_own(Tensor& tensor);
  Status ensure_input(Tensor& tensor);
  std::size_t index_of(const Tensor& input) const noexcept {
    return static_cast<std::size_t>(&input - inputs_.data());
  }
  Status set_kept(const Tensor& tensor, const device::TensorRef& ref);
  Status drop_from_requests(std::size_t input);
  Status ensure_shadow(Tensor& tensor, std::size_t size);
  Status allocate(std::shared_ptr<std::byte>& memory, std::size_t& held, std::size_t size,
                  const TensorDesc& desc);
  /// What a request must have: all bindings as of now, with or without shadows.
  std::uint64_t stamp_of(bool shadow) const noexcept {
    return changes_ << 1 | static_cast<std::uint64_t>(shadow);
  }
  bool is_ready(const Slot& slot, bool shadow) const noexcept {
    return slot.stamp == stamp_of(shadow) && slot.batch == batch_ && slot.cores == cores_;
  }
  Result<Slot*> slot_for(std::uint64_t core_bits, bool shadow);
  Status apply(Slot& slot, bool shadow);
  bool ran(Slot& slot, std::uint64_t core_bits, const Status& status) noexcept;
  void count_bytes();

  const std::shared_ptr<LanedExecutable> executable_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  KeptInputs kept_;
  std::vector<std::unique_ptr<Slot>> slots_;
  Slot* last_ = nullptr;                                ///< Of the last run.
  std::atomic<device::LaneRequest*> running_{nullptr};  ///< In run().
  bool complete_ = false;
  bool open_outputs_ = false;  ///< The size of a result is known after the run only.
  std::uint64_t changes_ = 1;
  std::uint64_t last_core_bits_ = 0;
  std::uint64_t bytes_in_ = 0;
  std::uint64_t bytes_out_ = 0;
  std::uint32_t batch_ = 1;
  device::CoreSet cores_;
  std::size_t held_ = 0;  ///< Bytes allocated here, counted in the executable.
  std::atomic<bool> busy_{false};
};

/// Bindings that are acquired: released with it, unless a job has taken them over.
class Acquired {
 public:
  Acquired() noexcept = default;
  explicit Acquired(LanedBindings& bindings) noexcept : bindings_(&bindings) {}
  Acquired(Acquired&& other) noexcept : bindings_(std::exchange(other.bindings_, nullptr)) {}
  Acquired& operator=(Acquired&& other) noexcept {
    std::swap(bindings_, other.bindings_);
    return *this;
  }
  ~Acquired() {
    if (bindings_ != nullptr) bindings_->release();
  }
  LanedBindings& operator*() const noexcept { return *bindings_; }
  LanedBindings* operator->() const noexcept { return bindings_; }
  /// The end of the job releases them.
  void taken_over() noexcept { bindings_ = nullptr; }

 private:
  LanedBindings* bindings_ = nullptr;
};

}  // namespace corelane::lanes
