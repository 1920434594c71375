#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

namespace corelane {
namespace detail {

namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // Castagnoli, bits reversed.

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

/// tables[k][b] is the CRC of byte b followed by k zero bytes.
constexpr Tables make_tables() {
  Tables t{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    t[0][b] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t b = 0; b < 256; ++b) t[k][b] = (t[k - 1][b] >> 8) ^ t[0][t[k - 1][b] & 0xFF];
  return t;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32c_table(std::uint32_t state, ByteSpan bytes) noexcept {
  const std::byte* p = bytes.data();
  std::size_t n = bytes.size();
  const auto at = [&p](std::size_t i) { return std::to_integer<std::uint32_t>(p[i]); };
  for (; n >= 8; p += 8, n -= 8) {
    // Slicing by 8 (Kounavis and Berry, 2005): a table for each byte of a word.
    state ^= at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24;
    state = kTables[7][state & 0xFF] ^ kTables[6][(state >> 8) & 0xFF] ^
            kTables[5][(state >> 16) & 0xFF] ^ kTables[4][state >> 24] ^ kTables[3][at(4)] ^
            kTables[2][at(5)] ^ kTables[1][at(6)] ^ kTables[0][at(7)];
  }
  for (; n > 0; ++p, --n) state = (state >> 8) ^ kTables[0][(state ^ at(0)) & 0xFF];
  return state;
}

#if defined(__x86_64__)

bool crc32c_has_hardware() noexcept { return __builtin_cpu_supports("sse4.2") != 0; }

__attribute__((target("sse4.2"))) std::uint32_t crc32c_hardware(std::uint32_t state,
                                                                ByteSpan bytes) noexcept {
  const std::byte* p = bytes.data();
  std::size_t n = bytes.size();
  std::uint64_t wide = state;
  for (; n >= 8; p += 8, n -= 8) {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof(word));
    wide = _mm_crc32_u64(wide, word);
  }
  state = static_cast<std::uint32_t>(wide);
  for (; n > 0; ++p, --n) state = _mm_crc32_u8(state, std::to_integer<unsigned char>(*p));
  return state;
}

#elif defined(__aarch64__)

bool crc32c_has_hardware() noexcept {
  // HWCAP_CRC32 of the kernel's asm/hwcap.h.
  constexpr unsigned long kHwcapCrc32 = 1UL << 7;
  return (getauxval(AT_HWCAP) & kHwcapCrc32) != 0;
}

__attribute__((target("+crc"))) std::uint32_t crc32c_hardware(std::uint32_t state,
                                                              ByteSpan bytes) noexcept {
  const std::byte* p = bytes.data();
  std::size_t n = bytes.size();
  for (; n >= 8; p += 8, n -= 8) {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof(word));
    state = __crc32cd(state, word);
  }
  for (; n > 0; ++p, --n) state = __crc32cb(state, std::to_integer<unsigned char>(*p));
  return state;
}

#else

bool crc32c_has_hardware() noexcept { return false; }

std::uint32_t crc32c_hardware(std::uint32_t state, ByteSpan bytes) noexcept {
  return crc32c_table(state, bytes);
}

#endif

}  // namespace detail

std::uint32_t crc32c(ByteSpan bytes, std::uint32_t seed) noexcept {
  static const auto implementation =
      detail::crc32c_has_hardware() ? detail::crc32c_hardware : detail::crc32c_table;
  return ~implementation(~seed, bytes);
}

}  // namespace corelane
