/// Support of the smoke tests: small models, devices that no other test has, views.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "corelane/device/device.h"
#include "corelane/device/fault.h"
#include "corelane/device/registry.h"
#include "corelane/runtime/program.h"
#include "corelane/session/session.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::testing {

/// A device that no other test shares.
inline std::shared_ptr<device::Device> own_device(
    std::shared_ptr<device::FaultPoint> faults = nullptr) {
  device::OpenOptions options;
  options.own_instance = true;
  options.fault_point = std::move(faults);
  auto opened = device::open_device("virtual:rk3588", options);
  EXPECT_TRUE(opened) << opened.error().to_string();
  return opened ? *opened : nullptr;
}

inline LoadOptions on(std::shared_ptr<device::Device> device) {
  LoadOptions options;
  options.on = std::move(device);
  options.cache = false;
  return options;
}

inline SessionOptions options_on(std::shared_ptr<device::Device> device) {
  SessionOptions options;
  options.load = on(std::move(device));
  options.schedule = {0, 1, 2};
  options.print_perf = false;
  return options;
}

inline Program load(const std::string& onnx, const LoadOptions& options) {
  auto program = Program::load(as_byte_span(onnx), options);
  EXPECT_TRUE(program) << program.error().to_string();
  return program ? *program : Program();
}

/// y = x * scale + 1 of `size` floats.
inline std::string affine_model(std::int64_t size, float scale) {
  return OnnxBuilder()
      .input("x", {size})
      .output("y", {size})
      .constant<float>("scale", {1}, kOnnxFloat, {scale})
      .constant<float>("one", {1}, kOnnxFloat, {1.0F})
      .node("Mul", {"x", "scale"}, {"scaled"})
      .node("Add", {"scaled", "one"}, {"y"})
      .build("affine");
}

inline TensorView in_view(const std::vector<float>& v, Shape shape) {
  return {v.data(), v.size() * sizeof(float), DType::kF32, std::move(shape), {}, {}};
}
inline MutableTensorView out_view(std::vector<float>& v, Shape shape) {
  return {v.data(), v.size() * sizeof(float), DType::kF32, std::move(shape), {}, {}};
}
inline std::vector<float> floats_of(const TensorView& v) {
  const auto* first = static_cast<const float*>(v.data);
  return {first, first + v.shape.elements().value_or(0)};
}
inline std::vector<float> floats_of(const Tensor& t) { return floats_of(t.view()); }

/// Kernels of other shapes sum in another order.
inline constexpr float kTolerance = 1e-5F;

/// A file of a package in the tools' environment.
inline std::optional<std::filesystem::path> package_file(const char* file) {
  namespace fs = std::filesystem;
  std::error_code ec;
  for (const auto& python : fs::directory_iterator(fs::path(SMOKE_VENV) / "lib", ec)) {
    const fs::path path = python.path() / "site-packages" / file;
    if (fs::exists(path, ec)) return path;
  }
  return std::nullopt;
}

/// Strikes the next job that runs on one of the armed cores.
class ArmedFault final : public device::FaultPoint {
 public:
  void arm(device::Fault fault, std::uint64_t core_bits = ~std::uint64_t{0}) {
    cores_ = core_bits;
    next_ = fault;
  }
  bool struck() const { return next_ == device::Fault::kNone; }
  device::Fault at_run(std::uint64_t, std::uint64_t core_bits) override {
    if ((core_bits & cores_) == 0) return device::Fault::kNone;
    return next_.exchange(device::Fault::kNone);
  }
  Duration slow_by() const override { return std::chrono::milliseconds(1); }

 private:
  std::atomic<std::uint64_t> cores_{0};
  std::atomic<device::Fault> next_{device::Fault::kNone};
};

/// Submits until the armed fault has struck a job. On a loaded machine a job may miss its deadline
/// before it starts, and the fault would wait for a job that is not meant.
inline Inference strike(Context& context, const ArmedFault& faults, RunOptions options) {
  for (;; options.timeout *= 2) {
    Inference inference = context.submit(options).value();
    while (!faults.struck() && !inference.done()) std::this_thread::yield();
    if (!faults.struck()) inference.wait_released();
    if (faults.struck()) return inference;
  }
}

}  // namespace corelane::testing
