/// The numbers of the flat form of values. Private to this room; the page is
/// docs/formats/values.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace corelane::value_form {

inline constexpr std::string_view kMagic = "CLV1";
/// Magic, zeros, size of the whole.
inline constexpr std::size_t kHeaderBytes = 16;
inline constexpr std::size_t kSizeAt = 8;
/// Kind, element type, rank, zeros.
inline constexpr std::size_t kHeadBytes = 8;
/// Everything begins at a multiple of it.
inline constexpr std::size_t kStep = 8;
inline constexpr std::size_t kMaxRank = 64;
/// Values within values.
inline constexpr int kMaxDepth = 16;

constexpr std::size_t padding(std::size_t size) noexcept { return (kStep - size % kStep) % kStep; }

}  // namespace corelane::value_form
