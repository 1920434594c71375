/// Numbers in attributes that engines would take without a look. Private to this room.
#pragma once

#include <string_view>

#include "corelane/base/status.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Checks a node of ONNX's or the engines' own domains whose attribute `name` has `value`:
/// kUnsupportedModel for an integer of more than 32 bits, which engines cut (to 0, and divide by
/// it), but for limits and values, which may be any number; kMalformed for a count below 1.
Status check_attribute(const ::onnx::NodeProto& node, int position, std::string_view name,
                       const ::onnx::AttributeProto& value);

/// The same for all attributes of the node that are values: those that refer to one of a function
/// are known where the function is called.
Status check_attributes(const ::onnx::NodeProto& node, int position);

}  // namespace corelane::onnx
