/// What the tests of programs and sets share: the C functions on a device of their own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "adapters/qaic/context/qaic_devices.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/runtime/program.h"
#include "device/registry/testing/watched_clock.h"
#include "qaic_ours.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::qaic::test {

using device::WatchedClock;
using testing::OnnxBuilder;

/// x: f32 [1, 4] -> y, which the null device copies.
inline std::string one_in_one_out() {
  return testing::relu_model({std::int64_t{1}, std::int64_t{4}});
}

/// Two of each, f32 [1, n]: "ids" -> "logits", "cache" -> "kept".
inline std::string with_cache() {
  const std::vector<OnnxBuilder::Dim> dims{std::int64_t{1}, std::string("n")};
  return OnnxBuilder()
      .input("ids", dims)
      .input("cache", dims)
      .output("logits", dims)
      .output("kept", dims)
      .node("Relu", {"ids"}, {"logits"})
      .node("Relu", {"cache"}, {"kept"})
      .build("cached");
}

/// Options for with_cache(): `lengths` are the specializations, "cache" may be given in part.
inline ImportOptions cache_options(const std::vector<std::int64_t>& lengths) {
  ImportOptions options;
  options.partial_inputs = {"cache"};
  if (lengths.size() == 1) options.dims["n"] = lengths.front();
  for (const std::int64_t n : lengths)
    if (lengths.size() > 1) options.shape_sets.push_back({Shape{1, n}, Shape{1, n}});
  return options;
}

/// No handle of a set.
inline constexpr std::uint32_t kNone = UINT32_MAX;

/// Settings of an inference that takes too long.
struct Grid {
  std::uint32_t timeout_ms, retries;
};

inline std::string text() { return qaicGetFunctionTable()->qaicGetLastErrorText(); }

