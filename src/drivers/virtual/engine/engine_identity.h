/// What the engine is on this machine: part of a pre-compiled blob's tag.
#pragma once

#include <string>
#include <string_view>

namespace corelane::drivers::virtual_npu {

/// "2026.4.1", without loading any plug-in.
const std::string& engine_version();
/// With the build number, "2026.4.1-22238-...".
const std::string& engine_build();
/// Instruction sets of this CPU that change the code the engine makes: "avx512+vnni+bf16".
const std::string& engine_isa();
/// From the flags of /proc/cpuinfo ("flags" or "Features").
std::string isa_from_flags(std::string_view flags);

}  // namespace corelane::drivers::virtual_npu
