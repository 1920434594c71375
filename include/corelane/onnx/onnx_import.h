/// Import of ONNX: checks, fixes shapes, moves constants out, describes, and lowers for each
/// engine.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/large_bytes.h"
#include "corelane/base/status.h"
#include "corelane/onnx/import_options.h"
#include "corelane/onnx/onnx_lowering.h"
#include "corelane/program/description.h"

namespace corelane {

/// A network as the program file stores it.
struct ImportedModel {
  /// ONNX, the network as it was given; large initialisers are external ("corelane:constants").
  ByteVector graph;
  LargeBytes constants;               ///< Their bytes, each at a multiple of 64.
  std::vector<LoweredGraph> lowered;  ///< One for each of lowerings().
  ProgramDescription description;
};

/// Reads a model. Unknown protobuf fields are kept. kMalformed (not ONNX, truncated, inconsistent
/// tensors), kUnsupportedModel (names node and operator), kInvalidArgument (an option that names no
/// input), kNotFound / kIo / kInvalidArgument for external data. Never more memory than twice the
/// input plus a constant. Any thread.
CORELANE_API Result<ImportedModel> import_onnx(ByteSpan model, const ImportOptions& options = {});
/// The same from a file; external_data_root defaults to its folder (or that of the file it links
/// to).
CORELANE_API Result<ImportedModel> import_onnx_file(const std::filesystem::path& path,
                                                    const ImportOptions& options = {});
/// Puts the constants of several networks together, equal ones (compared byte by byte) once, each
/// at a multiple of 64. The graphs and lowered forms of `models` point into the result afterwards,
/// and their own constants are gone; where it fails they are of no use any more. kMalformed (a
/// model that import_onnx() did not make), kOutOfMemory. One thread at a time for a model.
CORELANE_API Result<LargeBytes> merge_constants(std::span<ImportedModel> models);
/// A self-contained ONNX model (constants inlined again), for comparing against ONNX Runtime.
CORELANE_API Result<ByteVector> inline_constants(ByteSpan graph, ByteSpan constants);

}  // namespace corelane
