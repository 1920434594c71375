/// What this machine can do at most, measured: the yardstick of the matrix products.
#pragma once

#include <cstddef>

namespace corelane::bench {

struct Peak {
  double f32_per_second = 0;  ///< Multiplications and additions; 0 where it is not measured.
  double i8_per_second = 0;   ///< The same of 8-bit integers, with the widest instruction there is.
  double bytes_per_second = 0;  ///< Reading memory of `bytes`, again and again.
};

/// On `threads` threads at once, the best of some tries.
Peak measure_peak(std::size_t threads, std::size_t bytes);

}  // namespace corelane::bench
