/// The inferences that `corelane qaic-runner` makes of files: their inputs, loaded once, and the
/// outputs expected of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/qaic/runner_options.h"
#include "corelane/base/bytes.h"
#include "corelane/tensor/shape.h"

namespace corelane {
class Context;
struct ProgramDescription;
}  // namespace corelane

namespace corelane::cli {

/// A file of one buffer, as a list names it.
struct BufferFile {
  std::string path;                               ///< Empty: the buffer is left out.
  std::optional<std::vector<std::int64_t>> dims;  ///< Of a JSON file.
  /// The dimensions [0] leave the buffer out; it has no file then.
  bool left_out() const { return dims && dims->size() == 1 && dims->front() == 0; }
};

/// The files of one inference, by the places of the buffers.
struct InferenceFiles {
  std::vector<BufferFile> inputs;
  std::vector<BufferFile> outputs;  ///< None, or one for each output.
};

/// The files that the options name, in the order of the inferences; none where inputs are random.
/// Files are not opened, lists are. kInvalidArgument (counts, names, what is not a list), kNotFound
/// (a buffer that the program does not have), kShapeMismatch (an element size), kIo.
Result<std::vector<InferenceFiles>> runner_files(const ProgramDescription& program,
                                                 const RunnerOptions& options);

/// What one inference is given, and gives.
struct RunnerItem {
  std::vector<std::optional<ByteVector>> inputs;  ///< By input; none: random, or left out.
  std::vector<std::size_t> kept;                  ///< Inputs whose state stays on the device.
  std::vector<Shape> shapes;                      ///< Of the inputs; empty: the program's own.
  std::vector<ByteVector> expected;               ///< By output; empty: not compared.
};

/// Loads them: one item for each inference, at least one. With --auto-batch-input as many files as
/// the program's batch make one, the last file again where some are missing. kOutOfMemory beyond
/// --aic-batch-max-memory, kShapeMismatch (sizes that fit no shapes of the program), kUnsupported
/// (a program whose inputs or outputs are no tensors of numbers), kInvalidArgument (a state that
/// stays on the device, with more than one handle of an activation), kNotFound, kIo.
Result<std::vector<RunnerItem>> runner_items(const ProgramDescription& program,
                                             const RunnerOptions& options);

/// Gives an item to a context: its shapes, its inputs' bytes, and memory of its own for the output
/// of each state that does not stay on the device, so that inferences do not wait for each other.
Status give_item(Context& context, const RunnerItem& item);

}  // namespace corelane::cli
