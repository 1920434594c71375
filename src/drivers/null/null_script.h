/// How long jobs on the null device take, and which of them fail: read from the device's text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "corelane/device/registry.h"

namespace corelane::drivers::null {

/// S(n) = a + b * n for a job of n samples, times the factor of its slowest core, divided by the
/// number of its cores. Options of the device's text:
///   a=1ms b=100us   parts of S(n); units ns, us, ms, s; both 0 by default
///   core1=2.5       factor of core 1; 1 by default
///   switch=200us    a job begins so much later where another program ran last on one of its cores,
///                   which a job on threads counts as its own time; 0 by default
///   fail=3          every third job fails with kEngineFailed; 0, the default: none
///   log=3           every third job writes a line to the device's log; 0, the default: none
///   threads=1       run jobs on threads, as engines that block do, instead of on the clock
///   name=left       name of the instance
struct Script {
  Duration a{};
  Duration b{};
  Duration switch_time{};
  std::vector<double> core_factors;
  std::uint64_t fail_every = 0;
  std::uint64_t log_every = 0;
  bool threads = false;

  /// Duration::max() for what is longer.
  Duration time_of(std::uint64_t core_bits, std::uint32_t batch) const;
};

/// The sum of times that are not below 0; Duration::max() where it would be longer.
Duration sum_of(Duration one, Duration other) noexcept;

/// "1ms" and the like; kInvalidArgument with the text.
Result<Duration> parse_duration(std::string_view text);
/// kInvalidArgument with the option and the known ones.
Result<Script> read_script(const device::DeviceSpec& spec, std::size_t cores);

}  // namespace corelane::drivers::null
