/// Compiling a network that is cut into parts.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/runtime/program.h"

namespace corelane {

/// The values that cross one cut, as cut_network() wants them.
using CutNames = std::vector<std::string>;

/// The bytes of a program file that holds the network as a chain of parts, one more than there are
/// cuts, and its constants once. Loaded without a part it is the network; its parts may run on one
/// device each (chain_devices()), and can be loaded alone, by their names "FILE/0", "FILE/1".
/// Fails as compile_file() and cut_network(); kInvalidArgument without a cut, and with precompile
/// or attach, which are of a whole network.
CORELANE_API Result<ByteVector> compile_chain(const std::filesystem::path& onnx,
                                              std::span<const CutNames> cuts,
                                              const CompileOptions& options = {});
/// The same from bytes in memory; the parts are "network/0", "network/1".
CORELANE_API Result<ByteVector> compile_chain(ByteSpan onnx, std::span<const CutNames> cuts,
                                              const CompileOptions& options = {});

}  // namespace corelane
