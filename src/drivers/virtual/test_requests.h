/// Requests of either engine, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "corelane/driver/lane_engine.h"

namespace corelane::drivers::virtual_npu {

inline std::unique_ptr<device::LaneRequest> request(device::LaneProgram& program,
                                                    std::size_t width = 1, std::size_t core = 0) {
  auto result = program.new_request(width, core);
  EXPECT_TRUE(result) << result.error().to_string();
  return result ? std::move(*result) : nullptr;
}

inline std::vector<float> floats_of(device::LaneRequest& r, std::size_t index) {
  const auto out = r.output(index);
  EXPECT_TRUE(out) << out.error().to_string();
  if (!out) return {};
  const auto* data = static_cast<const float*>(out->data);
  return {data, data + out->size / sizeof(float)};
}

}  // namespace corelane::drivers::virtual_npu
