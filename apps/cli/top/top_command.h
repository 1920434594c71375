/// `corelane top`.
#pragma once

#include "cli/command.h"

namespace corelane::cli {

Action add_top(CLI::App& parent, Global& global);

}  // namespace corelane::cli
