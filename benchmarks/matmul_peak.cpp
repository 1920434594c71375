#include "matmul_peak.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "corelane/base/clock.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace corelane::bench {
namespace {

constexpr int kTries = 5;
/// Enough independent chains for the latency of any instruction here.
constexpr int kChains = 12;

/// Seconds that `work` takes on all threads together, the best of the tries.
double seconds(std::size_t threads, const std::function<void(std::size_t)>& work) {
  double best = 1e9;
  for (int i = 0; i < kTries; ++i) {
    std::atomic<std::size_t> ready{0};
    std::vector<std::thread> others;
    const auto run = [&](std::size_t thread) {
      ++ready;
      while (ready < threads) {
      }
      work(thread);
    };
    for (std::size_t t = 1; t < threads; ++t) others.emplace_back(run, t);
    ++ready;
    while (ready < threads) {
    }
    const auto start = real_clock()->now();
    work(0);
    for (auto& thread : others) thread.join();
    best = std::min(best, std::chrono::duration<double>(real_clock()->now() - start).count());
  }
  return best;
}

#if defined(__x86_64__)
constexpr std::size_t kSteps = 2'000'000;

/// `step` on each of kChains values, kSteps times; the values stay in registers.
#define CORELANE_CHAINS(type, first, step)                                                         \
  type v0 = first, v1 = v0, v2 = v0, v3 = v0, v4 = v0, v5 = v0, v6 = v0, v7 = v0, v8 = v0,         \
       v9 = v0, v10 = v0, v11 = v0;                                                                \
  for (std::size_t i = 0; i < kSteps; ++i) {                                                       \
    v0 = step(v0), v1 = step(v1), v2 = step(v2), v3 = step(v3);                                    \
    v4 = step(v4), v5 = step(v5), v6 = step(v6), v7 = step(v7);                                    \
    v8 = step(v8), v9 = step(v9), v10 = step(v10), v11 = step(v11);                                \
    asm volatile(""                                                                                \
                 : "+v"(v0), "+v"(v1), "+v"(v2), "+v"(v3), "+v"(v4), "+v"(v5), "+v"(v6), "+v"(v7), \
                   "+v"(v8), "+v"(v9), "+v"(v10), "+v"(v11));                                      \
  }

[[gnu::target("avx512f,avx512bw,avx512vnni")]] void add_products_512(bool integers) {
  if (integers) {
    const __m512i y = _mm512_set1_epi8(3);
#define CORELANE_STEP(v) _mm512_dpbusd_epi32(v, y, y)
    CORELANE_CHAINS(__m512i, _mm512_setzero_si512(), CORELANE_STEP)
#undef CORELANE_STEP
  } else {
    const __m512 x = _mm512_set1_ps(0.999F);
#define CORELANE_STEP(v) _mm512_fmadd_ps(v, x, x)
    CORELANE_CHAINS(__m512, _mm512_setzero_ps(), CORELANE_STEP)
#undef CORELANE_STEP
  }
}

[[gnu::target("avx2,fma")]] void add_products_256(bool integers) {
  if (integers) {
    const __m256i y = _mm256_set1_epi16(3);
#define CORELANE_STEP(v) _mm256_add_epi32(v, _mm256_madd_epi16(_mm256_xor_si256(v, y), y))
    CORELANE_CHAINS(__m256i, _mm256_setzero_si256(), CORELANE_STEP)
#undef CORELANE_STEP
  } else {
    const __m256 x = _mm256_set1_ps(0.999F);
#define CORELANE_STEP(v) _mm256_fmadd_ps(v, x, x)
    CORELANE_CHAINS(__m256, _mm256_setzero_ps(), CORELANE_STEP)
#undef CORELANE_STEP
  }
}
#undef CORELANE_CHAINS

void measure_products(std::size_t threads, Peak& peak) {
  const bool wide = __builtin_cpu_supports("avx512vnni") != 0;
  if (!wide && (__builtin_cpu_supports("avx2") == 0 || __builtin_cpu_supports("fma") == 0)) return;
  const auto run = [&](bool integers) {
    const double time = seconds(threads, [&](std::size_t) {
      wide ? add_products_512(integers) : add_products_256(integers);
    });
    const double lanes = (wide ? 16.0 : 8.0) * (integers ? (wide ? 4.0 : 2.0) : 1.0);
    return 2 * lanes * kChains * static_cast<double>(kSteps * threads) / time;
  };
  peak.f32_per_second = run(false);
  peak.i8_per_second = run(true);
}
#else
void measure_products(std::size_t, Peak&) {}
#endif

}  // namespace

Peak measure_peak(std::size_t threads, std::size_t bytes) {
  Peak peak;
  measure_products(threads, peak);
  // The C library looks for a byte that is not there with the widest loads there are.
  const std::vector<char> memory(bytes, 'a');
  std::atomic<std::size_t> found{0};
  const double time = seconds(threads, [&](std::size_t thread) {
    const std::size_t begin = bytes * thread / threads;
    const std::size_t end = bytes * (thread + 1) / threads;
    if (std::memchr(memory.data() + begin, 'b', end - begin) != nullptr) ++found;
  });
  peak.bytes_per_second = static_cast<double>(bytes) / time;
  return peak;
}

}  // namespace corelane::bench
