/// A context: devices, a log, and who hears of failures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "adapters/qaic/api/qaic_handle.h"

namespace corelane {
class Clock;
}

namespace corelane::device {
class Device;
}

namespace corelane::qaic {

/// The functions of a context's user.
struct ContextCallbacks {
  QAicLogCallback log = nullptr;  ///< Null: the library's log.
  void* log_data = nullptr;
  QAicErrorHandler error = nullptr;  ///< Null: an error line in the library's log.
  void* error_data = nullptr;
};

/// All functions from any thread. Objects of a context keep it. What devices tell of is kept from
/// the user once the context's handle has ended (close()).
class ContextObject : public Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kContext;
  using Handle = QAicContext;

  /// QS_INVAL (an undefined bit, no device, one twice), QS_NODEV.
  static Result<std::shared_ptr<ContextObject>> create(QAicContextProperties_t properties,
                                                       std::span<const QID> devices,
                                                       const ContextCallbacks& callbacks);
  ~ContextObject() override;
  /// No function of the user is called from here on: waits for those that run, but not in one of
  /// them. Log lines that wait for earlier ones are delivered before. Then lines and failures go to
  /// the library's log.
  void close() noexcept;

  QAicContextID id() const noexcept;
  const std::vector<QID>& devices() const noexcept;
  /// An open device of this context. kNotFound for a number that is not one of them.
  Result<std::shared_ptr<device::Device>> device(QID number) const;

  void set_level(QLogLevel level) noexcept;
  QLogLevel level() const noexcept;
  /// A line for the log callback, unless it lies below the level.
  void log(QLogLevel level, std::string_view text) const noexcept;
  /// Calls the error handler once, with no lock held, in the thread of a user.
  void report(QAicErrorType type, const Status& why) const noexcept;
  /// The same by post(), for the thread of a device.
  void report_by_post(const Clock& clock, QAicErrorType type, const Status& why) const noexcept;
  /// Calls `call` in a thread of the context, one after another: what a user's function waits for,
  /// or how long it takes, must hold up neither the threads of a device nor other contexts. Where
  /// `clock`, of the device, is virtual, in place: there everything happens in the thread that
  /// moves the time. `call` is of sure_once().
  void post(const Clock& clock, std::function<void()> call) const noexcept;
  /// What the user's functions threw, counted.
  std::uint64_t exceptions() const noexcept;

 private:
  struct State;
  explicit ContextObject(std::shared_ptr<State> state);
  Status watch_devices();
  Status collect_logs();

  const std::shared_ptr<State> state_;
};

}  // namespace corelane::qaic
