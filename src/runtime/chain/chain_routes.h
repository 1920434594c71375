/// Which tensor of a chain is which of a part.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/device/executable.h"

namespace corelane::runtime {

/// Image::kind of a network that was cut into parts: no device but a chain takes it.
inline constexpr std::string_view kChainImage = "chain";

/// The images of a chain's parts, in their order.
struct ChainImage {
  std::string name;
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
  std::vector<device::Image> stages;
};

/// A tensor of a part, by its position there.
struct PartTensor {
  std::size_t part = 0;
  std::size_t index = 0;
};

/// A value between parts.
struct InnerValue {
  std::string name;
  PartTensor from;             ///< An output.
  std::vector<PartTensor> to;  ///< Inputs, of later parts.
};

/// How the parts of a chain are joined. A part's input is the output of that name of an earlier
/// part, or the chain's input.
struct ChainRoutes {
  std::vector<std::vector<PartTensor>> inputs;  ///< By input of the chain; at least one each.
  std::vector<PartTensor> outputs;              ///< By output of the chain.
  std::vector<InnerValue> inner;

  /// kMalformed where a name is not there, or an output has several uses.
  static Result<ChainRoutes> make(const ChainImage& image);
};

}  // namespace corelane::runtime
