/// A network prepared for the lanes of one virtual NPU.
///
/// This room runs networks on OpenVINO: network.h reads one, compiled_copy.h compiles it, this file
/// keeps its copies, virtual_request.cpp runs one of them. Beside that way: engine_runtime.h (the
/// core, types, exceptions), host_node.h (custom operators), shape_check.h, and engine_complaint.h,
/// which reads the engine's prose.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/once_map.h"
#include "corelane/base/status.h"
#include "corelane/driver/lane_engine.h"
#include "drivers/virtual/common/index_bounds.h"
#include "drivers/virtual/common/onnx_patch.h"
#include "drivers/virtual/direct/direct_forms.h"
#include "drivers/virtual/engine/compiled_copy.h"
#include "drivers/virtual/engine/constants_in_place.h"
#include "drivers/virtual/engine/empty_inputs.h"
#include "drivers/virtual/engine/host_node.h"
#include "drivers/virtual/engine/shape_check.h"

namespace corelane::drivers::virtual_npu {

/// Copies of the network by the threads that run them:
///  - replicated: one per lane, 1 stream x 1 thread, run inline by the thread that runs the lane;
///  - shared: one for all lanes with min(lanes, CPUs) streams, run by the engine's stream threads;
///  - one per number of cores k > 1, 1 stream x min(k, CPUs) threads.
/// Small networks (direct_network.h) have the first of them for the figures, and do not call it.
/// All but the first are made when they are reserved or first used, from a blob where the engine
/// can export one. No lock is held while the engine compiles: copies for different cores, and
/// different programs, are made at the same time, each of them once.
class VirtualProgram final : public device::LaneProgram,
                             public std::enable_shared_from_this<VirtualProgram> {
 public:
  /// `lanes`: cores of the device. `direct`: see virtual_engine.h.
  /// `users`: of the constants that programs of this device read in place.
  static Result<std::shared_ptr<VirtualProgram>> create(const device::Image& image,
                                                        const device::PrepareOptions& options,
                                                        std::size_t lanes, bool direct,
                                                        std::shared_ptr<ConstantUsers> users);

  const std::vector<TensorDesc>& inputs() const noexcept override { return inputs_; }
  const std::vector<TensorDesc>& outputs() const noexcept override { return ports_.outputs; }
  device::Placement placement() const noexcept override {
    return shared_ ? device::Placement::kShared : device::Placement::kReplicated;
  }
  bool from_precompiled() const noexcept override { return from_precompiled_; }
  device::MemoryFigures memory() const override;
  Result<std::unique_ptr<device::LaneRequest>> new_request(std::size_t width,
                                                           std::size_t core) override;
  Status reserve(std::size_t width, std::size_t requests) override;
  Result<device::Executable::Precompiled> export_precompiled() const override;

  /// The engine's input for each of the program's; -1 where no node reads it (the engine drops
  /// those).
  const std::vector<int>& engine_inputs() const noexcept { return ports_.engine_inputs; }
  /// Bounds to check on the inputs: this engine does not look at the indices of a Gather.
  const std::vector<IndexBound>& bounds() const noexcept { return given_.bounds; }
  /// For each input, whether runs may have it without elements; says nothing of inputs of
  /// fixed size.
  const std::vector<bool>& may_be_empty() const noexcept { return given_.may_be_empty; }
  HostOperators* host_operators() const noexcept { return operators_.get(); }
  /// kShapeMismatch where shapes of the inputs, one for each, do not fit the network; kOutOfMemory.
  /// Those that fit are remembered.
  Status check_shapes(const std::vector<Shape>& shapes);
  /// Frees the network that shapes are checked with. The next new shapes read it again.
  void end_shape_check();
  bool profiled() const noexcept { return options_.profile_layers; }
  /// Whether the engine may end a run between two nodes. Not where a shape is open, an inner one
  /// too: it leaves nodes in that run's shapes with the memory and kernels of an earlier run's, so
  /// that later runs are wrong, with status ok (OpenVINO 2026.4.1).
  bool may_end_early() const noexcept { return runs_.may_end_early; }
  /// A measured growth of the heap by the first run of an open form with some shapes.
  void note_run_memory(std::size_t bytes) noexcept { run_bytes_ += bytes; }

 private:
  using CopyPtr = std::shared_ptr<const CompiledCopy>;
  using Key = std::pair<std::size_t, std::size_t>;  ///< Width, core (0 unless replicated).

  VirtualProgram(device::Image image, device::PrepareOptions options, std::size_t lanes,
                 std::shared_ptr<ConstantUsers> users)
      : image_(std::move(image)),
        options_(std::move(options)),
        lanes_(lanes),
        in_place_(std::move(users)) {}

  /// Which input of the engine each of the program's is, and what comes out.
  struct Ports {
    std::vector<int> engine_inputs;
    std::vector<TensorDesc> outputs;
  };
  /// What runs may bring, of the inputs.
  struct GivenInputs {
    std::vector<IndexBound> bounds;
    std::vector<bool> may_be_empty;
  };
  struct Runs {
    bool never_throw = false;  ///< See network.h.
    bool may_end_early = false;
  };
  /// The copy that is made at prepare, and what it decides for all copies.
  struct FirstCopy {
    CopyPtr copy;
    std::shared_ptr<const Blob> blob;  ///< What it was imported from; null: it was compiled.
    Ports ports;
    bool never_throws = false;  ///< See network.h.
    bool shared = false;        ///< One copy for all lanes.
  };

  Status build(bool direct);
  /// From the image's pre-compiled form, where it has one that fits. `large`: shared by its size.
  std::optional<FirstCopy> import_first(const PatchedModel& patched, bool large) const;
  Result<FirstCopy> compile_first(const PatchedModel& patched, bool large);
  Result<Ports> describe(const PatchedModel& patched, const ov::CompiledModel& model) const;
  /// Sets `direct_` where requests can do without the engine.
  void find_direct(const PatchedModel& patched);
  /// True when each shape is known, those within the network too.
  bool shapes_are_fixed() const;
  CopySettings settings_for(std::size_t width, bool shared) const;
  Key key_for(std::size_t width, std::size_t core) const;
  Result<CopyPtr> copy_for(std::size_t width, std::size_t core);
  /// A copy with other settings: imported from a blob of `first`, or compiled again.
  Result<CopyPtr> make_copy(const CompiledCopy& first, const CopySettings& settings);
  Result<std::unique_ptr<device::LaneRequest>> engine_request(std::size_t width, std::size_t core);
  Result<PatchedModel> patch() const;
  /// The network to compile, with constants in the image where that never changes.
  Result<std::shared_ptr<ov::Model>> read(const PatchedModel& patched);
  std::string tag() const;

  // Constant once build() is done.
  device::Image image_;
  device::PrepareOptions options_;
  std::size_t lanes_;
  ConstantsInPlace in_place_;
  std::vector<TensorDesc> inputs_;
  Ports ports_;
  GivenInputs given_;
  std::shared_ptr<HostOperators> operators_;
  std::shared_ptr<DirectForms> direct_;  ///< Null: the engine runs it.
  bool shared_ = false;
  bool from_precompiled_ = false;
  Runs runs_;
  std::string shapes_;  ///< Of the inputs, for the tag.
  CopyPtr first_;

  std::atomic<std::size_t> run_bytes_{0};

  static constexpr std::size_t kMostGoodShapes = 4096;
  /// Made for shapes that are new; null: the engine's own checks decide.
  OnceMap<std::monostate, std::shared_ptr<ShapeCheck>> shape_check_{LockRank::kLeaf};
  OnceMap<ShapeKey, std::monostate> good_shapes_{LockRank::kLeaf, kMostGoodShapes};

  OnceMap<Key, CopyPtr> copies_{LockRank::kLeaf};  ///< All of them, `first_` too.
  mutable Mutex left_mutex_{LockRank::kLeaf};
  /// Left to runs that hang, or after one that failed; they weigh as long as a request has them.
  std::vector<std::weak_ptr<const CompiledCopy>> left_ CORELANE_GUARDED_BY(left_mutex_);
  OnceMap<std::monostate, std::shared_ptr<const Blob>> blob_{LockRank::kLeaf};
};

}  // namespace corelane::drivers::virtual_npu
