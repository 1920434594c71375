/// Memory of the system, which is the NPU's, too.
#pragma once

#include <cstddef>

namespace corelane::ggml {

/// Bytes that programs can have without swapping, from a file as /proc/meminfo is; at most `total`,
/// which is also the answer where the file does not say.
std::size_t available_memory(const char* meminfo, std::size_t total);

}  // namespace corelane::ggml
