/// The shapes of a program's outputs before it is loaded.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/tensor/shape.h"

namespace corelane {

class ProgramFile;

/// For each shape set of the network `part` (which the file has), or once for its declared shapes
/// where it has no sets: the shape of each output, without open dimensions. Nothing for an output
/// whose shape only a run tells. Costs nothing where all outputs are declared; else the network is
/// read once. kMalformed, kCorrupted, kOutOfMemory. Any thread.
CORELANE_API Result<std::vector<std::vector<std::optional<Shape>>>> output_shapes(
    const ProgramFile& file, std::size_t part = 0);

}  // namespace corelane
