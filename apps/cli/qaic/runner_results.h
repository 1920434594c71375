/// What `corelane qaic-runner` does with the buffers of an inference that ended: compares outputs,
/// and writes buffers to files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/qaic/runner_inputs.h"
#include "corelane/tensor/desc.h"

namespace corelane {
class SetHandle;
}

namespace corelane::cli {

/// Not from two threads.
class RunnerResults {
 public:
  RunnerResults(const ProgramDescription& program, const RunnerOptions& options,
                const std::vector<RunnerItem>& items);

  /// Takes the results of inference `handle.id()`, which ran on activation `handle.index()` modulo
  /// their number. kIo where a file cannot be written. A result that differs only counts.
  Status take(const SetHandle& handle);

  std::uint64_t compared() const noexcept { return compared_; }
  std::uint64_t different() const noexcept { return different_; }
  /// The first difference found: which output of which inference, and where.
  const std::string& first_difference() const noexcept { return first_difference_; }
  const std::vector<std::string>& written() const noexcept { return written_; }

 private:
  Status compare(const Context& context, const RunnerItem& item, std::uint64_t number);
  Status write(const std::string& name, const TensorView& view, std::size_t activation,
               std::uint64_t number);

  const RunnerOptions& options_;
  const std::vector<RunnerItem>& items_;
  std::vector<std::string> input_names_;
  std::vector<std::string> output_names_;
  std::uint64_t compared_ = 0;
  std::uint64_t different_ = 0;
  std::string first_difference_;
  std::vector<std::string> written_;
};

/// Buffers' names as parts of file names: "/" becomes "_"; no two are equal.
std::vector<std::string> buffer_file_names(const ProgramDescription& program);

/// Where the bytes differ, or with `max_error` above 0 the values by more than that; empty where
/// they agree. kInvalidArgument where the length is another one.
Result<std::string> output_difference(const TensorView& actual, ByteSpan expected,
                                      double max_error);

}  // namespace corelane::cli
