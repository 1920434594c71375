/// Context: devices, a log, and who hears of failures. It is made first and links all other
/// objects, which keep it. All methods from any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "QAicApiDataTypes.hpp"
#include "QAicApiLibrary.hpp"

namespace qaic::rt {

/// Gets one log line.
using LogCallback = std::function<void(QLogLevel, const char*)>;
/// Is called once for each event; the last parameter is the user data that the factory got.
using ErrorHandler =
    std::function<void(QAicContextID, const char*, QAicErrorType, const void*, size_t, void*)>;

namespace detail {

/// The callbacks of a context with their user data. The library holds a number: a call that comes
/// after the context has gone finds nothing, and does nothing.
struct ContextCallbacks {
  LogCallback log;
  ErrorHandler error;
  void* errorUserData = nullptr;
};

/// Objects by a number, which the library holds instead of a pointer.
template <class T>
class NumberedTable {
 public:
  /// Keeps the object until remove(), and returns its number, which no other object ever gets. Any
  /// thread.
  void* add(std::shared_ptr<const T> object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    objects_.emplace(++last_, std::move(object));
    return reinterpret_cast<void*>(last_);
  }
  /// Lets the object go; a call that has found it before may still use it. Does nothing where no
  /// object has the number. Any thread.
  void remove(void* number) {
    std::shared_ptr<const T> gone;  // Destroyed with no lock held.
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(number));
    if (found == objects_.end()) return;
    gone = std::move(found->second);
    objects_.erase(found);
  }
  /// The object with this number; null where none has it. Any thread.
  std::shared_ptr<const T> find(void* number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(number));
    return found == objects_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::uintptr_t, std::shared_ptr<const T>> objects_;
  std::uintptr_t last_ = 0;
};

class CallbackTable : public NumberedTable<ContextCallbacks> {
 public:
  /// Not destroyed before other objects that are left at exit.
  static CallbackTable& instance() {
    static auto* const table = new CallbackTable;
    return *table;
  }

  /// The library calls this with a log line. It passes the line to the callback of the context with
  /// this number, and does nothing once that context has gone. Any thread.
  static void log(QLogLevel level, const char* message, void* number) {
    if (const auto callbacks = instance().find(number)) callbacks->log(level, message);
  }
  /// The library calls this with a failure. It passes that to the error handler of the context with
  /// this number, and does nothing once that context has gone. Any thread.
  static void error(QAicContextID contextId, const char* errInfo, QAicErrorType errType,
                    const void* errData, size_t errDataSize, void* number) {
    if (const auto callbacks = instance().find(number))
      callbacks->error(contextId, errInfo, errType, errData, errDataSize, callbacks->errorUserData);
  }
};

/// Whether a callback is there: not nullptr, NULL, a null function pointer or an empty function.
template <class Callback>
bool isGiven(const Callback& callback) {
  if constexpr (std::is_null_pointer_v<Callback> || std::is_integral_v<Callback>)
    return false;
  else if constexpr (std::is_constructible_v<bool, const Callback&>)
    return static_cast<bool>(callback);
  else
    return true;
}

/// A log callback of two parameters, or of three with `userData` for the third.
template <class Log>
LogCallback logCallback(const Log& log, void* userData) {
  if (!isGiven(log)) return nullptr;
  if constexpr (std::is_invocable_v<const Log&, QLogLevel, const char*, void*>) {
    return [log, userData](QLogLevel level, const char* text) { log(level, text, userData); };
  } else {
    static_cast<void>(userData);
    if constexpr (std::is_invocable_v<const Log&, QLogLevel, const char*>) {
      return log;
    } else {
      static_assert(std::is_null_pointer_v<Log> || std::is_integral_v<Log>,
                    "a log callback takes (QLogLevel, const char*) or, with user data for the "
                    "last, (QLogLevel, const char*, void*)");
      return nullptr;
    }
  }
}

template <class Error>
ErrorHandler errorHandler(const Error& error) {
  if (!isGiven(error)) return nullptr;
  if constexpr (std::is_null_pointer_v<Error> || std::is_integral_v<Error>)
    return nullptr;
  else
    return error;
}

}  // namespace detail

class Context {
 public:
  /// A context of these devices. Null `properties`: QAIC_CONTEXT_DEFAULT. Log lines and errors go
  /// to the library's log. Throws CoreExceptionInit: QS_INVAL (an undefined property bit, no
  /// device, one twice), QS_NODEV.
  static shContext Factory(const QAicContextProperties_t* properties,
                           const std::vector<QID>& devices) {
    return Factory(properties, devices, nullptr, nullptr, nullptr, nullptr);
  }

