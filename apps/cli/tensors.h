/// Tensors from files and to files, for `run`, `bench` and `compare`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"
#include "common/npy.h"

namespace corelane::cli {

/// Where a context's inputs come from.
struct Feed {
  /// "NAME=FILE" or "FILE" (by position): .npy, .png, .jpg, .jpeg, .raw/.bin (the input's own
  /// form). Pictures are resized to the input's height and width and normalised with the program's
  /// mean and std.
  std::vector<std::string> files;
  /// Reproducible values for inputs without a file: floats in [0, 1), integers in [0, 10), bool
  /// alternating. False: such an input is an error.
  bool random = false;
  std::uint64_t seed = 1;
};

/// Fills a context's inputs. kNotFound, kOutOfRange, kInvalidArgument (names, an input given
/// twice), and what the files bring.
Status feed_inputs(Context& context, const ProgramDescription& program, const Feed& feed);

/// The context's inputs as arrays of their own.
Result<std::vector<common::Array>> copy_inputs(Context& context);
Result<std::vector<common::Array>> copy_outputs(const Context& context, std::size_t count);

/// The elements as f64, row-major.
Result<std::vector<double>> as_doubles(const TensorView& view);

/// "a/b:c" as a file name.
std::string safe_name(const std::string& name);

}  // namespace corelane::cli
