/// The external data files that an ONNX model names, for the key of the compile cache.
#pragma once

#include <string>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"

namespace corelane::runtime {

/// The locations, each once, in order of appearance. Reads the protobuf structure only, without
/// copying the model; kMalformed when that is inconsistent. What the locations may be is checked
/// by the import, not here.
Result<std::vector<std::string>> external_data_locations(ByteSpan model);

}  // namespace corelane::runtime
