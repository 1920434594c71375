/// What a network takes in memory while it is computed, and how much it computes, told from its
/// nodes and shapes alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/tensor/shape.h"

namespace corelane::onnx {

class HeldModel;

/// Of memory a lower bound, for engines that compute one node after the other. Open dimensions of
/// inputs count as 1, and values whose sizes come with a run as nothing.
struct RunEstimate {
  /// Constants, inputs, and the values that are needed at the same time. The largest number where
  /// the sum has no end.
  std::uint64_t bytes = 0;
  /// The node that makes the largest value, and its operator; empty where no size is known.
  std::string node;
  std::string op;
  /// Of work an upper bound: Work::steps().
  std::optional<std::uint64_t> steps;
};

/// `graph` and `constants` are the segments of a program file, which an import has made or
/// check_network() has looked at; `inputs`: shapes of inputs by name, in place of the declared ones
/// where these have open dimensions. kMalformed, kOutOfMemory. Any thread.
Result<RunEstimate> estimate_run(ByteSpan graph, ByteSpan constants,
                                 const std::map<std::string, Shape>& inputs = {});

/// The same of a graph of `size` bytes that an import has read, whose shapes this may change.
Result<RunEstimate> estimate_run(std::shared_ptr<HeldModel> graph, std::size_t size,
                                 ByteSpan constants, const std::map<std::string, Shape>& inputs);

}  // namespace corelane::onnx
