/// Inference sets on the null device: y is a copy of x, times come from the script.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/runtime/inference_set.h"
#include "corelane/runtime/program.h"
#include "device/registry/testing/listed_faults.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::testing {

/// The device is lost in its first run.
inline std::shared_ptr<device::ListedFaults> struck_once() {
  return std::make_shared<device::ListedFaults>(std::vector{device::Fault::kLost});
}

/// A program of x: f32 [1, 4] -> y on a device of its own.
struct SetBench {
  explicit SetBench(const std::string& text, bool virtual_time = true,
                    std::shared_ptr<device::FaultPoint> faults = nullptr)
      : SetBench(text, virtual_time ? std::make_shared<VirtualClock>() : nullptr,
                 std::move(faults)) {}
  SetBench(const std::string& text, std::shared_ptr<VirtualClock> time,
           std::shared_ptr<device::FaultPoint> faults)
      : clock(std::move(time)) {
    device::OpenOptions open;
    open.clock = clock;
    open.fault_point = std::move(faults);
    open.own_instance = true;
    auto opened = device::open_device(text, open);
    EXPECT_TRUE(opened) << opened.error().to_string();
    if (!opened) return;
    device = *opened;
    const std::string model = relu_model({std::int64_t{1}, std::int64_t{4}});
    LoadOptions load;
    load.on = device;
    load.cache = false;
    auto loaded = Program::load(as_byte_span(model), load);
    EXPECT_TRUE(loaded) << loaded.error().to_string();
    if (loaded) program = *loaded;
  }

  /// A job that was abandoned is on the clock until the engine returns, and keeps its device.
  ~SetBench() {
    if (clock != nullptr) clock->run_all();
  }
  SetBench(const SetBench&) = delete;
  SetBench& operator=(const SetBench&) = delete;

  InferenceSet set(const SetOptions& options) const {
    auto made = InferenceSet::create(program, options);
    EXPECT_TRUE(made) << made.error().to_string();
    return made ? *made : InferenceSet();
  }
  TimePoint in(Duration time) const { return device->clock()->now() + time; }

  static TensorView view(const std::vector<float>& v) {
    return {v.data(), v.size() * sizeof(float), DType::kF32, Shape{1, 4}, {}, {}};
  }
  static std::vector<float> result(const SetHandle& handle) {
    auto output = handle.context().output(0);
    EXPECT_TRUE(output) << output.error().to_string();
    if (!output) return {};
    const auto* first = static_cast<const float*>(output->data);
    return {first, first + 4};
  }

  std::shared_ptr<VirtualClock> clock;
  std::shared_ptr<device::Device> device;
  Program program;
};

}  // namespace corelane::testing
