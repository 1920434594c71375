/// Operators that give every element of their first input a value of the same type.
#pragma once

#include <string_view>

namespace corelane::onnx {

/// True for standard operators whose output 0 has shape and type of input 0, element by element.
bool is_unary(std::string_view op);

}  // namespace corelane::onnx
