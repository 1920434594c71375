/// The two profiling handles: a number of inferences, and a stream of reports.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/qaic/api/qaic_handle.h"
#include "adapters/qaic/profiling/qaic_profile_delivery.h"
#include "adapters/qaic/profiling/qaic_profile_tap.h"

namespace corelane::qaic {

/// A report once so many inferences of its programs have completed, or at stop(). All functions
/// from any thread, in callbacks too.
class ProfilingObject : public Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kProfiling;
  using Handle = QAicProfilingHandle;
  /// The most samples of a report.
  static constexpr std::uint32_t kMostSamples = std::uint32_t{1} << 20;

  /// kInvalidArgument: no program, no samples or too many, no callback and no folder, a trace of
  /// several devices.
  static Result<std::shared_ptr<ProfilingObject>> create(const ProfileTaps& programs,
                                                         std::uint32_t samples,
                                                         ProfileTarget target);
  ~ProfilingObject() override;
  /// kBusy while it is started and its report has not come.
  Status start();
  /// Delivers what was collected, unless nothing was, and returns once that is done; in a callback
  /// it does not wait.
  void stop();
  /// The handle ends: no report, no callback from here on.
  void close();

 private:
  struct State;
  explicit ProfilingObject(std::shared_ptr<State> state);
  const std::shared_ptr<State> state_;
};

/// What a stream is made of.
struct StreamOptions {
  std::uint32_t one_in = 1;
  Duration period{};
  std::string name;
  std::optional<NameExpression> names;  ///< Programs that join by themselves.
};

/// A report at each boundary of the clock. All functions from any thread, in callbacks too.
class StreamProfilingObject : public Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kStreamProfiling;
  using Handle = QAicStreamProfilingHandle;

  /// kInvalidArgument (no callback).
  static Result<std::shared_ptr<StreamProfilingObject>> create(StreamOptions options,
                                                               ProfileTarget target);
  ~StreamProfilingObject() override;
  /// kBusy while it is started.
  Status start();
  /// One last report is queued, unless it was not started.
  void stop();
  /// Nothing where it is there. kInvalidArgument (of another clock; in a trace, of another device).
  Status add(const std::shared_ptr<ProfileTap>& program);
  /// kNotFound. What was collected of it is reported.
  Status remove(const std::shared_ptr<ProfileTap>& program);
  /// kWrongState in a callback.
  Status flush();
  /// The handle ends: what is queued is delivered, and no callback comes from here on.
  void close();

 private:
  struct State;
  explicit StreamProfilingObject(std::shared_ptr<State> state);
  const std::shared_ptr<State> state_;
};

}  // namespace corelane::qaic
