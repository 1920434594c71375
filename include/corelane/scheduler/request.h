/// A request to a scheduler: a dictionary with a state, a size and a deadline.
#pragma once

#include <any>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"

namespace corelane::scheduler {

/// Values by key. "data" goes to a backend, "result" comes back; all other keys are the user's.
using Dict = std::unordered_map<std::string, std::any>;

/// The key that a request must have.
inline constexpr const char* kData = "data";
/// The key that a backend sets. A request has succeeded if and only if it is there.
inline constexpr const char* kResult = "result";

/// A std::shared_ptr<Event> here lets Pipeline::run() return at once.
inline constexpr const char* kEvent = "event";

/// What the scheduler knows of a request beside its values.
struct RequestOptions {
  std::uint32_t items = 1;    ///< Samples in it, at least 1: what min() and max() count.
  std::uint64_t bytes = 0;    ///< For `queue_bytes`; 0: not counted.
  Duration timeout{0};        ///< From its submission; 0: none. It is answered by then.
  std::int32_t priority = 0;  ///< -128..127, higher first.
};

/// How a request ended; the first two: not yet.
enum class RequestState : std::uint8_t {
  kWaiting,    ///< In the line of its node.
  kRunning,    ///< Given to a backend.
  kDone,       ///< "result" is there.
  kFailed,     ///< The backend failed, or left "result" out.
  kRejected,   ///< The line was full, or it could not end in time; no backend saw it.
  kCancelled,  ///< By its user, or by the end of the pipeline.
  kExpired,    ///< Its timeout came first.
};

/// "waiting", "running", ...
CORELANE_API std::string_view state_name(RequestState state) noexcept;

/// A request as a backend sees it. One thread at a time but for cancelled().
class CORELANE_API Request {
 public:
  /// With the values that its user gave.
  Request(Dict given, const RequestOptions& with) : values(std::move(given)), options(with) {}

  Dict values;
  const RequestOptions options;

  /// This request failed, the others of its batch need not: its "result" is erased afterwards.
  /// `why` must not be ok.
  void fail(Status why) { failure_ = std::move(why); }
  /// What fail() got; ok where it was not called.
  const Status& failure() const noexcept { return failure_; }
  /// True when it was cancelled or answered already: a long forward() may leave it out. Any thread.
  bool cancelled() const noexcept {
    return cancelled_.load(std::memory_order_relaxed) || (outer_ != nullptr && outer_->cancelled());
  }
  /// Lets cancelled() be true. Any thread.
  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  /// cancelled() is true where it is true of `outer`, for which a backend runs this request. Before
  /// other threads have it.
  void follow(std::shared_ptr<const Request> outer) noexcept { outer_ = std::move(outer); }

 private:
  Status failure_;
  std::atomic<bool> cancelled_{false};
  std::shared_ptr<const Request> outer_;
};

using RequestPtr = std::shared_ptr<Request>;

}  // namespace corelane::scheduler
