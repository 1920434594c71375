/// What a file is, those that drivers take as they are included.
#pragma once

#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/program/program_file.h"

namespace corelane {

/// How the files begin that drivers take as they are; modules from outside the tree are loaded for
/// their part. Any thread.
CORELANE_API std::vector<ForeignMagic> foreign_files();

/// detect_file_kind() with them; drivers are asked only where the bytes are neither a program file
/// nor ONNX. Any thread.
CORELANE_API FileKind file_kind(ByteSpan bytes);

}  // namespace corelane
