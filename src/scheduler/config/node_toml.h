/// A node written in TOML.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "corelane/base/status.h"
#include "scheduler/config/settings.h"

namespace corelane::scheduler {

/// Bytes of a text: more is refused.
inline constexpr std::size_t kMaxToml = 1 << 20;

/// Global settings and one table, which is the node. `file` is the name for errors, which say
/// "file:line:column: key ...". kMalformed: not TOML. kUnsupported: tables for several nodes.
/// kInvalidArgument: a value that is not a scalar, a name that a node may not have, and everything
/// that read_settings() refuses, with its place. Any thread.
Result<NodeSettings> read_node_toml(std::string_view text, std::string_view file,
                                    const BackendRegistry& registry);

}  // namespace corelane::scheduler
