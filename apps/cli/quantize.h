/// `corelane compile --int8`: the quantizer of the Python package, in a process of its own.
#pragma once

#include <string>
#include <vector>

#include "cli/python_process.h"
#include "corelane/runtime/program.h"

namespace corelane::cli {

struct QuantizeArguments {
  bool int8 = false;
  std::string dataset;    ///< A text file, one sample a line.
  std::string algorithm;  ///< "normal" or "kl_divergence"; empty: normal.
  bool per_layer = false;
  bool bgr = false;
  std::string operators;  ///< A Python file with classes of custom operators.
  std::string python;     ///< As find_python() takes it.
};

struct QuantizedModel {
  TemporaryFolder folder;
  std::string path;  ///< An ONNX model in it.
  std::vector<std::string> warnings;
  std::vector<std::string> custom_operators;  ///< Types to declare.
};

/// kNotFound where Python or the package is missing, kInvalidArgument with its reason where the
/// quantizer refuses.
Result<QuantizedModel> quantize_model(const std::string& model, const ImportOptions& import,
                                      const QuantizeArguments& arguments);

}  // namespace corelane::cli
