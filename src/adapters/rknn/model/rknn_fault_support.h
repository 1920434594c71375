/// What tests of runs share: runs in the background, and devices whose runs are struck by faults.
#pragma once

#include <memory>
#include <string>

#include "adapters/rknn/api/rknn_test_support.h"
#include "corelane/device/fault.h"

namespace corelane::rknn::test {

inline rknn_run_extend background() {
  rknn_run_extend extend{};
  extend.non_block = 1;
  return extend;
}

/// A device that no other test has opened: it reads CORELANE_FAULTS when it is.
inline std::string own_device() {
  static int count = 0;
  return "virtual:rk3588?name=faults" + std::to_string(++count);
}

/// A seed with which the first run that asks is struck by `wanted`, and the next ones by nothing.
inline std::string faults(const std::string& plan, device::Fault wanted) {
  for (int seed = 1;; ++seed) {
    std::string text = plan + ",seed=" + std::to_string(seed);
    const auto point = device::planned_faults(device::parse_faults(text).value());
    bool fits = point->at_run(0, 1) == wanted;
    for (int i = 0; i < 12; ++i) fits = point->at_run(0, 1) == device::Fault::kNone && fits;
    if (fits) return text;
  }
}

}  // namespace corelane::rknn::test
