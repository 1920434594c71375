/// The runs of a model's context: its frames, and how they take turns.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "adapters/rknn/api/rknn_edge.h"
#include "adapters/rknn/memory/rknn_io_mem.h"
#include "adapters/rknn/memory/rknn_outside.h"
#include "adapters/rknn/model/rknn_context_lock.h"
#include "adapters/rknn/model/rknn_frame.h"
#include "corelane/base/clock.h"

namespace corelane::rknn {

struct ModelFacts;
class Queries;

/// Buffers that rknn_outputs_get allocated and rknn_outputs_release has not seen. Frees what is
/// left.
struct OutputBuffers {
  std::unordered_set<void*> malloced;
  ~OutputBuffers();
};

/// Owns what the context's lock orders. Functions of the API take the lock themselves; the others
/// expect that the caller holds it.
class Runs {
 public:
  Runs(const ModelFacts& facts, Queries& queries);

  /// rknn_run and rknn_wait.
  Outcome run(rknn_run_extend* extend);
  Outcome wait(rknn_run_extend* extend);
  /// rknn_set_core_mask and rknn_set_batch_core_num.
  Outcome set_core_mask(rknn_core_mask mask);
  Outcome set_batch_cores(int cores);

  /// Waits for what is running, and lets nothing begin any more. Does not wait for fences of the
  /// caller.
  void close();

  ContextMutex& mutex() const CORELANE_RETURN_CAPABILITY(mutex_) { return mutex_; }

  /// Begins anew with these frames, whose tensors are those of `facts`.
  void set_frames(std::vector<Frame> frames) CORELANE_REQUIRES(mutex_);
  std::vector<Frame>& frames() CORELANE_REQUIRES(mutex_) { return frames_; }
  /// Gives all frames these shapes, which an earlier program had; nothing where they are open.
  Status keep_shapes(const std::vector<Shape>& shapes) CORELANE_REQUIRES(mutex_);
  /// Reports the shapes of the first frame to queries.
  void note_shapes() CORELANE_REQUIRES(mutex_);
  /// The frame of the next run.
  Frame& next_frame() noexcept CORELANE_REQUIRES(mutex_);
  /// The frame whose results rknn_outputs_get hands out; null before the first run.
  Frame* result_frame() noexcept CORELANE_REQUIRES(mutex_);
  /// Inputs of `frame` that are set from now on are newer than those of all others.
  void begin_inputs() noexcept CORELANE_REQUIRES(mutex_) { ++age_; }
  void note_input(Frame& frame, std::size_t index) noexcept CORELANE_REQUIRES(mutex_);

  /// Waits until the frame's run is over and its memory is free, and gives how it ended; kTimeout
  /// when `until` came first.
  Status complete(Frame& frame, TimePoint until = kNever) CORELANE_REQUIRES(mutex_);
  /// The same for all frames; how the first that failed ended.
  Status complete_all() CORELANE_REQUIRES(mutex_);

  IoMemory& io_memory() noexcept CORELANE_REQUIRES(mutex_) { return io_memory_; }
  OutsideMemory& outside() noexcept CORELANE_REQUIRES(mutex_) { return outside_; }
  OutputBuffers& buffers() noexcept CORELANE_REQUIRES(mutex_) { return buffers_; }
  device::CoreSet& cores() noexcept CORELANE_REQUIRES(mutex_) { return cores_; }
  /// kWrongState with what is missing, where the context cannot run yet.
  Status ready() const CORELANE_REQUIRES(mutex_);

 private:
  bool in_use() const noexcept;
  Duration timeout_of(const rknn_run_extend* extend) const;
  TimePoint end_of(const rknn_run_extend* extend) const;
  TimePoint end_of_wait(const rknn_run_extend* extend) const;
  Status over_time(const Frame& frame, const Status& status) const;
  Outcome add_in_fence(const rknn_run_extend* extend, RunOptions& options)
      CORELANE_REQUIRES(mutex_);
  Status make_room(Frame& frame, const rknn_run_extend* extend) CORELANE_REQUIRES(mutex_);
  Status bring_inputs(Frame& frame) CORELANE_REQUIRES(mutex_);
  Status start(Frame& frame, RunOptions options, bool background) CORELANE_REQUIRES(mutex_);
  void note_end(Frame& frame, const Status& status) CORELANE_REQUIRES(mutex_);

  const ModelFacts& facts_;
  Queries& queries_;
  mutable ContextMutex mutex_;
  std::vector<Frame> frames_ CORELANE_GUARDED_BY(mutex_);
  std::uint64_t runs_ CORELANE_GUARDED_BY(mutex_) = 0;  ///< So far: the id of the last one.
  /// Runs before the shapes changed: those results are gone.
  std::uint64_t results_from_ CORELANE_GUARDED_BY(mutex_) = 0;
  /// The last runs that failed, by id, 0: none. A ring: to note one takes no memory.
  std::array<std::pair<std::uint64_t, Status>, 16> failed_ CORELANE_GUARDED_BY(mutex_);
  std::size_t next_failed_ CORELANE_GUARDED_BY(mutex_) = 0;
  /// The last id that left the ring: how runs up to it ended is not known.
  std::uint64_t forgotten_ CORELANE_GUARDED_BY(mutex_) = 0;
  std::vector<std::uint64_t> input_age_ CORELANE_GUARDED_BY(mutex_);  ///< The newest of each.
  std::uint64_t age_ CORELANE_GUARDED_BY(mutex_) = 0;
  device::CoreSet cores_ CORELANE_GUARDED_BY(mutex_);
  IoMemory io_memory_ CORELANE_GUARDED_BY(mutex_);
  OutsideMemory outside_ CORELANE_GUARDED_BY(mutex_);
  OutputBuffers buffers_ CORELANE_GUARDED_BY(mutex_);

  // close() ends runs that wait for a fence while rknn_run may hold the context's lock.
  Mutex fence_mutex_{LockRank::kLeaf};
  bool closing_ CORELANE_GUARDED_BY(fence_mutex_) = false;
  std::vector<std::shared_ptr<device::Fence>> in_fences_ CORELANE_GUARDED_BY(fence_mutex_);
};

}  // namespace corelane::rknn
