/// Load for `corelane bench` and `qaic-runner`: closed loop (so many callers) or open loop
/// (arrivals at a rate).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cli/command.h"
#include "corelane/runtime/inference_set.h"
#include "corelane/runtime/program.h"
#include "corelane/runtime/trace.h"

namespace corelane::cli {

/// One point of a sweep.
struct LoadPoint {
  std::size_t concurrency = 1;  ///< Callers, each with a context of its own; handles of a set.
  double rate = 0;              ///< Arrivals per second; 0 is a closed loop.
  bool poisson = false;         ///< Exponential gaps instead of equal ones.
};

struct LoadSettings {
  Duration warm_up = std::chrono::milliseconds(200);
  Duration time = std::chrono::seconds(3);  ///< Ignored when count > 0.
  std::uint64_t count = 0;
  std::uint64_t seed = 1;
  RunOptions run;
};

/// One inference as its caller saw it.
struct Sample {
  TimePoint due;       ///< When it should have started (open loop) or did (closed loop).
  Duration latency{};  ///< due to done.
  RunTimes times;
  std::uint64_t core_bits = 0;
};

struct LoadResult {
  LoadPoint point;
  std::vector<Sample> samples;
  std::uint64_t failed = 0;
  std::uint64_t not_started = 0;  ///< Due in an open loop, for which the time did not suffice.
  Status first_error;
  Duration wall{};
};

/// When the inferences of a point begin, one after the other; times are from the load's start. For
/// one thread at a time.
class Arrivals {
 public:
  Arrivals(const LoadPoint& point, const LoadSettings& settings);
  /// The next one, asked for at `now`: at once in a closed loop; in an open loop when it is due,
  /// before `now` where the load is late. Gaps are equal, or exponential ones from the seed. None
  /// once there were as many as the count, or without a count once the time is over.
  std::optional<Duration> next(Duration now);
  /// How many of an open loop were due before `now`, and before the time was over, that next() did
  /// not give. It gives them no more.
  std::uint64_t leave_rest(Duration now);

 private:
  bool is_open() const { return point_.rate > 0; }
  bool is_over(Duration now) const;
  Duration due() const;
  void advance();

  LoadPoint point_;
  LoadSettings settings_;
  std::mt19937_64 random_;
  double seconds_ = 0;  ///< When the next one is due: the gaps before it.
  std::uint64_t given_ = 0;
};

/// Runs one point, or the part of it before an interrupt; contexts are made from `make`, already
/// fed.
Result<LoadResult> run_load(const LoadPoint& point, const LoadSettings& settings,
                            const std::function<Result<Context>(std::size_t)>& make);

/// What run_set_load() does with the set besides submitting and collecting. All but `feed` may be
/// empty. They are called in its thread; a failure ends the load.
struct SetLoad {
  /// Fills the inputs of a handle's context, once.
  std::function<Status(Context&, std::size_t)> feed;
  /// None: handles for the callers of the point, and cores and timeout of the settings.
  std::optional<SetOptions> options;
  bool warm_up = true;  ///< Runs each handle at least once before the measurement.
  /// The set, before the first measured submission.
  std::function<Status(InferenceSet&)> begin;
  /// Before inference `n`, from 0, is submitted with this context.
  std::function<Status(Context&, std::uint64_t)> prepare;
  /// An inference that ended well; id() is its number. Its results go once this returns.
  std::function<Status(const SetHandle&)> collected;
  /// After each inference that ended, with all that did so far.
  std::function<void(const LoadResult&)> progress;
};

/// The same with one thread and an inference set: it submits what is due, and collects where no
/// handle is free or nothing is due.
Result<LoadResult> run_set_load(const LoadPoint& point, const LoadSettings& settings,
                                const Program& program, const SetLoad& load);

/// Figures of one point: throughput, percentiles of latency and of each part.
Json summarize_load(const LoadResult& result);

/// A figure of summarize_load() as `bench` shows it, on the terminal and on the page.
struct BenchColumn {
  std::string title;
  std::string path;  ///< JSON pointer.
  int digits;
  std::string text(const Json& point) const;
};
const std::vector<BenchColumn>& bench_columns();

/// A self-contained page: table, latency histogram and timeline of the cores for each point.
std::string bench_page(const Json& report, const std::vector<LoadResult>& results,
                       const std::vector<std::string>& core_names);
/// One line a sample: point, due_us, latency_us, queue_us, copy_in_us, device_us, copy_out_us,
/// cores.
std::string bench_csv(const std::vector<LoadResult>& results);

}  // namespace corelane::cli
