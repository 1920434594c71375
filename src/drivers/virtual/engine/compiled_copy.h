/// One compiled copy of a network: the engine's object with what it weighs.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <openvino/runtime/compiled_model.hpp>
#include <semaphore>
#include <set>
#include <string>
#include <utility>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/device/executable.h"
#include "drivers/virtual/engine/abandoned_runs.h"
#include "drivers/virtual/engine/engine_complaint.h"
#include "drivers/virtual/engine/engine_runtime.h"

namespace corelane::drivers::virtual_npu {

/// Bytes that copies are imported from; the engine refers to them as long as a copy lives.
struct Blob {
  ByteSpan bytes;
  std::shared_ptr<const void> owner;
  std::size_t heap_bytes = 0;  ///< 0 when the bytes are the image's own.
};

/// Immutable; requests may be made from any thread.
class CompiledCopy {
 public:
  struct Figures {
    /// Constants: those the engine keeps as they were read (none when they lie in a blob or in the
    /// image) and those it packed for its kernels.
    std::size_t weights = 0;
    /// The activations that live at the same time by the engine's own execution order, for each
    /// stream (computed).
    std::size_t internal = 0;
    /// The rest of what the heap grew by while the copy was made (measured).
    std::size_t code = 0;
    /// The part of the first two that was not there yet: with open shapes the engine packs at the
    /// first run.
    std::size_t later = 0;
  };

  /// Made by the two functions below.
  CompiledCopy(ov::CompiledModel compiled, const CopySettings& copy_settings,
               std::shared_ptr<const Blob> source, std::size_t kept_constants,
               std::size_t heap_growth, std::set<std::string> in_place = {})
      : model_(std::move(compiled)),
        settings_(copy_settings),
        blob_(std::move(source)),
        kept_constants_(kept_constants),
        heap_growth_(heap_growth),
        in_place_(std::move(in_place)),
        streams_(static_cast<std::ptrdiff_t>(copy_settings.streams)) {}

  const ov::CompiledModel& model() const noexcept { return model_; }
  const CopySettings& settings() const noexcept { return settings_; }
  /// A request that is made while one of them runs waits for it, inside of the engine.
  AbandonedRuns& abandoned() const noexcept { return abandoned_; }
  /// A run of open shapes has failed within the engine, which leaves nodes in its shapes with the
  /// memory and kernels of an earlier run (OpenVINO 2026.4.1): no run may follow on this copy.
  void spoil() const noexcept { spoilt_.store(true); }
  bool is_spoilt() const noexcept { return spoilt_.load(); }
  /// One for each stream. Who holds one while the engine runs has a stream to itself, and the next
  /// holder sees what the last one has said of the copy.
  std::counting_semaphore<>& streams() const noexcept { return streams_; }
  /// True at its first call, where the copy is large: for its first run, in which the engine packs
  /// constants by way of memory that it frees.
  bool is_first_run() const noexcept {
    return !has_run_.exchange(true, std::memory_order_relaxed) && heap_growth_ >= kLarge;
  }
  /// Walks the engine's graph at the first call (some ms for a large network).
  Figures figures() const;

 private:
  static constexpr std::size_t kLarge = std::size_t{1} << 20;

  ov::CompiledModel model_;
  CopySettings settings_;
  std::shared_ptr<const Blob> blob_;  ///< Null when it was compiled from the network.
  std::size_t kept_constants_;
  std::size_t heap_growth_;
  std::set<std::string> in_place_;  ///< Names of constants that lie in the image.
  mutable AbandonedRuns abandoned_;
  mutable std::atomic<bool> spoilt_{false};
  mutable std::atomic<bool> has_run_{false};
  mutable std::counting_semaphore<> streams_;
  mutable std::once_flag measured_;
  mutable Figures figures_;
};

/// `in_place`: names of the network's constants that lie in the image.
Result<std::shared_ptr<const CompiledCopy>> compile_copy(const std::shared_ptr<ov::Model>& network,
                                                         const CopySettings& settings,
                                                         const device::PrepareOptions& options,
                                                         const NodeNames& names,
                                                         const std::set<std::string>& in_place);

Result<std::shared_ptr<const CompiledCopy>> import_copy(std::shared_ptr<const Blob> blob,
                                                        const CopySettings& settings,
                                                        const device::PrepareOptions& options);

Result<std::shared_ptr<const Blob>> export_blob(const CompiledCopy& copy);

}  // namespace corelane::drivers::virtual_npu
