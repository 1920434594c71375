/// Import of ONNX: checks, rewrites what the engine refuses or gets wrong, and describes.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/program/description.h"

namespace corelane {

/// In ImportOptions::custom_operators: every operator that neither a standard nor the model
/// defines.
inline constexpr std::string_view kEveryCustomOperator = "*";

struct ImportOptions {
  /// Fix the shape of inputs by name; open dimensions may stay.
  std::map<std::string, Shape> input_shapes;
  /// Fix symbolic dimensions by their name, such as {"batch", 1}.
  std::map<std::string, std::int64_t> dims;
  /// Closed list: each set gives a static shape for every input, by position.
  std::vector<std::vector<Shape>> shape_sets;
  /// Operator types to run as host operators ("MyOp" or "domain.MyOp"), or kEveryCustomOperator.
  std::vector<std::string> custom_operators;
  std::map<std::string, std::vector<float>> mean;  ///< By input name; "" for all rank-4 inputs.
  std::map<std::string, std::vector<float>> std;
  DType io_dtype = DType::kUndefined;  ///< What float inputs/outputs report; kUndefined: f16.
  LayoutKind input_layout = LayoutKind::kNHWC;  ///< What rank-4 float inputs are offered in.
  std::string custom_string;
  std::uint32_t batch = 1;  ///< > 1: dim 0 of every input and output is multiplied.
  std::uint32_t cores = 1;
  /// True: a pattern the engine is known to compute wrongly is an error; false: a finding where it
  /// cannot be rewritten but only warned about.
  bool refuse_known_wrong = true;
  /// Where relative external data files are looked for; empty: they are refused. Resolved files
  /// must lie under it.
  std::filesystem::path external_data_root;
  /// Refuse external data reached through any symbolic link.
  bool strict_links = false;
};

/// A network as the program file stores it.
struct ImportedModel {
  ByteVector graph;      ///< ONNX; large initialisers are external ("corelane:constants").
  ByteVector constants;  ///< Their bytes, each at a multiple of 64.
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
/// A self-contained ONNX model (constants inlined again), for comparing against ONNX Runtime.
CORELANE_API Result<ByteVector> inline_constants(ByteSpan graph, ByteSpan constants);

}  // namespace corelane
