/// How an ONNX model is imported. A value; the defaults keep what the model says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/clock.h"
#include "corelane/program/batch_range.h"
#include "corelane/program/state_decl.h"
#include "corelane/tensor/dtype.h"
#include "corelane/tensor/layout.h"
#include "corelane/tensor/shape.h"

namespace corelane {

/// In ImportOptions::custom_operators: every operator that neither a standard nor the model
/// defines.
inline constexpr std::string_view kEveryCustomOperator = "*";

struct ImportOptions {
  /// Fix the shape of inputs by name; open dimensions may stay.
  std::map<std::string, Shape> input_shapes;
  /// Fix symbolic dimensions by their name, such as {"batch", 1}.
  std::map<std::string, std::int64_t> dims;
  /// What an open dimension 0 of the inputs is fixed to, where no input has another open dimension
  /// after input_shapes and dims; 0: it stays open.
  std::uint32_t open_batch = 0;
  /// Closed list: each set gives a static shape for every input, by position.
  std::vector<std::vector<Shape>> shape_sets;
  /// Operator types to run as host operators ("MyOp" or "domain.MyOp"), or kEveryCustomOperator.
  std::vector<std::string> custom_operators;
  std::map<std::string, std::vector<float>> mean;  ///< By input name; "" for all rank-4 inputs.
  std::map<std::string, std::vector<float>> std;
  DType io_dtype = DType::kUndefined;  ///< What float inputs/outputs report; kUndefined: f16.
  LayoutKind input_layout = LayoutKind::kNHWC;  ///< What rank-4 float inputs are offered in.
  /// Names of inputs that clients may bring in part (IoEntry::partial_allowed).
  std::vector<std::string> partial_inputs;
  /// Outputs that become inputs of the next run (ProgramDescription::states).
  std::vector<StateDecl> states;
  std::string custom_string;  ///< At most 1023 bytes.
  std::uint32_t batch = 1;    ///< > 1: dim 0 of every input and output is multiplied.
  /// Dimension 0 of every input and output is opened for these sizes, as
  /// ProgramDescription::batch_range; without `batch` and shape_sets.
  std::optional<BatchRange> batch_range;
  std::uint32_t cores = 1;
  /// True: a network that an engine is known to compute wrongly gets a verdict for that engine
  /// (LoweredGraph::unfit), and its device computes it with another engine, or refuses it. False:
  /// no verdict is recorded, and the engine computes it all the same. The warning is among the
  /// findings either way; no network is refused by the import for it.
  bool refuse_known_wrong = true;
  /// Where relative external data files are looked for; empty: they are refused. Resolved files
  /// must lie under it.
  std::filesystem::path external_data_root;
  /// Refuse external data reached through any symbolic link, and files that have a second name
  /// (hard link).
  bool strict_links = false;
  /// A point of real_clock() at which the import is given up with kTimeout: looked at between its
  /// steps, each of which comes to its end.
  TimePoint deadline = kNever;
};

}  // namespace corelane
