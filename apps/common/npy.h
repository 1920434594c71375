/// NumPy .npy files by path.
#pragma once

#include <filesystem>

#include "corelane/tensor/npy_format.h"

namespace corelane::common {

using Array = NpyArray;

/// parse_npy() of a file; what MappedFile::open fails with.
Result<Array> read_npy(const std::filesystem::path& path);
/// format_npy() to a file; kIo where it cannot be written.
Status write_npy(const std::filesystem::path& path, const TensorView& view);

}  // namespace corelane::common
