/// The external data files that an ONNX model names.
#pragma once

#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"

namespace corelane {

/// The locations of a model's external data as it names them, relative to its folder, each once, in
/// order of appearance; none for a model that holds all its constants. Reads the protobuf structure
/// only, without copying the model; kMalformed where that is inconsistent. What a location may be
/// is checked by the import, not here. Any thread.
CORELANE_API Result<std::vector<std::string>> external_data_locations(ByteSpan model);

}  // namespace corelane
