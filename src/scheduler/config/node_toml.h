/// A node written in TOML.
#pragma once

#include <string>
#include <string_view>

#include "corelane/base/status.h"
#include "scheduler/config/settings.h"

namespace corelane::scheduler {

/// Global settings and one table, which is the node. `file` is the name for errors, which say
/// "file:line:column: key ...". Everything that read_settings() refuses is refused here with its
/// place.
Result<NodeSettings> read_node_toml(std::string_view text, std::string_view file,
                                    const BackendRegistry& registry);

}  // namespace corelane::scheduler
