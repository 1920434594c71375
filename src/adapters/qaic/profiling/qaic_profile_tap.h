/// Where the records of a program's inferences come out, for those who profile it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "base/sync.h"
#include "corelane/base/status.h"
#include "corelane/device/observer.h"
#include "edge/profile_samples.h"

namespace corelane::qaic {

using edge::ProfiledProgram;
using edge::ProfiledPrograms;
using edge::ProfileReport;
using edge::ProfileSample;

/// Gets the records of a program. Any thread; calls no user.
class ProfileSink {
 public:
  virtual ~ProfileSink() = default;
  virtual void take(const std::shared_ptr<const ProfiledProgram>& program,
                    const SetRecord& record) noexcept = 0;
};

class ProfileTap;

/// Records come until it goes. Any thread.
class ProfileSubscription {
 public:
  ProfileSubscription(std::shared_ptr<ProfileTap> tap, std::shared_ptr<ProfileSink> sink,
                      std::shared_ptr<device::Observation> observation)
      : tap_(std::move(tap)), sink_(std::move(sink)), observation_(std::move(observation)) {}
  ~ProfileSubscription();
  ProfileSubscription(const ProfileSubscription&) = delete;
  ProfileSubscription& operator=(const ProfileSubscription&) = delete;
  /// Waits until the sink has the records of what completed before.
  void flush() const {
    if (observation_ != nullptr) observation_->flush();
  }
  /// Records of a set that found no room since this was asked before.
  std::uint64_t take_dropped() noexcept {
    const std::uint64_t all = observation_ != nullptr ? observation_->dropped() : 0;
    return all - told_.exchange(all);
  }
  const std::shared_ptr<ProfileTap>& tap() const noexcept { return tap_; }

 private:
  std::atomic<std::uint64_t> told_{0};
  const std::shared_ptr<ProfileTap> tap_;
  const std::shared_ptr<ProfileSink> sink_;
  const std::shared_ptr<device::Observation> observation_;  ///< Null: not of a set.
};

/// One for each program; may outlive it. Any thread.
class ProfileTap : public std::enable_shared_from_this<ProfileTap> {
 public:
  /// Records of a set: InferenceSet::observe.
  using Source = std::function<Result<std::shared_ptr<device::Observation>>(
      std::function<void(const SetRecord&)>)>;

  explicit ProfileTap(ProfiledProgram program)
      : program_(std::make_shared<const ProfiledProgram>(std::move(program))) {}
  const std::shared_ptr<const ProfiledProgram>& program() const noexcept { return program_; }

  /// The program is of a set, whose records come from there.
  void set_source(Source source);
  bool of_set() const;
  /// False: nobody profiles it, and nothing needs to be stamped.
  bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
  /// An inference that is stamped begins; how many there are.
  std::size_t begin() noexcept { return in_flight_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// It has ended.
  void note(const SetRecord& record) noexcept;
  /// Fails with the codes of InferenceSet::observe.
  Result<std::shared_ptr<ProfileSubscription>> subscribe(std::shared_ptr<ProfileSink> sink);

 private:
  friend class ProfileSubscription;
  using Sinks = std::vector<std::shared_ptr<ProfileSink>>;
  void remove(const std::shared_ptr<ProfileSink>& sink);

  const std::shared_ptr<const ProfiledProgram> program_;
  std::atomic<bool> on_{false};
  std::atomic<std::size_t> in_flight_{0};
  mutable Mutex mutex_{LockRank::kLeaf};
  Source source_ CORELANE_GUARDED_BY(mutex_);
  std::shared_ptr<const Sinks> sinks_ CORELANE_GUARDED_BY(mutex_);  ///< Replaced, not changed.
};

using ProfileTaps = std::vector<std::shared_ptr<ProfileTap>>;
using ProfileSubscriptions = std::vector<std::shared_ptr<ProfileSubscription>>;

/// The sum over all subscriptions.
std::uint64_t take_dropped(const ProfileSubscriptions& subscriptions) noexcept;
/// `sink` gets the records of all. Those of ProfileTap::subscribe(); a failure leaves none.
Result<ProfileSubscriptions> subscribe_all(const ProfileTaps& taps,
                                           const std::shared_ptr<ProfileSink>& sink);

/// An expression on names of programs, compiled once. ECMAScript, without back references, of at
/// most kMostExpression characters, and kMostWritten with its repetitions written out ("(ab){3}":
/// 21). It is to match the whole name. Any thread.
class NameExpression {
 public:
  static constexpr std::size_t kMostExpression = 256;
  /// The library recurses over what is written out: this takes some 200 KiB of stack.
  static constexpr std::size_t kMostWritten = 4096;
  static constexpr std::size_t kMostName = 256;
  /// kInvalidArgument.
  static Result<NameExpression> create(const std::string& text);
  /// False for a name that is longer than kMostName.
  bool matches(const std::string& name) const;

 private:
  explicit NameExpression(std::regex regex) : regex_(std::move(regex)) {}
  std::regex regex_;
};

/// Hears of programs that are created and released. Any thread.
class ProgramWatcher {
 public:
  virtual ~ProgramWatcher() = default;
  virtual void joined(const std::shared_ptr<ProfileTap>& tap) noexcept = 0;
  virtual void left(const std::shared_ptr<ProfileTap>& tap) noexcept = 0;
};

/// The programs and sets whose handles live, and who watches them. Any thread; watchers are called
/// with no lock held.
namespace profiled {
void created(const std::shared_ptr<ProfileTap>& tap);
void released(const std::shared_ptr<ProfileTap>& tap);
/// `watcher` hears also of the programs that there are. Until it goes.
void watch(const std::shared_ptr<ProgramWatcher>& watcher);
}  // namespace profiled

}  // namespace corelane::qaic
