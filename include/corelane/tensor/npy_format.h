/// NumPy's .npy format, versions 1.0 to 3.0, as bytes: what the programs and the doors read and
/// write. The format: numpy.lib.format in NumPy's documentation. Any thread.
#pragma once

#include <string>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"

namespace corelane {

/// A tensor that owns its bytes, in plain layout.
struct NpyArray {
  DType dtype = DType::kUndefined;
  Shape shape;
  ByteVector bytes;
  /// The array as a view; valid as long as this object.
  TensorView view() const { return {bytes.data(), bytes.size(), dtype, shape, {}, {}}; }
};

/// Reads a little-endian array in C order; '<V2' is read as bf16. `name` stands for the bytes in
/// messages. kMalformed, and kUnsupported for other types and orders.
CORELANE_API Result<NpyArray> parse_npy(ByteSpan bytes, const std::string& name);

/// The file that holds a tensor of plain layout; i4 and u4 are widened to a byte each.
/// kInvalidArgument where a dimension is open, kUnsupported for a type that .npy does not have.
CORELANE_API Result<std::string> format_npy(const TensorView& tensor);

}  // namespace corelane
