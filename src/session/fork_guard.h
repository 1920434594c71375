/// Whether this process has forked since: threads and locks do not come along.
#pragma once

#include <cstdint>

namespace corelane::session {

/// How many forks lie between this process and the first one that asked. Any thread.
std::uint64_t fork_generation() noexcept;

}  // namespace corelane::session
