/// Lowering: what an engine cannot read or gets wrong, written for it in other nodes.
///
/// A program keeps its network as it was given. For an engine that needs other nodes there is a
/// lowering, tagged with the engine and a revision; its result lies beside the network in program
/// files and in the compile cache, as pre-compiled forms do, and is made again at load where the
/// tag is not the current one. docs/decisions/0007-lowering-at-prepare.md says why.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"

namespace corelane {

/// One engine that networks are lowered for.
struct CORELANE_API Lowering {
  /// The first word of device::DeviceInfo::engine, in lower case: "openvino".
  std::string_view engine;
  /// Raised with every change of what is written for the engine: a rule added, changed or removed.
  int revision = 0;

  /// "openvino/1": of a lowered form in a program file.
  std::string tag() const;
};

/// Every lowering there is. Any thread.
CORELANE_API std::span<const Lowering> lowerings() noexcept;

/// The lowering for an engine, as the device names it ("OpenVINO 2026.4.1"); null where the engine
/// reads networks as given. Any thread.
CORELANE_API const Lowering* lowering_for(std::string_view engine) noexcept;

/// A network as one engine is given it. Its large constants lie where those of the network given
/// lie; constants that the lowering adds are in the graph itself.
struct LoweredGraph {
  std::string tag;   ///< Lowering::tag().
  ByteVector graph;  ///< ONNX; empty where nothing is written otherwise.
  /// The verdict: why the engine would compute the network wrongly, or not at all, even so. One
  /// line that names node and operator; empty where no reason is known.
  std::string unfit;
};

/// Lowers the network of a program: `graph` and `constants` are its segments. Patterns that the
/// engine gets wrong and that cannot be written otherwise are LoweredGraph::unfit, and so is a
/// network whose form would grow beyond bounds; then `graph` is empty. kMalformed for bytes that
/// are not such a graph, kInvalidArgument for a lowering that is not one of lowerings(). Any
/// thread.
CORELANE_API Result<LoweredGraph> lower_onnx(ByteSpan graph, ByteSpan constants,
                                             const Lowering& lowering);

/// Checks a graph segment of a program file, without changing it: all that an import checks, and
/// that the nodes are in order where `in_order`. Checksums say that bytes are those that were
/// written, not that an import wrote them. Returns why OpenVINO could leave its memory while it
/// reads or runs the network, as LoweredGraph::unfit says it; empty where no reason is known.
/// kMalformed, kUnsupportedModel, kOutOfMemory. Any thread.
CORELANE_API Result<std::string> check_network(ByteSpan graph, ByteSpan constants, bool in_order);

}  // namespace corelane
