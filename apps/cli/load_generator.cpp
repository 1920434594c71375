#include "cli/load_generator.h"

#include <algorithm>
#include <mutex>
#include <thread>

#include "cli/options.h"

namespace corelane::cli {
namespace {

/// What all callers of one point share.
struct Shared {
  const LoadPoint& point;
  const LoadSettings& settings;
  Arrivals arrivals{point, settings};
  TimePoint start = real_clock()->now();
  std::mutex mutex{};  ///< Of `arrivals`.
};

struct Caller {
  Context context;
  std::vector<Sample> samples;
  std::uint64_t failed = 0;
  Status first_error;
};

/// When the next inference is due, or nullopt when the load is over.
std::optional<TimePoint> next_due(Shared& shared) {
  if (Interrupts::pending()) return std::nullopt;
  const std::lock_guard lock(shared.mutex);
  const auto due = shared.arrivals.next(real_clock()->now() - shared.start);
  return due ? std::optional(shared.start + *due) : std::nullopt;
}

/// Waits until then; false where a signal asks to finish before.
bool wait_until(TimePoint until) {
  for (TimePoint now = real_clock()->now(); now < until; now = real_clock()->now()) {
    if (Interrupts::pending()) return false;
    std::this_thread::sleep_until(std::min(until, now + Interrupts::kStep));
  }
  return true;
}

/// One caller's thread: takes the next inference of the point until none is left.
void call(Shared& shared, Caller& caller) {
  for (;;) {
    const auto due = next_due(shared);
    if (!due) return;
    // An inference that is late starts at once; its latency counts from when it was due.
    if (!wait_until(*due)) return;
    const Status status = caller.context.run(shared.settings.run);
    const auto done = real_clock()->now();
    if (!status.ok()) {
      if (caller.failed++ == 0) caller.first_error = status;
      continue;
    }
    caller.samples.push_back(
        {*due, done - *due, caller.context.times(), caller.context.record().core_bits});
  }
}

/// Failures of the device (timeouts, resets) are part of the measurement; a call that cannot work
/// at all ends the benchmark here.
Status warm_up(std::vector<Caller>& callers, const LoadSettings& settings) {
  const auto until = real_clock()->now() + settings.warm_up;
  do {
    for (auto& c : callers) {
      Status status = c.context.run(settings.run);
      if (!status.ok() && exit_code(status) != kExitExecution) return status;
    }
  } while (real_clock()->now() < until && !Interrupts::pending());
  return {};
}

/// By when they were due, for the timeline: they end in any order.
void sort_by_due(std::vector<Sample>& samples) {
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.due < b.due; });
}

/// A set under load. The id of an inference is the place of its due time.
struct SetRun {
  InferenceSet& set;
  const SetLoad& load;
  LoadResult& result;
  std::vector<TimePoint> due;
};

/// Collects one inference until then, and releases its handle. kTimeout: none ended.
Status collect_one(SetRun& run, TimePoint until) {
  CORELANE_ASSIGN(const SetHandle done, run.set.collect(until));
  const TimePoint now = real_clock()->now();
  const Status status = done.status();
  if (status.ok()) {
    const TimePoint start = run.due[done.id()];
    run.result.samples.push_back(
        {start, now - start, done.context().times(), done.context().record().core_bits});
    if (run.load.collected) CORELANE_TRY(run.load.collected(done));
  } else if (run.result.failed++ == 0) {
    run.result.first_error = status;
  }
  if (run.load.progress) run.load.progress(run.result);
  return run.set.release(done);
}

/// An available handle; collects until there is one.
Result<SetHandle> next_handle(SetRun& run) {
  for (;;) {
    auto handle = run.set.acquire(TimePoint{});
    if (handle || handle.error().code() != Code::kTimeout) return handle;
    CORELANE_TRY(collect_one(run, kNever));
  }
}

/// `due` is of an open loop; in a closed one an inference starts when it is submitted.
Status submit_one(SetRun& run, const SetHandle& handle, TimePoint due) {
  const std::uint64_t number = run.due.size();
  if (run.load.prepare) {
    Context context = handle.context();
    CORELANE_TRY(run.load.prepare(context, number));
  }
  // Also for one that is refused: the number of an inference is its place in this list.
  run.due.push_back(run.result.point.rate > 0 ? due : real_clock()->now());
  const Status sent = run.set.submit(handle, number);
  if (sent.ok()) return {};
  if (run.result.failed++ == 0) run.result.first_error = sent;
  return run.set.release(handle);
}

/// Collects what ends until then; false where a signal asks to finish before.
Result<bool> collect_until(SetRun& run, TimePoint until) {
  for (TimePoint now = real_clock()->now(); now < until; now = real_clock()->now()) {
    if (Interrupts::pending()) return false;
    const Status collected = collect_one(run, std::min(until, now + Interrupts::kStep));
    if (!collected.ok() && collected.code() != Code::kTimeout) return error(collected);
  }
  return true;
}

Status drive(SetRun& run, Shared& shared) {
  for (;;) {
    // Before the arrival: the time may be over once a handle is free.
    CORELANE_ASSIGN(const SetHandle handle, next_handle(run));
    const auto due = next_due(shared);
    CORELANE_ASSIGN(const bool starts, due ? collect_until(run, *due) : Result<bool>(false));
    if (!starts) {
      CORELANE_TRY(run.set.release(handle));
      break;
    }
    CORELANE_TRY(submit_one(run, handle, *due));
  }
  while (run.set.figures().in_flight + run.set.figures().completed > 0)
    CORELANE_TRY(collect_one(run, kNever));
  return {};
}

