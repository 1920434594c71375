/// One damaged file after another, from a number: the same number makes the same file.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "corelane/base/bytes.h"
#include "mutator.h"

namespace corelane::robustness {

struct Mutant {
  /// "program" or "onnx", with how it was made: such as "program.header".
  std::string kind;
  /// The file that it was made of.
  std::string origin;
  ByteVector bytes;
};

/// The ONNX files of these folders and below, of at most so many bytes, in the order of their
/// names.
std::vector<std::filesystem::path> find_models(std::span<const std::filesystem::path> folders,
                                               std::size_t at_most);

/// Harms a program file, whose checksums are mended, or an ONNX model; says what of it.
std::string mutate_file(ByteVector& bytes, const ByteVector& other, Mutator& mutator);

/// Every second number makes a program file, whose checksums are right. `models`: at least one.
Mutant make_mutant(std::span<const std::filesystem::path> models, std::uint64_t number);

}  // namespace corelane::robustness
