/// The two implementations of crc32c(), apart so that tests can compare them.
/// Both take and return the running register, without the inversions at the ends.
#pragma once

#include <cstdint>

#include "corelane/base/bytes.h"

namespace corelane::detail {

/// Tables, on any CPU.
std::uint32_t crc32c_table(std::uint32_t state, ByteSpan bytes) noexcept;
/// True when this CPU has CRC-32C instructions (SSE4.2, ARMv8 CRC).
bool crc32c_has_hardware() noexcept;
/// The CPU's instructions; call only where crc32c_has_hardware().
std::uint32_t crc32c_hardware(std::uint32_t state, ByteSpan bytes) noexcept;

}  // namespace corelane::detail
