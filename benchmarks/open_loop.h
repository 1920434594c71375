/// Requests at times that were fixed before: a slow contender does not slow the load down.
#pragma once

#include <sys/prctl.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "percentiles.h"

namespace corelane::bench {

/// What clients saw of one run.
struct OpenLoop {
  std::vector<double> latencies_ms;  ///< From the intended arrival; of those that were answered.
  std::vector<double> lags_ms;       ///< How late a client made its call.
  std::uint64_t failed = 0;

  /// `lag_p99` above 1 ms: the figures say more of the machine than of the contender.
  Json report() const {
    std::vector<double> lags = lags_ms;
    std::ranges::sort(lags);
    Json figures = percentiles(latencies_ms);
    figures["failed"] = failed;
    figures["lag_p99"] = percentile_of(lags, 0.99);
    return figures;
  }
};

/// Lets timers of this thread, and of those that it starts, fire on time instead of 50 us later.
inline void precise_timers() { ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

/// Each of `clients` threads takes the next arrival (nanoseconds, not falling), sleeps until then
/// and calls `call(client, index)`, which returns whether there was an answer.
template <class Call>
OpenLoop open_loop(const std::vector<std::int64_t>& arrivals, std::size_t clients, Call call) {
  std::vector<double> latencies(arrivals.size(), -1), lags(arrivals.size());
  std::atomic<std::size_t> next{0};
  const TimePoint begin = real_clock()->now() + std::chrono::milliseconds(20);
  const auto ms = [](Duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t client = 0; client < clients; ++client)
      threads.emplace_back([&, client] {
        for (std::size_t i = next++; i < arrivals.size(); i = next++) {
          const TimePoint intended = begin + Duration(arrivals[i]);
          std::this_thread::sleep_until(intended);
          lags[i] = ms(real_clock()->now() - intended);
          if (call(client, i)) latencies[i] = ms(real_clock()->now() - intended);
        }
      });
  }
  OpenLoop result;
  result.lags_ms = std::move(lags);
  for (const double latency : latencies)
    if (latency < 0)
      ++result.failed;
    else
      result.latencies_ms.push_back(latency);
  return result;
}

}  // namespace corelane::bench