/// A device, a context and a container.
struct Bench {
  explicit Bench(const std::string& device_text = "null:generic:4?a=1ms",
                 std::shared_ptr<device::FaultPoint> faults = nullptr, bool virtual_time = true,
                 const std::string& onnx = one_in_one_out(), const ImportOptions& import = {})
      : clock(virtual_time ? std::make_shared<WatchedClock>() : nullptr) {
    device::OpenOptions open;
    open.clock = clock;
    open.fault_point = std::move(faults);
    open.own_instance = true;
    auto opened = device::open_device(device_text, open);
    EXPECT_TRUE(opened) << opened.error().to_string();
    if (!opened) return;
    device = *opened;
    set_devices({device});
    const QID number = 0;
    EXPECT_EQ(
        qaicCreateContext(&context, nullptr, 1, &number, nullptr, nullptr, &Bench::on_error, this),
        QS_SUCCESS)
        << text();
    CompileOptions compile;
    compile.import = import;
    const auto made = compile_bytes(as_byte_span(onnx), compile);
    EXPECT_TRUE(made) << made.error().to_string();
    if (!made) return;
    bytes = std::string(as_string_view(*made));
    EXPECT_EQ(
        qaicOpenQpc(&qpc, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), true),
        QS_SUCCESS)
        << text();
  }
  /// A job that was abandoned is on the clock until the engine returns, and keeps its device.
  ~Bench() {
    if (clock != nullptr) clock->run_all();
    static_cast<void>(qaicCloseQpc(qpc));
    static_cast<void>(qaicReleaseContext(context));
    set_devices({});
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  QAicProgram* program(std::uint32_t timeout_ms = 0, std::uint32_t retries = 5) const {
    QAicProgramProperties properties;
    properties.SubmitRetryTimeoutMs = timeout_ms;
    properties.SubmitNumRetries = retries;
    QAicProgram* made = nullptr;
    EXPECT_EQ(qaicCreateProgram(context, &made, &properties, 0, "net", qpc), QS_SUCCESS) << text();
    return made;
  }
  QAicExecObj* exec(QAicProgram* of,
                    QAicExecObjProperties_t properties = QAIC_EXECOBJ_PROPERTIES_DEFAULT) const {
    QAicExecObj* made = nullptr;
    EXPECT_EQ(qaicCreateExecObj(context, &made, &properties, of, nullptr, nullptr, nullptr),
              QS_SUCCESS)
        << text();
    return made;
  }
  QAicQueue* queue(std::uint32_t bits = QAIC_QUEUE_PROPERTIES_DEFAULT) const {
    QAicQueueProperties properties;
    properties.properties = bits;
    QAicQueue* made = nullptr;
    EXPECT_EQ(qaicCreateQueue(context, &made, &properties, 0), QS_SUCCESS) << text();
    return made;
  }
  QAicEvent* event() const {
    QAicEvent* made = nullptr;
    EXPECT_EQ(qaicCreateEvent(context, &made, QAIC_EVENT_DEVICE_COMPLETE), QS_SUCCESS);
    return made;
  }
  QAicInferenceSet* set(std::uint32_t size, std::uint32_t activations = 1,
                        std::uint32_t timeout_ms = 0, std::uint32_t retries = 5) const {
    QAicProgramProperties properties;
    properties.SubmitRetryTimeoutMs = timeout_ms;
    properties.SubmitNumRetries = retries;
    QAicInferenceSetConfig config;
    config.setSize = size;
    config.numActivations = activations;
    config.programProperties = &properties;
    QAicInferenceSet* made = nullptr;
    EXPECT_EQ(qaicCreateInferenceSet(context, &made, &config, qpc), QS_SUCCESS) << text();
    return made;
  }
  QAicProgramInfo info(QAicProgram* of) const {
    QAicProgramInfo found;
    EXPECT_EQ(qaicProgramGetInfo(of, &found), QS_SUCCESS) << text();
    return found;
  }
  void advance(Duration by) const { clock->advance(by); }
  TimePoint now() const { return clock->now(); }
  /// Free cores of the device, as the API tells them.
  int free_cores() const {
    QResourceInfo found;
    EXPECT_EQ(qaicGetResourceInfo(0, &found), QS_SUCCESS) << text();
    return found.nspFree;
  }

  /// What the error handler was called for so far.
  std::vector<int> errors() const {
    const std::lock_guard guard(mutex_);
    return errors_;
  }
  static void on_error(QAicContextID, const char*, QAicErrorType type, const void*, std::size_t,
                       void* self) {
    auto& bench = *static_cast<Bench*>(self);
    const std::lock_guard guard(bench.mutex_);
    bench.errors_.push_back(static_cast<int>(type));
  }

  std::shared_ptr<WatchedClock> clock;  ///< Null: real time.
  std::shared_ptr<device::Device> device;
  QAicContext* context = nullptr;
  QAicQpcObj* qpc = nullptr;
  std::string bytes;

 private:
  mutable std::mutex mutex_;
  std::vector<int> errors_;
};

/// The memory of a list as a buffer.
inline QBuffer whole(std::vector<float>& of) {
  QBuffer buffer;
  buffer.size = of.size() * sizeof(float);
  buffer.buf = reinterpret_cast<std::uint8_t*>(of.data());
  return buffer;
}

/// Memory for all buffers of Bench's programs, 4 floats each unless said otherwise.
struct Tensors {
  explicit Tensors(std::size_t count = 2, std::size_t floats = 4)
      : values(count, std::vector<float>(floats)) {
    values[0].assign({1, 2, 3, 4});
    values[0].resize(floats);
    for (auto& one : values)
      buffers.push_back({one.size() * sizeof(float), reinterpret_cast<std::uint8_t*>(one.data())});
  }
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;
  QStatus give(QAicExecObj* exec) const {
    return qaicExecObjSetData(exec, static_cast<std::uint32_t>(buffers.size()), buffers.data());
  }
  QStatus give(QAicInferenceSet* set, std::uint32_t handle) const {
    return qaicInferenceSetSetData(set, handle, static_cast<std::uint32_t>(buffers.size()),
                                   buffers.data(), nullptr);
  }
  std::vector<std::vector<float>> values;
  std::vector<QBuffer> buffers;
};

/// An owner of buffers, which counts how often it is released.
struct CountedOwner {
  static void release(void* self) { ++static_cast<CountedOwner*>(self)->releases; }
  std::atomic<int> releases{0};
};

}  // namespace corelane::qaic::test
