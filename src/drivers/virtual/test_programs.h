/// Preparing and running small networks, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>

#include "drivers/virtual/test_networks.h"
#include "drivers/virtual/test_requests.h"
#include "drivers/virtual/virtual_engine.h"

namespace corelane::drivers::virtual_npu {

inline constexpr std::size_t kLanes = 3;

/// For the engine, however small.
inline std::shared_ptr<device::LaneProgram> prepare(const device::Image& image,
                                                    const device::PrepareOptions& options = {},
                                                    std::size_t lanes = kLanes) {
  auto program = make_virtual_engine(lanes, false)->prepare(image, options);
  EXPECT_TRUE(program) << program.error().to_string();
  return program ? *program : nullptr;
}

}  // namespace corelane::drivers::virtual_npu
