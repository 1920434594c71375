#include "adapters/qaic/profiling/qaic_profile_tap.h"

#include <algorithm>
#include <utility>

#include "base/guard.h"
#include "base/leaked.h"

namespace corelane::qaic {

ProfileSubscription::~ProfileSubscription() { tap_->remove(sink_); }

void ProfileTap::set_source(Source source) {
  const MutexLock lock(mutex_);
  source_.swap(source);
}

bool ProfileTap::of_set() const {
  const MutexLock lock(mutex_);
  return source_ != nullptr;
}

void ProfileTap::note(const SetRecord& record) noexcept {
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
  std::shared_ptr<const Sinks> all;
  {
    const MutexLock lock(mutex_);
    all = sinks_;
  }
  // A snapshot: a sink that is removed meanwhile may get this one record, and lives until then.
  if (all == nullptr) return;
  for (const auto& sink : *all) sink->take(program_, record);
}

Result<std::shared_ptr<ProfileSubscription>> ProfileTap::subscribe(
    std::shared_ptr<ProfileSink> sink) {
  Source source;
  {
    const MutexLock lock(mutex_);
    source = source_;
  }
  std::shared_ptr<device::Observation> observation;
  if (source) {
    auto observed = source(
        [sink, program = program_](const SetRecord& record) { sink->take(program, record); });
    // A set that was shut down has nothing to tell, and must not keep others from being profiled.
    if (!observed && observed.error().code() != Code::kCancelled) return error(observed.error());
    if (observed) observation = *std::move(observed);
  }
  auto made =
      std::make_shared<ProfileSubscription>(shared_from_this(), sink, std::move(observation));
  const MutexLock lock(mutex_);
  // For a program of a set, too: execution objects that are made of it report to note().
  Sinks more = sinks_ != nullptr ? *sinks_ : Sinks();
  more.push_back(std::move(sink));
  sinks_ = std::make_shared<const Sinks>(std::move(more));
  on_.store(true, std::memory_order_relaxed);
  return made;
}

void ProfileTap::remove(const std::shared_ptr<ProfileSink>& sink) {
  std::shared_ptr<const Sinks> gone;  // Destroyed without the lock.
  const MutexLock lock(mutex_);
  if (sinks_ == nullptr) return;
  Sinks fewer = *sinks_;
  if (const auto found = std::ranges::find(fewer, sink); found != fewer.end()) fewer.erase(found);
  on_.store(!fewer.empty(), std::memory_order_relaxed);
  gone = std::exchange(sinks_, std::make_shared<const Sinks>(std::move(fewer)));
}

std::uint64_t take_dropped(const ProfileSubscriptions& subscriptions) noexcept {
  std::uint64_t sum = 0;
  for (const auto& one : subscriptions) sum += one->take_dropped();
  return sum;
}

Result<ProfileSubscriptions> subscribe_all(const ProfileTaps& taps,
                                           const std::shared_ptr<ProfileSink>& sink) {
  ProfileSubscriptions made;
  for (const auto& tap : taps) {
    CORELANE_ASSIGN(auto one, tap->subscribe(sink));
    made.push_back(std::move(one));
  }
  return made;
}

namespace {

/// The characters of an expression, times all counts of its repetitions: no less than there are
/// with these written out. Saturates at NameExpression::kMostWritten + 1.
std::size_t written_out(const std::string& text) {
  constexpr std::size_t kOver = NameExpression::kMostWritten + 1;
  std::size_t size = text.size();
  bool in_class = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
      continue;
    }
    if (text[i] == '[') in_class = true;
    if (text[i] == ']') in_class = false;
    if (text[i] != '{' || in_class) continue;
    std::size_t most = 1, number = 0;
    for (++i; i < text.size() && text[i] != '}'; ++i) {
      const bool digit = text[i] >= '0' && text[i] <= '9';
      number = digit ? std::min(number * 10 + static_cast<std::size_t>(text[i] - '0'), kOver) : 0;
      // The larger number of {m,n} counts; {m,} counts as m.
      most = std::max(most, number);
    }
    size = std::min(size * most, kOver);
  }
  return size;
}

}  // namespace

Result<NameExpression> NameExpression::create(const std::string& text) {
  if (text.size() > kMostExpression)
    return error(Code::kInvalidArgument,
                 "the expression on names has {} characters; at most {} are allowed", text.size(),
                 kMostExpression);
  if (written_out(text) > kMostWritten)
    return error(Code::kInvalidArgument,
                 "the expression '{}' repeats too much: its {} characters times the counts of its "
                 "repetitions are more than {}; use * or + for many",
                 text, text.size(), kMostWritten);
  try {
    // A name is tried in a time that does not explode.
    return NameExpression(
        std::regex(text, std::regex::ECMAScript | std::regex_constants::__polynomial));
  } catch (const std::regex_error& e) {
    return error(Code::kInvalidArgument,
                 "'{}' is no ECMAScript expression on names ({}); back references are not allowed; "
                 "'net.*' is one",
                 text, e.what());
  }
}

bool NameExpression::matches(const std::string& name) const {
  return name.size() <= kMostName && std::regex_match(name, regex_);
}

namespace profiled {
namespace {

using Watchers = std::vector<std::shared_ptr<ProgramWatcher>>;

struct Registry {
  Mutex mutex{LockRank::kLeaf};
  ProfileTaps taps CORELANE_GUARDED_BY(mutex);
  std::vector<std::weak_ptr<ProgramWatcher>> watchers CORELANE_GUARDED_BY(mutex);

  /// Each keeps its memory until it is forgotten.
  void forget_the_gone() CORELANE_REQUIRES(mutex) {
    std::erase_if(watchers, [](const auto& one) { return one.expired(); });
  }
  Watchers alive() CORELANE_REQUIRES(mutex) {
    Watchers found;
    forget_the_gone();
    for (const auto& one : watchers)
      if (auto watcher = one.lock()) found.push_back(std::move(watcher));
    return found;
  }
};
Registry& registry() {
  static Leaked<Registry> registry;
  return *registry;
}

}  // namespace

void created(const std::shared_ptr<ProfileTap>& tap) {
  Watchers watchers;
  {
    const MutexLock lock(registry().mutex);
    registry().taps.push_back(tap);
    watchers = registry().alive();
  }
  for (const auto& one : watchers) one->joined(tap);
}

void released(const std::shared_ptr<ProfileTap>& tap) {
  Watchers watchers;
  {
    const MutexLock lock(registry().mutex);
    std::erase(registry().taps, tap);
    watchers = registry().alive();
  }
  for (const auto& one : watchers) one->left(tap);
}

void watch(const std::shared_ptr<ProgramWatcher>& watcher) {
  ProfileTaps there;
  {
    const MutexLock lock(registry().mutex);
    registry().forget_the_gone();
    // Under one lock with the list of programs: none that is made meanwhile is missed or told
    // twice.
    registry().watchers.push_back(watcher);
    there = registry().taps;
  }
  for (const auto& tap : there) watcher->joined(tap);
}

}  // namespace profiled
}  // namespace corelane::qaic
