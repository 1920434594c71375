/// Deterministic damage to bytes: the same seed does the same harm everywhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "corelane/base/bytes.h"

namespace corelane::robustness {

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : engine_(seed * 0x9E3779B97F4A7C15ULL + 12345) {}

  std::size_t below(std::size_t n) { return n == 0 ? 0 : engine_() % n; }

  /// A few of the harms below, all within [begin, end) of `bytes` at first; `other` is a source of
  /// foreign parts.
  ByteVector mutate(const ByteVector& bytes, const ByteVector& other, std::size_t begin,
                    std::size_t end) {
    ByteVector out = bytes;
    for (std::size_t n = 1 + below(4); n > 0; --n) harm(out, other, begin, end);
    return out;
  }

 private:
  using Difference = ByteVector::difference_type;

  void harm(ByteVector& out, const ByteVector& other, std::size_t begin, std::size_t end) {
    end = std::min(end, out.size());
    if (begin >= end) return;
    const std::size_t at = begin + below(end - begin);
    const std::size_t length = 1 + below(std::min<std::size_t>(end - at, 1 + below(64)));
    const auto first = out.begin() + static_cast<Difference>(at);
    const auto last = first + static_cast<Difference>(length);
    switch (below(9)) {
      case 0:
        out[at] ^= static_cast<std::byte>(1U << below(8));
        break;
      case 1:
        out[at] = static_cast<std::byte>(below(256));
        break;
      case 2:
        number(out, at);
        break;
      case 3:
        out.erase(first, last);
        break;
      case 4: {
        const ByteVector copy(first, last);
        out.insert(out.begin() + static_cast<Difference>(begin + below(end - begin)), copy.begin(),
                   copy.end());
        break;
      }
      case 5:
        splice(out, other, at);
        break;
      case 6:
        std::fill(first, last, below(2) == 0 ? std::byte{0} : std::byte{0xFF});
        break;
      case 7: {
        const std::size_t to = begin + below(end - begin - (length - 1));
        for (std::size_t i = 0; i < length; ++i) std::swap(out[at + i], out[to + i]);
        break;
      }
      default:
        number(out, at & ~std::size_t{3});
        break;
    }
  }

  /// A number that lies at an edge, of 1 to 8 bytes, or a small change to the one that is there.
  void number(ByteVector& out, std::size_t at) {
    constexpr std::uint64_t kEdges[] = {0,
                                        1,
                                        2,
                                        0x7F,
                                        0x80,
                                        0xFF,
                                        0x100,
                                        0x7FFF,
                                        0x8000,
                                        0xFFFF,
                                        0x10000,
                                        0x7FFFFFFF,
                                        0x80000000,
                                        0xFFFFFFFF,
                                        0x100000000,
                                        0x7FFFFFFFFFFFFFFF,
                                        0x8000000000000000,
                                        0xFFFFFFFFFFFFFFFF};
    const std::size_t width = std::min(std::size_t{1} << below(4), out.size() - at);
    std::uint64_t value = 0;
    std::memcpy(&value, out.data() + at, width);
    switch (below(3)) {
      case 0:
        value = kEdges[below(std::size(kEdges))];
        break;
      case 1:
        value += below(33);
        value -= 16;
        break;
      default:
        value = below(out.size() + 1);
        break;
    }
    std::memcpy(out.data() + at, &value, width);
  }

  void splice(ByteVector& out, const ByteVector& other, std::size_t at) {
    if (other.empty()) return;
    const std::size_t from = below(other.size());
    const std::size_t length = 1 + below(std::min<std::size_t>(other.size() - from, 256));
    for (std::size_t i = 0; i < length && at + i < out.size(); ++i) out[at + i] = other[from + i];
  }

  std::mt19937_64 engine_;
};

}  // namespace corelane::robustness
