/// Nodes and arrivals of the workloads W1 to W3, and random ones, for simulations. The same seed
/// makes the same workload.
#pragma once

#include <cmath>
#include <ostream>
#include <random>
#include <vector>

#include "scheduler/testing/oracle.h"

namespace corelane::scheduler::oracle {

inline constexpr Nanoseconds kMillisecond = 1'000'000;

/// For messages of GoogleTest, in milliseconds.
inline void PrintTo(const Start& s, std::ostream* out) {  // NOLINT(readability-identifier-naming)
  *out << "{" << static_cast<double>(s.time) / kMillisecond << " ms, group " << s.group << "/"
       << s.instance << ", " << s.items << " from " << s.first << "}";
}

/// S(n) = a + b n for n = 1 to max.
inline std::vector<Nanoseconds> linear(Nanoseconds a, Nanoseconds b, std::uint32_t max) {
  std::vector<Nanoseconds> times;
  for (std::uint32_t n = 1; n <= max; ++n) times.push_back(a + b * n);
  return times;
}

/// W1: one instance of S(n) = 4 + n ms and at most 8 items; its capacity is 667 items a second.
inline Node w1() {
  return {{{1, 8, 1, linear(4 * kMillisecond, kMillisecond, 8)}}, false, 2 * kMillisecond};
}

/// Like W2, eight dense layers: steps that no line goes through; 1404 items a second.
inline Node w2() {
  const std::vector<Nanoseconds> times = {3'100'000, 3'400'000, 3'500'000, 3'900'000,
                                          4'600'000, 4'800'000, 5'300'000, 5'700'000};
  return {{{1, 8, 1, times}}, false, 2 * kMillisecond};
}

/// W3: 1&4&8, two instances each, S(n) = 4 + n ms; 2733 items a second by all six.
inline Node w3() {
  Node node{{}, false, 2 * kMillisecond};
  for (const std::uint32_t n : {1U, 4U, 8U})
    node.groups.push_back({n, n, 2, linear(4 * kMillisecond, kMillisecond, n)});
  return node;
}

/// `count` arrivals of a Poisson process of `per_second`, cut down to whole multiples of `grid`: a
/// grid of 1 ms lets arrivals, ends and timers fall on the same instants.
inline std::vector<Nanoseconds> poisson(std::uint64_t seed, double per_second, std::size_t count,
                                        Nanoseconds grid = 1) {
  std::mt19937_64 random(seed);
  std::vector<Nanoseconds> arrivals;
  double now = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double part = static_cast<double>(random() >> 11U) * 0x1p-53;  // In [0, 1).
    now -= std::log(1 - part) / per_second * 1e9;
    arrivals.push_back(static_cast<Nanoseconds>(now) / grid * grid);
  }
  return arrivals;
}

/// A node of up to four groups, of which the first takes single items. Its times are multiples of
/// half a millisecond, 0 included.
inline Node any_node(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto up_to = [&random](std::uint32_t most) {
    return static_cast<std::uint32_t>(random() % (std::uint64_t{most} + 1));
  };
  Node node{{}, up_to(1) == 1, up_to(10) * (kMillisecond / 2)};
  const std::uint32_t count = 1 + up_to(3);
  for (std::uint32_t g = 0; g < count; ++g) {
    const std::uint32_t min = g == 0 ? 1 : 1 + up_to(7);
    const std::uint32_t max = min + up_to(8);
    node.groups.push_back(
        {min, max, 1 + up_to(2),
         linear(up_to(8) * (kMillisecond / 2), up_to(2) * (kMillisecond / 2), max)});
  }
  return node;
}

/// Items of so many requests, each of which a group of the node takes alone.
inline Sizes any_sizes(std::uint64_t seed, const Node& node, std::size_t count) {
  std::mt19937_64 random(seed);
  Sizes sizes;
  for (std::size_t i = 0; i < count; ++i) {
    const Group& group = node.groups[random() % node.groups.size()];
    sizes.push_back(group.min + static_cast<std::uint32_t>(random() % (group.max - group.min + 1)));
  }
  return sizes;
}

}  // namespace corelane::scheduler::oracle
