/// The nodes of a network: what a program computes, to be shown, registered or explained.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"

namespace corelane {

/// One node of the network's top graph (not of the graphs inside If, Loop, Scan and functions).
struct NetworkNode {
  std::string type;
  std::string domain;
  std::string name;  ///< The first output's where the node has none, as in HostOperatorCall.
  /// By position, "" for one that is left out. Dtype kUndefined and a shape of rank 0 where the
  /// network does not say; open dimensions -1.
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
  /// Numbers, texts and lists of them; other kinds (tensors, graphs) are left out, and so is what
  /// the import added ("corelane_...").
  std::map<std::string,
           std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>,
                        std::vector<float>, std::vector<std::string>>,
           std::less<>>
      attributes;
};

/// In the order of the network (each after what it reads). `network` is the graph segment of a
/// program file. kMalformed when it is not an ONNX graph. Any thread.
CORELANE_API Result<std::vector<NetworkNode>> network_nodes(ByteSpan network);

}  // namespace corelane
