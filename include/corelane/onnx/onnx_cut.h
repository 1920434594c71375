/// Cutting a network into parts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/onnx/onnx_import.h"

namespace corelane {

/// Cuts a network into a chain of parts, each after the one before. `cuts` has the names of the
/// inner values that cross each cut, in the order of the network: all of them, those that only a
/// later part reads included. The parts have no constants of their own: their graphs point into
/// those of `whole`, which was imported with these options. kNotFound (no node makes such a value),
/// kInvalidArgument (an incomplete cut: the message names the values that are missing),
/// kUnsupportedModel (a value of unknown type or size, or no tensor), kUnsupported (inputs or
/// outputs that are not tensors of numbers). Any thread.
CORELANE_API Result<std::vector<ImportedModel>> cut_network(
    const ImportedModel& whole, std::span<const std::vector<std::string>> cuts,
    const ImportOptions& options = {});

}  // namespace corelane
