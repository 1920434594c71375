/// Tensors of contexts as arrays and numbers, for `run`, `bench` and `compare`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"
#include "common/npy.h"

namespace corelane::cli {

/// The context's inputs as arrays of their own.
Result<std::vector<common::Array>> copy_inputs(Context& context);
Result<std::vector<common::Array>> copy_outputs(const Context& context, std::size_t count);

/// The elements as f64, row-major; of a type with is_opaque() their bits.
Result<std::vector<double>> as_doubles(const TensorView& view);

/// "a/b:c" as a file name.
std::string safe_name(const std::string& name);

}  // namespace corelane::cli
