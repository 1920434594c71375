#include "model/onnx_rules.h"
namespace corelane::onnx_import {
std::span<const Rule> resize_rules() { return {}; }
}  // namespace corelane::onnx_import
