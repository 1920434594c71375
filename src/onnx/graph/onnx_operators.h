/// The operators that the standard itself defines.
#pragma once

#include <string_view>

namespace corelane::onnx {

/// True for the types of the standard domain, in any version of it.
bool is_standard_operator(std::string_view type) noexcept;

}  // namespace corelane::onnx