SetOptions set_options(const LoadPoint& point, const LoadSettings& settings) {
  SetOptions options;
  options.size = point.concurrency;
  options.cores = settings.run.cores;
  if (settings.run.timeout > Duration{0}) options.attempt_time = settings.run.timeout;
  return options;
}

Json summary_json(std::vector<Duration> values) {
  const auto s = summarize(std::move(values));
  return {{"min", to_us(s.min)}, {"p50", to_us(s.p50)},  {"p90", to_us(s.p90)},
          {"p95", to_us(s.p95)}, {"p99", to_us(s.p99)},  {"p99.9", to_us(s.p999)},
          {"max", to_us(s.max)}, {"mean", to_us(s.mean)}};
}

}  // namespace

// The same arrivals for the same seed on every machine.
Arrivals::Arrivals(const LoadPoint& point, const LoadSettings& settings)
    : point_(point), settings_(settings), random_(settings.seed) {}

bool Arrivals::is_over(Duration now) const {
  return settings_.count > 0 ? given_ >= settings_.count : now >= settings_.time;
}

Duration Arrivals::due() const { return Duration(static_cast<std::int64_t>(seconds_ * 1e9)); }

void Arrivals::advance() {
  ++given_;
  if (point_.poisson)
    seconds_ += std::exponential_distribution<double>(point_.rate)(random_);
  else
    seconds_ = static_cast<double>(given_) / point_.rate;
}

std::optional<Duration> Arrivals::next(Duration now) {
  if (is_over(now)) return std::nullopt;
  if (!is_open()) {
    ++given_;
    return now;
  }
  const Duration next = due();
  if (is_over(next)) return std::nullopt;
  advance();
  return next;
}

std::uint64_t Arrivals::leave_rest(Duration now) {
  std::uint64_t rest = 0;
  for (; is_open() && due() < now && !is_over(due()); ++rest) advance();
  return rest;
}

Result<LoadResult> run_load(const LoadPoint& point, const LoadSettings& settings,
                            const std::function<Result<Context>(std::size_t)>& make) {
  std::vector<Caller> callers(std::max<std::size_t>(point.concurrency, 1));
  for (std::size_t i = 0; i < callers.size(); ++i) {
    // The macro is two statements.
    CORELANE_ASSIGN(callers[i].context, make(i));
  }
  CORELANE_TRY(warm_up(callers, settings));
  Shared shared{point, settings};
  // Joined by clear(): `wall` ends with the last inference.
  std::vector<std::jthread> threads;
  for (auto& c : callers) threads.emplace_back([&shared, &c] { call(shared, c); });
  threads.clear();
  LoadResult result;
  result.point = point;
  result.wall = real_clock()->now() - shared.start;
  result.not_started = shared.arrivals.leave_rest(result.wall);
  for (auto& c : callers) {
    result.samples.insert(result.samples.end(), c.samples.begin(), c.samples.end());
    result.failed += c.failed;
    if (result.first_error.ok()) result.first_error = c.first_error;
  }
  sort_by_due(result.samples);
  return result;
}

Result<LoadResult> run_set_load(const LoadPoint& point, const LoadSettings& settings,
                                const Program& program, const SetLoad& load) {
  const SetOptions options = load.options.value_or(set_options(point, settings));
  CORELANE_ASSIGN(InferenceSet set, InferenceSet::create(program, options));
  std::vector<SetHandle> handles;
  std::vector<Caller> contexts(options.size * options.activations);
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    CORELANE_ASSIGN(SetHandle handle, set.acquire());
    contexts[i].context = handle.context();
    CORELANE_TRY(load.feed(contexts[i].context, i));
    handles.push_back(std::move(handle));
  }
  if (load.warm_up) CORELANE_TRY(warm_up(contexts, settings));
  for (const SetHandle& handle : handles) CORELANE_TRY(set.release(handle));
  if (load.begin) CORELANE_TRY(load.begin(set));
  Shared shared{point, settings};
  LoadResult result;
  result.point = point;
  SetRun run{set, load, result, {}};
  CORELANE_TRY(drive(run, shared));
  result.wall = real_clock()->now() - shared.start;
  result.not_started = shared.arrivals.leave_rest(result.wall);
  sort_by_due(result.samples);
  return result;
}

Json summarize_load(const LoadResult& r) {
  const auto part = [&](auto get) {
    std::vector<Duration> values;
    for (const auto& s : r.samples) values.push_back(get(s));
    return summary_json(std::move(values));
  };
  Json j{{"concurrency", r.point.concurrency},
         {"rate", r.point.rate},
         {"poisson", r.point.poisson},
         {"inferences", r.samples.size()},
         {"failed", r.failed},
         {"not_started", r.not_started},
         {"seconds", std::chrono::duration<double>(r.wall).count()},
         {"throughput", static_cast<double>(r.samples.size()) /
                            std::max(1e-9, std::chrono::duration<double>(r.wall).count())}};
  j["latency_us"] = part([](const Sample& s) { return s.latency; });
  j["queue_us"] = part([](const Sample& s) { return s.times.queue; });
  j["copy_in_us"] = part([](const Sample& s) { return s.times.copy_in; });
  j["device_us"] = part([](const Sample& s) { return s.times.device; });
  j["copy_out_us"] = part([](const Sample& s) { return s.times.copy_out; });
  if (!r.first_error.ok()) j["first_error"] = r.first_error.to_string();
  return j;
}

}  // namespace corelane::cli
