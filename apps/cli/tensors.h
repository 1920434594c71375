/// Tensors from files and to files, for `run`, `bench` and `compare`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/command.h"
#include "common/npy.h"

namespace corelane::cli {

/// Fills a context's inputs. `items` are "NAME=FILE" or "FILE" (by position): .npy, .png, .jpg,
/// .jpeg, .raw/.bin (the input's own form). Pictures are resized to the input's height and width
/// and normalised with the program's mean and std.
Status feed_files(Context& context, const ProgramDescription& program,
                  const std::vector<std::string>& items);

/// Reproducible values for every input that was not fed: floats in [0, 1), integers in [0, 10),
/// bool alternating.
Status feed_random(Context& context, const std::vector<bool>& fed, std::uint64_t seed);

/// The context's inputs as arrays of their own.
Result<std::vector<tools::Array>> copy_inputs(Context& context);
Result<std::vector<tools::Array>> copy_outputs(const Context& context, std::size_t count);

/// The elements as f32.
Result<std::vector<float>> as_floats(const TensorView& view);

/// "a/b:c" as a file name.
std::string safe_name(const std::string& name);

}  // namespace corelane::cli
