/// NumPy .npy files (format 1.0 to 3.0): read and write of plain C-order tensors.
/// Format: numpy.lib.format in the NumPy documentation.
#pragma once

#include <filesystem>
#include <string>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"

namespace corelane::common {

/// A tensor that owns its bytes, plain layout.
struct Array {
  DType dtype = DType::kUndefined;
  Shape shape;
  ByteVector bytes;
  TensorView view() const { return {bytes.data(), bytes.size(), dtype, shape, {}, {}}; }
};

/// Reads little-endian C-order arrays of the types of dtype.h; kMalformed / kUnsupported name the
/// file and the descr. bf16 is stored as '<V2' and returned as bf16.
Result<Array> read_npy(const std::filesystem::path& path);
Result<Array> parse_npy(ByteSpan bytes, const std::string& name);
/// Writes a plain-layout tensor; i4/u4 are widened to bytes.
Status write_npy(const std::filesystem::path& path, const TensorView& view);

}  // namespace corelane::common
