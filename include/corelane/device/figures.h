/// Figures of a device's work: plain values that every floor above it passes on. A user of programs
/// and sessions needs these and core_set.h, not the contract (device.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/tensor/dtype.h"

namespace corelane::device {

enum class Precision : std::uint8_t { kF32, kF16, kBF16 };
/// "f32", "f16", "bf16".
constexpr std::string_view precision_name(Precision precision) noexcept {
  return precision == Precision::kF16 ? "f16" : precision == Precision::kBF16 ? "bf16" : "f32";
}

/// Default of PrepareOptions::replicate_limit, in bytes.
inline constexpr std::size_t kReplicateLimit = std::size_t{64} << 20;

enum class Placement : std::uint8_t { kReplicated, kShared, kOpaque };

/// Which engine of a device computes an executable.
struct EngineChoice {
  std::string engine;  ///< Name and version, "ONNX Runtime 1.31.1"; empty: DeviceInfo::engine.
  std::string why;     ///< Not the device's own engine, in one line; empty where it is that one.
};

/// Bytes, as far as the device can tell them apart. Each figure is measured or computed, not a
/// guess; 0 where the device has none of that kind.
struct MemoryFigures {
  std::size_t weights = 0;   ///< Constants held for this object, copies included.
  std::size_t internal = 0;  ///< Activations.
  std::size_t code = 0;      ///< The compiled form around the constants: graph, kernels, scratch.
  std::size_t buffers = 0;   ///< Input and output buffers the library allocated.
  /// All of them, in bytes.
  std::size_t total() const noexcept { return weights + internal + code + buffers; }
  /// Adds each figure.
  MemoryFigures& operator+=(const MemoryFigures& other) noexcept {
    weights += other.weights;
    internal += other.internal;
    code += other.code;
    buffers += other.buffers;
    return *this;
  }
};

/// Time of one layer in the last run with profile_layers.
struct LayerTime {
  std::string name;    ///< Node name.
  std::string type;    ///< Operator type.
  std::string kernel;  ///< The engine's implementation, such as "jit_avx512_I8".
  DType dtype = DType::kUndefined;
  Duration duration{};    ///< Wall time.
  bool executed = false;  ///< False for layers that were folded or fused away.
};

/// Where one part of a job ran, and when.
struct JobPart {
  std::uint64_t core_bits = 0;
  TimePoint started{};
  TimePoint ended{};
};

/// What happened to one job; also the record in the trace. Times are of the device's clock.
struct JobRecord {
  std::uint64_t id = 0;           ///< Unique per device.
  std::uint64_t tag = 0;          ///< As submitted.
  std::uint64_t core_bits = 0;    ///< Cores it ran on; 0 when it never started.
  std::uint32_t queue_depth = 0;  ///< Jobs waiting when it was submitted.
  std::uint32_t batch = 1;
  std::int32_t priority = 0;
  Code code = Code::kOk;
  TimePoint queued{};
  TimePoint started{};
  TimePoint ended{};
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::uint64_t queue = 0;  ///< Queue::id() of the one it came through.
  /// The parts that ran of a job in several parts (chain_devices()), in their order: no part holds
  /// its cores from `started` to `ended` of the whole. Null for any other job.
  std::shared_ptr<const std::vector<JobPart>> parts;
};
/// Calls `f` with each stretch of time in which the job had cores: its parts, or the whole.
template <typename F>
void for_each_stretch(const JobRecord& record, F f) {
  if (record.parts == nullptr) {
    if (record.core_bits != 0) f(JobPart{record.core_bits, record.started, record.ended});
    return;
  }
  for (const JobPart& part : *record.parts) f(part);
}

/// When a run began and ended, on the device's clock.
struct RunSpan {
  TimePoint began{};
  TimePoint ended{};
};

}  // namespace corelane::device
