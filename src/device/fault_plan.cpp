#include <charconv>
#include <random>

#include "base/sync.h"
#include "corelane/device/fault.h"

namespace corelane::device {
namespace {

constexpr std::string_view kKeys = "hang, crash, slow, slow_ms, short, flip, oom, seed";

Status read_number(std::string_view key, std::string_view text, double low, double high,
                   double& out) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (problem == std::errc() && end == text.data() + text.size() && out >= low && out <= high)
    return {};
  return error(Code::kInvalidArgument, "faults: '{}={}' is not a number from {} to {}", key, text,
               low, high);
}

Status read_entry(std::string_view key, std::string_view value, FaultPlan& plan) {
  constexpr double kMaxMs = 3'600'000;
  double number = 0;
  if (key == "hang") return read_number(key, value, 0, 1, plan.hang);
  if (key == "crash") return read_number(key, value, 0, 1, plan.crash);
  if (key == "slow") return read_number(key, value, 0, 1, plan.slow);
  if (key == "short") return read_number(key, value, 0, 1, plan.short_result);
  if (key == "flip") return read_number(key, value, 0, 1, plan.flip);
  if (key == "oom") return read_number(key, value, 0, 1, plan.oom);
  if (key == "slow_ms") {
    CORELANE_TRY(read_number(key, value, 0, kMaxMs, number));
    plan.slow_by = Duration(static_cast<std::int64_t>(number * 1e6));
    return {};
  }
  if (key == "seed") {
    const auto [end, problem] =
        std::from_chars(value.data(), value.data() + value.size(), plan.seed);
    if (problem == std::errc() && end == value.data() + value.size()) return {};
    return error(Code::kInvalidArgument, "faults: 'seed={}' is not a whole number", value);
  }
  return error(Code::kInvalidArgument, "faults: unknown key '{}'; known are {}", key, kKeys);
}

class PlannedFaults final : public FaultPoint {
 public:
  explicit PlannedFaults(const FaultPlan& plan) : plan_(plan), random_(plan.seed) {}

  Fault at_run(std::uint64_t, std::uint64_t) override {
    const double x = draw();
    if (x < plan_.hang) return Fault::kHang;
    if (x < plan_.hang + plan_.crash) return Fault::kCrash;
    if (x < plan_.hang + plan_.crash + plan_.slow) return Fault::kSlow;
    return Fault::kNone;
  }
  Duration slow_by() const override { return plan_.slow_by; }

 private:
  double draw() {
    const MutexLock lock(mutex_);
    return static_cast<double>(random_() >> 11) * 0x1p-53;
  }

  const FaultPlan plan_;
  Mutex mutex_{LockRank::kFaultPlan};
  std::mt19937_64 random_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace

Result<FaultPlan> parse_faults(std::string_view text) {
  FaultPlan plan;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view token = text.substr(at, comma - at);
    const std::size_t equals = token.find('=');
    if (equals == std::string_view::npos)
      return error(Code::kInvalidArgument,
                   "faults: '{}' is not key=value; write for instance hang=0.001,seed=7 (keys: {})",
                   token, kKeys);
    CORELANE_TRY(read_entry(token.substr(0, equals), token.substr(equals + 1), plan));
    at = comma + 1;
  }
  if (plan.hang + plan.crash + plan.slow > 1)
    return error(Code::kInvalidArgument,
                 "faults: hang + crash + slow is {}; together they must be at most 1",
                 plan.hang + plan.crash + plan.slow);
  return plan;
}

std::shared_ptr<FaultPoint> planned_faults(const FaultPlan& plan) {
  return std::make_shared<PlannedFaults>(plan);
}

}  // namespace corelane::device
