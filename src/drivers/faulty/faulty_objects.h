/// Executables, bindings and completions of the faulty device.
#pragma once

#include <atomic>
#include <memory>
#include <random>

#include "base/sync.h"
#include "corelane/device/device.h"
#include "corelane/device/fault.h"

namespace corelane::drivers::faulty {

using device::Bindings;
using device::Completion;
using device::CoreSet;
using device::Executable;
using device::FaultPlan;
using device::Fence;
using device::JobRecord;
using device::LayerTime;
using device::MemoryFigures;
using device::Placement;
using device::Residency;
using device::TensorRef;

/// What strikes one job's result.
enum class ResultFault : std::uint8_t { kNone, kShort, kFlip };

/// Draws faults of a plan, reproducibly by order of calls. Any thread.
class FaultDice {
 public:
  explicit FaultDice(const FaultPlan& plan) : plan_(plan), random_(plan.seed + 1) {}
  ResultFault for_job();
  bool for_allocation();
  std::uint64_t number();
  bool strikes_results() const noexcept { return plan_.short_result + plan_.flip > 0; }

 private:
  double draw();
  const FaultPlan plan_;
  Mutex mutex_{LockRank::kLeaf};
  std::mt19937_64 random_ CORELANE_GUARDED_BY(mutex_);
};

/// Passes on to the bindings of the device below. After a "short" job output() reports half of the
/// bytes, as a device does that stopped writing.
class FaultyBindings final : public Bindings {
 public:
  FaultyBindings(std::shared_ptr<Bindings> bindings, std::shared_ptr<const Executable> owner)
      : inner(std::move(bindings)), executable(std::move(owner)) {}

  Status set_input(std::size_t index, const TensorRef& tensor) override {
    return inner->set_input(index, tensor);
  }
  Status set_output(std::size_t index, const TensorRef& tensor) override {
    return inner->set_output(index, tensor);
  }
  Result<TensorRef> input(std::size_t index) override { return inner->input(index); }
  Result<TensorRef> output(std::size_t index) override;
  Result<std::vector<LayerTime>> layer_times() const override { return inner->layer_times(); }

  /// Inverts one bit of the results.
  void flip(std::uint64_t random);

  const std::shared_ptr<Bindings> inner;
  const std::shared_ptr<const Executable> executable;
  std::atomic<bool> is_short{false};
};

class FaultyExecutable final : public Executable,
                               public std::enable_shared_from_this<FaultyExecutable> {
 public:
  FaultyExecutable(std::shared_ptr<Executable> executable, std::shared_ptr<FaultDice> dice,
                   const void* device)
      : inner(std::move(executable)), owner(device), dice_(std::move(dice)) {}

  const std::vector<TensorDesc>& inputs() const noexcept override { return inner->inputs(); }
  const std::vector<TensorDesc>& outputs() const noexcept override { return inner->outputs(); }
  Placement placement() const noexcept override { return inner->placement(); }
  bool from_precompiled() const noexcept override { return inner->from_precompiled(); }
  MemoryFigures memory() const override { return inner->memory(); }
  Result<std::shared_ptr<Bindings>> new_bindings() override;
  Status make_resident(const CoreSet& cores, Residency residency) override {
    return inner->make_resident(cores, residency);
  }
  void release_residency() override { inner->release_residency(); }
  Result<Precompiled> export_precompiled() const override { return inner->export_precompiled(); }

  const std::shared_ptr<Executable> inner;
  const void* const owner;  ///< The device below, for recognition.

 private:
  const std::shared_ptr<FaultDice> dice_;
};

/// The completion of a struck job: done once the fault was applied to the result.
class FaultyCompletion final : public Completion,
                               public std::enable_shared_from_this<FaultyCompletion> {
 public:
  FaultyCompletion(std::shared_ptr<FaultyBindings> bindings, std::shared_ptr<Clock> clock,
                   std::vector<std::shared_ptr<Fence>> signals)
      : bindings_(std::move(bindings)), signals_(std::move(signals)), done_(std::move(clock)) {}
  /// Attaches to the job below, which applies `fault` when it succeeded.
  void watch(std::shared_ptr<Completion> inner, ResultFault fault, std::uint64_t random);

  bool done() const noexcept override { return done_.signalled(); }
  bool released() const noexcept override { return done() && inner_->released(); }
  bool wait(TimePoint until) override { return inner_->wait(until) && done_.wait(until); }
  bool wait_released(TimePoint until) override {
    return wait(until) && inner_->wait_released(until);
  }
  Status status() const override;
  JobRecord record() const override { return done() ? inner_->record() : JobRecord{}; }
  bool cancel() override { return inner_->cancel(); }
  void on_done(std::function<void(Completion&)> f) override;

 private:
  const std::shared_ptr<FaultyBindings> bindings_;
  const std::vector<std::shared_ptr<Fence>> signals_;
  std::shared_ptr<Completion> inner_;
  Fence done_;
};

}  // namespace corelane::drivers::faulty
