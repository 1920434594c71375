/// How long a load may take, and how much memory what it loads may need.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/program/description.h"
#include "corelane/runtime/load_options.h"
#include "corelane/tensor/shape.h"
#include "runtime/program/image_source.h"

namespace corelane::onnx {
class HeldModel;
}

namespace corelane::runtime {

/// What a run computes.
struct KnownWork {
  std::optional<std::uint64_t> steps;  ///< As onnx::RunEstimate::steps.
  std::vector<Shape> shapes;  ///< Of the inputs for that: one of smaller ones takes no more.
  bool of_all = false;        ///< The program serves no larger ones.
};

/// LoadOptions::load_memory where it is given, else the memory of the machine, or what the control
/// groups of the process leave of it.
std::uint64_t memory_allowed(const LoadOptions& options);

/// `options` with ImportOptions::deadline as load_timeout, from now on, says.
LoadOptions with_deadline(const LoadOptions& options);

/// The failure of a load of `name` that check_deadline() has ended, with the time that was allowed.
Status late(const Status& failure, const std::string& name, const LoadOptions& options);

/// kOutOfMemory where the network of `source` needs more than is allowed, by its shapes: the
/// largest of its shape sets, the largest batch of its range, else the declared ones. The message
/// names the node that needs the most. Images of other kinds pass; of a chain, the declared shapes
/// count, open dimensions as 1. Returns the work of a run with these shapes; of open dimensions it
/// assumes everyday sizes: 1 for the batch (the first dimension; of states, layers x batch x size,
/// the second), 320 for height and width, 1024 for the samples of a sound (the only length, of f32
/// of rank 2), 64 for others. `read`: what the source's network says, where an import has just
/// read it; null otherwise.
Result<KnownWork> check_memory(const ImageSource& source, const ProgramDescription& description,
                               const LoadOptions& options,
                               std::shared_ptr<onnx::HeldModel> read = nullptr);

}  // namespace corelane::runtime
