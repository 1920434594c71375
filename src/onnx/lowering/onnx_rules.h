/// The rules of the rewriter, by subject: each function is one file of rules.
#pragma once

#include <span>
#include <vector>

#include "onnx/lowering/onnx_rewriter.h"

namespace corelane::onnx {

/// The rules for a node's operator, in the order in which they are tried. Standard domains only.
const std::vector<const Rule*>& rules_for(const ::onnx::NodeProto& node);

std::span<const Rule> cast_rules();
std::span<const Rule> shape_rules();
std::span<const Rule> resize_rules();
std::span<const Rule> math_rules();
std::span<const Rule> attention_rules();
std::span<const Rule> fourier_rules();
std::span<const Rule> recurrent_rules();
std::span<const Rule> training_rules();

}  // namespace corelane::onnx