  /// A context of all devices.
  static shContext Factory(const QAicContextProperties_t* properties = nullptr) {
    uint32_t count = 0;
    detail::checkInit("Context", library().qaicGetDeviceIds(&count, nullptr));
    std::vector<QID> devices(count);
    detail::checkInit("Context", library().qaicGetDeviceIds(&count, devices.data()));
    devices.resize(std::min<size_t>(count, devices.size()));
    return Factory(properties, devices);
  }

  /// With callbacks: functions or function objects, or nullptr for the library's log. `log` takes
  /// (QLogLevel, const char*) or also a void*, which is null; `error` is an ErrorHandler. They are
  /// called with no lock held, from any thread, may call any function, and are not called after the
  /// context has gone.
  template <class Log, class Error = std::nullptr_t>
  static shContext Factory(const QAicContextProperties_t* properties,
                           const std::vector<QID>& devices, const Log& log,
                           const Error& error = nullptr) {
    return Factory(properties, devices, log, nullptr, error, nullptr);
  }

  /// With callbacks and what they get as their last argument.
  template <class Log, class Error>
  static shContext Factory(const QAicContextProperties_t* properties,
                           const std::vector<QID>& devices, const Log& log, void* logUserData,
                           const Error& error, void* errorUserData) {
    auto callbacks = std::make_shared<detail::ContextCallbacks>();
    callbacks->log = detail::logCallback<std::decay_t<const Log>>(log, logUserData);
    callbacks->error = detail::errorHandler<std::decay_t<const Error>>(error);
    callbacks->errorUserData = errorUserData;
    return shContext(new Context(properties, devices, std::move(callbacks)));
  }

  ~Context() {
    static_cast<void>(library().qaicReleaseContext(context_));
    detail::CallbackTable::instance().remove(callbacks_);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// The first device of the context that has the cores and the memory of the program free. Throws
  /// CoreExceptionRuntime, QS_NODEV, with what each device lacks.
  QID findDevice(const shQpc& qpc, uint32_t programIndex = 0) const;
  /// The same with a code instead of an exception.
  QStatus findDevice(const shQpc& qpc, QID& device, uint32_t programIndex = 0) const;

  /// Lines below the level do not reach the log callback. QL_WARN at first.
  QStatus setLogLevel(QLogLevel level) { return library().qaicSetLogLevel(context_, level); }
  /// Stores the lowest level that reaches the log callback in `level`. It fails in a forked child
  /// alone, with QS_ERROR.
  QStatus getLogLevel(QLogLevel& level) const {
    return library().qaicGetLogLevel(context_, &level);
  }
  /// Writes a line to the context's log.
  QStatus log(QLogLevel level, const std::string& text) const {
    return library().qaicContextLog(context_, level, text.c_str());
  }

  /// For the C functions.
  QAicContext* get() const noexcept { return context_; }
  /// Unique in the process. The error handler gets it.
  QAicContextID getId() const noexcept { return id_; }
  /// Messages call it by this name: "Context". The reference is valid as long as the context.
  const std::string& objName() const noexcept { return name_; }
  /// The text of objName(), with a 0 byte behind it. It is valid as long as the context.
  const char* objNameCstr() const noexcept { return name_.c_str(); }

 private:
  Context(const QAicContextProperties_t* properties, const std::vector<QID>& devices,
          std::shared_ptr<const detail::ContextCallbacks> callbacks) {
    const QAicApiFunctionTable& api = library();
    const bool logs = callbacks->log != nullptr;
    const bool hears = callbacks->error != nullptr;
    callbacks_ = detail::CallbackTable::instance().add(std::move(callbacks));
    QStatus status = api.qaicCreateContext(
        &context_, properties, static_cast<uint32_t>(devices.size()), devices.data(),
        logs ? &detail::CallbackTable::log : nullptr, callbacks_,
        hears ? &detail::CallbackTable::error : nullptr, callbacks_);
    if (status == QS_SUCCESS) status = api.qaicContextGetId(context_, &id_);
    if (status == QS_SUCCESS) return;
    const std::string why = detail::lastError();
    if (context_ != nullptr) static_cast<void>(api.qaicReleaseContext(context_));
    detail::CallbackTable::instance().remove(callbacks_);
    throw CoreExceptionInit(name_, why, status);
  }

  std::string name_ = "Context";
  void* callbacks_ = nullptr;  ///< Their number in the table.
  QAicContext* context_ = nullptr;
  QAicContextID id_ = 0;
};

}  // namespace qaic::rt
