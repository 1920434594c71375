/// Under which part the virtual NPU and its engines write to the log.
#pragma once

#include <string_view>

namespace corelane::drivers::virtual_npu {

inline constexpr std::string_view kLogPart = "virtual";

}  // namespace corelane::drivers::virtual_npu
