/// Inputs from files, for `run`, `bench` and `compare`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/command.h"

namespace corelane::cli {

/// Where a context's inputs come from.
struct Feed {
  /// "NAME=FILE" or "FILE" (by position): .npy, .png, .jpg, .jpeg, .raw/.bin (the input's own
  /// form). Pictures, and u8 arrays for inputs of rank 4, are pixels: rows of interleaved channels
  /// (an array may also be in the input's own order), normalised with the program's mean and std.
  /// Pictures are resized to the input's height and width. Other arrays are taken as they are.
  std::vector<std::string> files;
  /// Reproducible values for inputs without a file: floats in [0, 1), integers in [0, 10), bool
  /// alternating. False: such an input is an error, which advises --random where the command has
  /// that option.
  bool random = false;
  std::uint64_t seed = 1;
  bool has_random_option = false;
};

/// What an input was given.
struct FedInput {
  std::string name;
  std::string source;  ///< The file, or "random".
  Shape shape;         ///< Of the input, for this run.
  /// What was done to the file's values, in order: "resized from 640x480 to 8x8", "RGB".
  std::vector<std::string> steps;
};

/// The shapes that the files give to inputs with open dimensions, by name: an array's own; for a
/// picture batch 1, and what else is open stays open. kShapeMismatch for an array that does not
/// fit; kNotFound, kOutOfRange and kInvalidArgument as feed_inputs.
Result<std::map<std::string, Shape>> shapes_of_files(const ProgramDescription& program,
                                                     const std::vector<std::string>& files);

/// Fills a context's inputs; says what each was given, in their order. kNotFound, kOutOfRange,
/// kInvalidArgument (names, an input given twice), and what the files bring.
Result<std::vector<FedInput>> feed_inputs(Context& context, const ProgramDescription& program,
                                          const Feed& feed);

}  // namespace corelane::cli
