/// A network prepared for ONNX Runtime, the second engine of the virtual NPU.
///
/// One session serves all cores: its run may be called from several threads at once, and computes
/// in the thread that calls it. Jobs on several cores have a session of their own for each number
/// of threads, made at the first need. Constants lie in the image, and what the engine packs of
/// them is shared by the sessions.
///
/// Where nobody asked for this engine, a program begins with a plain session: the engine does not
/// optimise the network. After a few runs an optimised one is made in the background, and requests
/// take it at their next run.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/once_map.h"
#include "base/sync.h"
#include "corelane/base/status.h"
#include "corelane/driver/lane_engine.h"
#include "drivers/virtual/common/onnx_patch.h"
#include "drivers/virtual/ort/ort_empty_inputs.h"
#include "drivers/virtual/ort/ort_host_operators.h"
#include "drivers/virtual/ort/ort_later_copy.h"
#include "drivers/virtual/ort/ort_library.h"
#include "drivers/virtual/ort/ort_profile.h"
#include "drivers/virtual/ort/ort_zip_map.h"

namespace corelane::drivers::virtual_npu::ort {

/// A session of the engine with what it weighs. Immutable; any thread.
struct OrtCopy {
  OwnedSession session;
  std::size_t heap_growth = 0;  ///< What the heap grew by while it was made.
  bool plain = false;           ///< The network is not optimised.
};

/// Immutable once made; any thread.
class OrtProgram final : public device::LaneProgram,
                         public std::enable_shared_from_this<OrtProgram> {
 public:
  /// `lanes`: cores of the device.
  static Result<std::shared_ptr<OrtProgram>> create(const OrtLibrary& library,
                                                    const device::Image& image,
                                                    const device::PrepareOptions& options,
                                                    std::size_t lanes);

  const std::vector<TensorDesc>& inputs() const noexcept override { return inputs_; }
  const std::vector<TensorDesc>& outputs() const noexcept override { return outputs_; }
  device::Placement placement() const noexcept override { return device::Placement::kShared; }
  device::MemoryFigures memory() const override;
  Result<std::unique_ptr<device::LaneRequest>> new_request(std::size_t width,
                                                           std::size_t core) override;
  Status reserve(std::size_t width, std::size_t requests) override;
  Result<device::Executable::Precompiled> export_precompiled() const override;

  /// The copy for a request's next run, where another one has come for it; else null. A run begins.
  std::shared_ptr<const OrtCopy> better_copy(const OrtCopy& used);

  /// True while requests begin on a plain session.
  bool is_plain() const { return plain_copy() != nullptr; }

  const OrtLibrary& library() const noexcept { return library_; }
  /// Null where the program has none.
  OrtHostOperators* host_operators() const noexcept { return operators_.get(); }
  bool profiled() const noexcept { return options_.profile_layers; }
  /// What the inputs of a run must not be: it would end the process.
  const std::vector<EmptyBound>& empty_bounds() const noexcept { return empty_bounds_; }
  /// A session of its own for a request of `width` cores, which writes the times of its nodes.
  Result<std::unique_ptr<OrtProfile>> new_profile(std::size_t width) const;
  /// Times of the profile's last run; host operators under the types the network gives them.
  Result<std::vector<device::LayerTime>> layer_times(OrtProfile& profile) const;
  std::size_t nodes() const noexcept { return nodes_; }
  /// The keys of an output that ZipMap would make; null for others.
  const ZipLabels* zip_labels(std::size_t index) const {
    const auto at = zipped_.find(index);
    return at == zipped_.end() ? nullptr : &at->second;
  }
  /// The engine's name of an output, which differs from the program's for exposed values.
  const std::string& engine_output(std::size_t index) const { return output_names_[index]; }
  /// Bytes that a request's runs have taken, for memory().
  void note_run_memory(std::size_t bytes) noexcept { run_bytes_ += bytes; }

 private:
  using CopyPtr = std::shared_ptr<const OrtCopy>;

  OrtProgram(const OrtLibrary& library, device::Image image, device::PrepareOptions options,
             std::size_t lanes)
      : library_(library), image_(std::move(image)), options_(std::move(options)), lanes_(lanes) {}

  Status build();
  /// The network as the engine is given it.
  Result<PatchedModel> read(ZippedOutputs& zipped) const;
  bool optimising_tells_more() const;
  /// A session that the engine has optimised, and what it knows of the outputs.
  Status build_optimised(const PatchedModel& patched);
  Status share_constants(const PatchedModel& patched);
  Status describe_outputs(const PatchedModel& patched, OrtSession* session);
  Status describe_output(const PatchedModel& patched, OrtSession* session, std::size_t index);
  /// Of an output of which the engine knows no rank.
  Shape shape_without_rank(std::size_t index) const;
  void take_inferred_shapes();
  /// `alone`: what it packs of the weights goes with it.
  Result<OwnedSession> make_session(const PatchedModel& patched, const OrtSessionOptions* options,
                                    bool alone) const;
  Result<OwnedSessionOptions> options_for(const PatchedModel& patched, std::size_t threads,
                                          bool plain) const;
  /// True where the program may begin with a plain session.
  bool begins_plain(const PatchedModel& patched) const;
  CopyPtr plain_copy() const;
  Result<CopyPtr> make_copy(const PatchedModel& patched, std::size_t threads, bool plain);
  Result<CopyPtr> optimised_copy(std::size_t threads);
  Result<CopyPtr> copy_for(std::size_t width);
  std::size_t threads_for(std::size_t width) const;

  const OrtLibrary& library_;
  // Constant once build() is done.
  const device::Image image_;
  const device::PrepareOptions options_;
  const std::size_t lanes_;
  std::vector<TensorDesc> inputs_;
  std::vector<TensorDesc> outputs_;
  std::vector<std::string> output_names_;
  ZippedOutputs zipped_;
  std::size_t constant_bytes_ = 0;
  std::size_t nodes_ = 0;
  std::vector<EmptyBound> empty_bounds_;
  std::unique_ptr<OrtHostOperators> operators_;
  // Before the sessions, which use these until they go.
  OwnedPackedWeights packed_;
  /// Constants whose packed form the sessions share, by name.
  std::vector<std::pair<std::string, OwnedValue>> shared_;

  mutable Mutex mutex_{LockRank::kLeaf};
  CopyPtr plain_ CORELANE_GUARDED_BY(mutex_);  ///< For one thread, until there is a better one.
  std::atomic<std::size_t> run_bytes_{0};
  OnceMap<std::size_t, CopyPtr> copies_{LockRank::kLeaf};  ///< By number of threads.
  /// Null where the first session was optimised. Last: its end waits for what it makes.
  std::unique_ptr<OrtLaterCopy> later_;
};

/// A request of `width` cores that runs on `copy`; of a profiled program, on sessions of its own.
/// kOutOfMemory or kEngineFailed.
Result<std::unique_ptr<device::LaneRequest>> make_ort_request(std::shared_ptr<OrtProgram> program,
                                                              std::shared_ptr<const OrtCopy> copy,
                                                              std::size_t width);

}  // namespace corelane::drivers::virtual_npu::ort
