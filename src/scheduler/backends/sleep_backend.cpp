#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <utility>

#include "base/sync.h"
#include "scheduler/backends/backend_keys.h"
#include "scheduler/backends/builtin_backends.h"
#include "scheduler/backends/data_copy.h"
#include "scheduler/backends/inner_backend.h"

namespace corelane::scheduler {
namespace {

constexpr double kMostMs = 86'400'000.0;     // A day, for each of `a` and `b`.
constexpr double kMostNs = 3'000'000'000e9;  // 95 years: now + this is still a TimePoint.
constexpr double kNsOfMs = 1e6;

class Sleep final : public Backend {
 public:
  explicit Sleep(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}

  Status init(const Config& config, const SharedDict&) override {
    CORELANE_ASSIGN(range_, min_max(config, std::numeric_limits<std::uint32_t>::max()));
    CORELANE_ASSIGN(a_, real_number(config, "a", 0, 0, kMostMs));
    CORELANE_ASSIGN(b_, real_number(config, "b", 0, 0, kMostMs));
    return {};
  }

  Status forward(std::span<const RequestPtr> batch) override {
    const double ns = (a_ + b_ * static_cast<double>(items_of(batch))) * kNsOfMs;
    wait(Duration(std::llround(std::min(ns, kMostNs))));
    copy_data(batch);
    return {};
  }

  std::uint32_t min() const noexcept override { return range_.min; }
  std::uint32_t max() const noexcept override { return range_.max; }
  bool repeatable() const noexcept override { return true; }

 private:
  void wait(Duration time) {
    const TimePoint until = clock_->now() + time;
    MutexLock lock(mutex_);
    while (clock_->now() < until) clock_->wait_until(lock.native(), never_notified_, until);
  }

  const std::shared_ptr<Clock> clock_;
  Range range_;
  double a_ = 0;                          ///< Milliseconds of a call.
  double b_ = 0;                          ///< Milliseconds of each item.
  Mutex mutex_{LockRank::kSleepBackend};  ///< Guards nothing: the clock's wait wants one.
  std::condition_variable never_notified_;
};

}  // namespace

std::unique_ptr<Backend> make_sleep(const BackendSurroundings& surroundings) {
  return std::make_unique<Sleep>(surroundings.clock);
}

}  // namespace corelane::scheduler
