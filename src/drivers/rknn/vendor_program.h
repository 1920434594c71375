/// An image in the library: a first context that holds it, and one more for each request.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/sync.h"
#include "corelane/driver/lane_engine.h"
#include "drivers/rknn/vendor_context.h"
#include "drivers/rknn/vendor_tensor.h"

namespace corelane::drivers::rknn {

/// Any thread.
class VendorProgram final : public device::LaneProgram,
                            public std::enable_shared_from_this<VendorProgram> {
 public:
  /// `cores` of the device; with one, the library is never asked to choose.
  static Result<std::shared_ptr<VendorProgram>> create(std::shared_ptr<const Library> library,
                                                       const device::Image& image,
                                                       const device::PrepareOptions& options,
                                                       std::size_t cores);

  const std::vector<TensorDesc>& inputs() const noexcept override { return inputs_; }
  const std::vector<TensorDesc>& outputs() const noexcept override { return outputs_; }
  device::Placement placement() const noexcept override { return device::Placement::kOpaque; }
  device::MemoryFigures memory() const override;
  Result<std::unique_ptr<device::LaneRequest>> new_request(std::size_t width,
                                                           std::size_t core) override;
  Result<device::Executable::Precompiled> export_precompiled() const override;

  const std::vector<Port>& input_ports() const noexcept { return input_ports_; }
  const std::vector<Port>& output_ports() const noexcept { return output_ports_; }
  bool profiled() const noexcept { return flags_ != 0; }
  bool chooses_cores() const noexcept { return cores_ > 1; }
  /// A context for one request, with the shapes of this program.
  Result<std::unique_ptr<VendorContext>> new_context();
  /// Called when the request that used the context is gone.
  void context_gone(const VendorContext& context) noexcept {
    requests_.fetch_sub(1, std::memory_order_relaxed);
    if (context.owns_weights()) loads_.fetch_sub(1, std::memory_order_relaxed);
  }
  /// True once per program: for a remark that would repeat with every job.
  bool first_remark() noexcept { return !remarked_.exchange(true, std::memory_order_relaxed); }

 private:
  VendorProgram(std::shared_ptr<const Library> library, const device::Image& image,
                std::uint32_t flags, std::size_t cores)
      : library_(std::move(library)),
        bytes_(image.bytes),
        keep_alive_(image.keep_alive),
        intact_(image.intact),
        flags_(flags),
        cores_(cores) {}
  Status build(const device::Image& image, const device::PrepareOptions& options);
  Status choose_shapes(const Attributes& reported, const std::vector<Shape>& shapes);
  Status describe(const Attributes& reported, const device::Image& image);
  Result<std::unique_ptr<VendorContext>> load() const;
  Result<std::unique_ptr<VendorContext>> another_context();

  const std::shared_ptr<const Library> library_;
  const ByteSpan bytes_;
  const std::shared_ptr<const void> keep_alive_;
  const std::function<Status()> intact_;  ///< Of the image; may be empty.
  const std::uint32_t flags_;             ///< Of rknn_init.
  const std::size_t cores_;
  std::vector<Port> input_ports_;
  std::vector<Port> output_ports_;
  std::vector<TensorDesc> inputs_;
  std::vector<TensorDesc> outputs_;
  std::vector<rknn_tensor_attr> shapes_;  ///< For each context; empty: as the image has them.
  rknn_mem_size figures_{};
  std::unique_ptr<VendorContext> first_;
  /// Also held while first_ is duplicated: a context is used by one thread at a time. Without a
  /// rank, since the library may be a Corelane of its own, with all of its mutexes.
  Mutex mutex_{LockRank::kUnranked};
  bool duplicates_ CORELANE_GUARDED_BY(mutex_) = true;
  std::atomic<std::size_t> loads_{1};     ///< Contexts that hold weights of their own.
  std::atomic<std::size_t> requests_{0};  ///< Contexts beside the first.
  std::atomic<bool> remarked_{false};
};

}  // namespace corelane::drivers::rknn
