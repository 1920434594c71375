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

/// Reads a little-endian array in C order; '<V2' is read as bf16, '<V1' and '<f1' (8-bit floats and
/// smaller types of ml_dtypes) as u8. `name` stands for the bytes in messages. kMalformed, and
/// kUnsupported for other types and orders.
CORELANE_API Result<NpyArray> parse_npy(ByteSpan bytes, const std::string& name);

/// An array of bytes as a tensor of `dtype`, whose bits they are: u8 or i8, one element a byte, for
/// a type with is_opaque(). kTypeMismatch for others.
CORELANE_API Result<NpyArray> npy_as(NpyArray array, DType dtype);

/// The file that holds a tensor of plain layout; types of 4 and 2 bits are widened to a byte each,
/// f8 and f4 are bytes without a type ('|V1'), which numpy's view() gives one. kInvalidArgument
/// where a dimension is open, kUnsupported for a type that .npy does not have.
CORELANE_API Result<std::string> format_npy(const TensorView& tensor);

}  // namespace corelane
