/// Tensors of contexts as arrays and numbers, for `run`, `bench` and `compare`.
#pragma once

#include <cstdint>
#include <set>
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

/// How far results are from those expected.
struct Difference {
  double max_error = 0;
  double max_relative_error = 0;  ///< Of the largest expected element.
  double cosine = 0;
  std::size_t not_finite_differs = 0;  ///< Elements where NaN or an infinity meets another value.
};
/// Errors over the elements that are finite on both sides; the relative one is measured against the
/// largest expected element, so that values near 0 do not decide. Both have the same length.
Difference difference(const std::vector<double>& actual, const std::vector<double>& expected);

/// "a/b:c" as a file name.
std::string safe_name(const std::string& name);

/// `name` as the beginning of a file name: cut, since a file's name has at most 255 bytes, and with
/// a number where `taken` has it already. The result goes into `taken`.
std::string unique_name(std::string name, std::set<std::string>& taken);

}  // namespace corelane::cli
