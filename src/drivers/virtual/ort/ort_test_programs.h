/// Programs and requests of the engine for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "corelane/driver/lane_engine.h"
#include "drivers/virtual/ort/ort_engine.h"
#include "drivers/virtual/test_networks.h"
#include "drivers/virtual/test_requests.h"

namespace corelane::drivers::virtual_npu::ort {

inline constexpr std::size_t kCores = 3;

inline Result<std::shared_ptr<device::LaneProgram>> try_prepare(
    const device::Image& image, const device::PrepareOptions& options = {}) {
  return make_ort_engine(kCores)->prepare(image, options);
}

inline std::shared_ptr<device::LaneProgram> prepare(const device::Image& image,
                                                    const device::PrepareOptions& options = {}) {
  auto program = try_prepare(image, options);
  EXPECT_TRUE(program) << program.error().to_string();
  return program ? *program : nullptr;
}

inline std::string product_network() {
  return NetworkBuilder()
      .input("x", {1, 2})
      .external("w", {2, 3}, kOnnxFloat, "corelane:constants", "64", "24")
      .node("MatMul", {"x", "w"}, {"y"}, "product")
      .output("y", {1, 3})
      .bytes();
}

inline ByteVector product_constants() {
  ByteVector constants(64 + 24);
  const float w[6] = {1, 2, 3, 4, 5, 6};
  std::memcpy(constants.data() + 64, w, sizeof(w));
  return constants;
}

inline std::shared_ptr<device::LaneProgram> prepare_for(const std::string& wish,
                                                        const device::Image& image) {
  device::PrepareOptions options;
  options.engine = wish;
  return prepare(image, options);
}

inline std::string longs(const std::vector<std::int64_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::int64_t)};
}

}  // namespace corelane::drivers::virtual_npu::ort
