/// The external data files that an ONNX model names.
#pragma once

#include <filesystem>
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

/// The files of those locations that are there, `folder` being the model's or the root that its
/// import was given. None for a file of another kind, and for a model that cannot be read. Any
/// thread.
CORELANE_API std::vector<std::filesystem::path> external_data_files(
    ByteSpan model, const std::filesystem::path& folder);

}  // namespace corelane
