/// The import of a model whose bytes and external data its caller has opened, and so knows.
#pragma once

#include <filesystem>
#include <memory>

#include "corelane/onnx/onnx_import.h"
#include "onnx/graph/onnx_external.h"

namespace corelane::onnx {

class HeldModel;

/// The external data of the model in the file `path`, which is empty for a model in memory: below
/// the folder that the options name; else beside the file, or beside the one that it is a link to.
ExternalData external_data_of(const std::filesystem::path& path, const ImportOptions& options);

/// As import_onnx(); `external` is closed once the constants are read.
Result<ImportedModel> import_from(ByteSpan model, ExternalData external,
                                  const ImportOptions& options);
/// The same. `read` becomes what the graph of the result says, for a load, which needs it next.
Result<ImportedModel> import_from(ByteSpan model, ExternalData external,
                                  const ImportOptions& options, std::shared_ptr<HeldModel>& read);

}  // namespace corelane::onnx
