#include <random>

#include "base/sync.h"
#include "base/text_parts.h"
#include "corelane/device/fault.h"

namespace corelane::device {
namespace {

constexpr std::string_view kKeys =
    "hang, crash, slow, slow_ms, short, flip, oom, lost, lost_ms, seed";

/// `low` to `high`, both allowed.
Status read_number(std::string_view key, std::string_view text, double low, double high,
                   double& out) {
  const auto number = parse_number<double>(text);
  out = number.value_or(0);
  if (number && out >= low && out <= high) return {};
  return error(Code::kInvalidArgument, "faults: '{}={}' is not a number from {} to {}", key, text,
               low, high);
}

Status read_entry(std::string_view key, std::string_view value, FaultPlan& plan) {
  // One hour: a slow run of a test must end.
  constexpr double kMaxMs = 3'600'000;
  double number = 0;
  if (key == "hang") return read_number(key, value, 0, 1, plan.hang);
  if (key == "crash") return read_number(key, value, 0, 1, plan.crash);
  if (key == "slow") return read_number(key, value, 0, 1, plan.slow);
  if (key == "short") return read_number(key, value, 0, 1, plan.short_result);
  if (key == "flip") return read_number(key, value, 0, 1, plan.flip);
  if (key == "oom") return read_number(key, value, 0, 1, plan.oom);
  if (key == "lost") return read_number(key, value, 0, 1, plan.lost);
  if (key == "slow_ms" || key == "lost_ms") {
    CORELANE_TRY(read_number(key, value, 0, kMaxMs, number));
    const Duration time(static_cast<std::int64_t>(number * 1e6));
    (key == "slow_ms" ? plan.slow_by : plan.lost_for) = time;
    return {};
  }
  if (key == "seed") {
    const auto seed = parse_number<decltype(plan.seed)>(value);
    plan.seed = seed.value_or(0);
    if (seed) return {};
    return error(Code::kInvalidArgument, "faults: 'seed={}' is not a whole number", value);
  }
  return error(Code::kInvalidArgument, "faults: unknown key '{}'; known are {}", key, kKeys);
}

/// Draws one number for each run, so that a seed gives the same faults for the same number of runs.
/// Which run gets which number depends on the order in which lanes ask.
class PlannedFaults final : public FaultPoint {
 public:
  explicit PlannedFaults(const FaultPlan& plan) : plan_(plan), random_(plan.seed) {}

  Fault at_run(std::uint64_t, std::uint64_t) override {
    // The chances lie side by side in [0, 1): their sum is at most 1, so at most one holds.
    const double x = draw();
    if (x < plan_.hang) return Fault::kHang;
    if (x < plan_.hang + plan_.crash) return Fault::kCrash;
    if (x < plan_.hang + plan_.crash + plan_.slow) return Fault::kSlow;
    if (x < plan_.at_run()) return Fault::kLost;
    return Fault::kNone;
  }
  Duration slow_by() const override { return plan_.slow_by; }
  Duration lost_for() const override { return plan_.lost_for; }

 private:
  double draw() {
    const MutexLock lock(mutex_);
    // The upper 53 bits as a number in [0, 1): a double holds no more.
    return static_cast<double>(random_() >> 11) * 0x1p-53;
  }

  const FaultPlan plan_;
  Mutex mutex_{LockRank::kFaultPlan};
  std::mt19937_64 random_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace

Result<FaultPlan> parse_faults(std::string_view text) {
  FaultPlan plan;
  if (text.empty()) return plan;
  // One comma at the end is allowed, an empty entry elsewhere is not.
  if (text.ends_with(',')) text.remove_suffix(1);
  CORELANE_TRY(for_each_part(text, ',', [&](std::string_view token) -> Status {
    const std::size_t equals = token.find('=');
    if (equals == std::string_view::npos)
      return error(Code::kInvalidArgument,
                   "faults: '{}' is not key=value; write for instance hang=0.001,seed=7 (keys: {})",
                   token, kKeys);
    return read_entry(token.substr(0, equals), token.substr(equals + 1), plan);
  }));
  if (plan.at_run() > 1)
    return error(Code::kInvalidArgument,
                 "faults: hang + crash + slow + lost is {}; together they must be at most 1",
                 plan.at_run());
  if (plan.short_result + plan.flip > 1)
    return error(Code::kInvalidArgument,
                 "faults: short + flip is {}; together they must be at most 1",
                 plan.short_result + plan.flip);
  return plan;
}

std::shared_ptr<FaultPoint> planned_faults(const FaultPlan& plan) {
  return std::make_shared<PlannedFaults>(plan);
}

}  // namespace corelane::device
