/// Whether this process has forked since: threads and locks do not come along.
#pragma once

#include <cstdint>
#include <string_view>

#include "corelane/base/status.h"

namespace corelane::session {

/// How many forks lie between this process and the first one that asked. Any thread.
std::uint64_t fork_generation() noexcept;

/// kWrongState: `what` ("the session was made") before this process forked.
Status forked_status(std::string_view what);

}  // namespace corelane::session
