/// Forms of C functions that older clients write, for C++: qaicCreateContext with 7 arguments, and
/// with a log callback of two parameters. QAicApi.h includes this file.
#pragma once

#include <type_traits>

#include "QAicApi.h"

namespace qaic::rt::detail {

using ShortLogCallback = void (*)(QLogLevel, const char*);

/// Calls the function of two parameters that `userData` is.
inline void callShortLog(QLogLevel level, const char* message, void* userData) {
  reinterpret_cast<ShortLogCallback>(userData)(level, message);
}

/// What the library is to call for a callback of two parameters, which goes with it as its user
/// data. A null callback stays null.
inline QAicLogCallback longLog(ShortLogCallback callback) {
  return callback != nullptr ? &callShortLog : nullptr;
}

/// A callback of two parameters, or what converts to one; a null pointer is none.
template <class Log>
using IfShortLog = std::enable_if_t<std::is_convertible_v<Log, ShortLogCallback> &&
                                        !std::is_convertible_v<Log, QAicLogCallback>,
                                    int>;

}  // namespace qaic::rt::detail

/// As qaicCreateContext, with a log callback without user data; `logUserData` is not used.
template <class Log, qaic::rt::detail::IfShortLog<Log> = 0>
QStatus qaicCreateContext(QAicContext** context, const QAicContextProperties_t* properties,
                          uint32_t numDevices, const QID* devices, Log logCallback,
                          void* /*logUserData*/, QAicErrorHandler errorHandler,
                          void* errorUserData) {
  const qaic::rt::detail::ShortLogCallback callback = logCallback;
  return qaicCreateContext(context, properties, numDevices, devices,
                           qaic::rt::detail::longLog(callback), reinterpret_cast<void*>(callback),
                           errorHandler, errorUserData);
}

/// As qaicCreateContext of older releases: user data for the error handler alone.
template <class Log>
QStatus qaicCreateContext(QAicContext** context, const QAicContextProperties_t* properties,
                          uint32_t numDevices, const QID* devices, Log logCallback,
                          QAicErrorHandler errorHandler, void* errorUserData) {
  return qaicCreateContext(context, properties, numDevices, devices, logCallback,
                           static_cast<void*>(nullptr), errorHandler, errorUserData);
}
