/// A chain of parts that is ready to run, its tensors, and the cores that it holds.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/sync.h"
#include "corelane/device/device.h"
#include "runtime/chain/chain_routes.h"

namespace corelane::runtime {

class ChainDevice;

class ChainExecutable final : public device::Executable,
                              public std::enable_shared_from_this<ChainExecutable> {
 public:
  /// Prepares part after part, each for the shapes that come out of those before.
  static Result<std::shared_ptr<device::Executable>> make(std::shared_ptr<ChainDevice> device,
                                                          const ChainImage& image,
                                                          const device::PrepareOptions& options);

  const std::shared_ptr<ChainDevice>& device() const noexcept { return device_; }
  const std::vector<std::shared_ptr<device::Executable>>& parts() const noexcept { return parts_; }
  const std::string& part_name(std::size_t part) const noexcept { return names_[part]; }
  const ChainRoutes& routes() const noexcept { return routes_; }
  /// Bytes of inner values that its bindings hold; they may outlive it.
  const std::shared_ptr<std::atomic<std::size_t>>& inner_bytes() const noexcept { return inner_; }
  /// Bytes of all inputs, and of all outputs.
  std::uint64_t bytes_in() const noexcept { return bytes_in_; }
  std::uint64_t bytes_out() const noexcept { return bytes_out_; }

  const std::vector<TensorDesc>& inputs() const noexcept override { return inputs_; }
  const std::vector<TensorDesc>& outputs() const noexcept override { return outputs_; }
  device::Placement placement() const noexcept override;
  device::EngineChoice engine() const override;
  bool lost() const noexcept override;
  device::MemoryFigures memory() const override;
  Result<std::shared_ptr<device::Bindings>> new_bindings() override;
  Result<std::shared_ptr<device::Residence>> make_resident(const device::CoreSet& cores,
                                                           device::Residency residency) override;
  Result<Precompiled> export_precompiled() const override;

 private:
  explicit ChainExecutable(std::shared_ptr<ChainDevice> device) : device_(std::move(device)) {}
  Status prepare_parts(const ChainImage& image, const device::PrepareOptions& options);
  /// What is said of a part that its device does not prepare, for the reason `why`.
  Status refusal(const ChainImage& image, std::size_t part, const device::PrepareOptions& options,
                 const Status& why) const;
  Status describe(const ChainImage& image);

  const std::shared_ptr<ChainDevice> device_;
  std::vector<std::shared_ptr<device::Executable>> parts_;
  std::vector<std::string> names_;
  ChainRoutes routes_;
  std::vector<TensorDesc> inputs_;
  std::vector<TensorDesc> outputs_;
  std::uint64_t bytes_in_ = 0;
  std::uint64_t bytes_out_ = 0;
  const std::shared_ptr<std::atomic<std::size_t>> inner_ =
      std::make_shared<std::atomic<std::size_t>>(0);
};

/// The tensors of one inference: those of the parts, joined by memory of the devices.
class ChainBindings final : public device::Bindings {
 public:
  static Result<std::shared_ptr<device::Bindings>> make(std::shared_ptr<ChainExecutable> of);

  const ChainExecutable& executable() const noexcept { return *executable_; }
  const std::vector<std::shared_ptr<device::Bindings>>& parts() const noexcept { return parts_; }

  Status set_input(std::size_t index, const device::TensorRef& tensor) override;
  Status set_output(std::size_t index, const device::TensorRef& tensor) override;
  Result<device::TensorRef> input(std::size_t index) override;
  Result<device::TensorRef> output(std::size_t index) override;
  Result<std::vector<device::LayerTime>> layer_times() const override;

  using Jobs = std::vector<std::shared_ptr<device::Completion>>;
  /// For one job; kBusy while another one has them, or a part of one still does.
  Status acquire();
  /// The job is over, or `jobs`, those of its parts, have the tensors from here on.
  void give_back(Jobs jobs = {});

 private:
  explicit ChainBindings(std::shared_ptr<ChainExecutable> of) : executable_(std::move(of)) {}
  Result<device::TensorRef> new_memory(const PartTensor& owner, const TensorDesc& desc);
  Status join(const InnerValue& value);
  Status share(std::size_t input);
  Status check(std::size_t index, std::size_t count, const char* what) const;
  Status check_free() const CORELANE_REQUIRES(mutex_);

  const std::shared_ptr<ChainExecutable> executable_;
  std::vector<std::shared_ptr<device::Bindings>> parts_;
  /// By input: the chain's own memory of one that several parts read; null where one does.
  std::vector<device::TensorRef> shared_;
  mutable Mutex mutex_{LockRank::kLeaf};
  bool acquired_ CORELANE_GUARDED_BY(mutex_) = false;
  Jobs last_ CORELANE_GUARDED_BY(mutex_);  ///< Of the last submission.
};

/// Cores of each device. It ends as a whole where one of them is lost.
class ChainResidence final : public device::Residence {
 public:
  static Result<std::shared_ptr<device::Residence>> make(std::shared_ptr<ChainExecutable> of,
                                                         const device::CoreSet& cores,
                                                         device::Residency residency);
  device::CoreSet cores() const noexcept override { return cores_; }
  Status add(const std::shared_ptr<device::Executable>& executable) override;
  device::Residency residency() const noexcept override { return residency_; }

 private:
  using Parts = std::vector<std::shared_ptr<device::Residence>>;
  ChainResidence(std::shared_ptr<ChainExecutable> of, device::Residency residency)
      : executable_(std::move(of)), residency_(residency) {}

  const std::shared_ptr<ChainExecutable> executable_;
  const device::Residency residency_;
  device::CoreSet cores_;
  Mutex mutex_{LockRank::kLeaf};
  Parts parts_ CORELANE_GUARDED_BY(mutex_);  ///< By member of the device; none once it has ended.
};

}  // namespace corelane::runtime
