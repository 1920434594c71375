/// Numbers in attributes that engines would take without a look. Private to this room.
#pragma once

#include "corelane/base/status.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Of a node of ONNX's or the engines' own domains: kUnsupportedModel for an integer of more than
/// 32 bits, which engines cut (to 0, and divide by it), but for limits and values, which may be any
/// number; kMalformed for a count below 1. Nothing for an attribute that refers to one of a
/// function.
Status check_attributes(const ::onnx::NodeProto& node, int position);

}  // namespace corelane::onnx
