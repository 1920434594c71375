/// Status and Result: how every function inside Corelane reports failure.
///
/// A Status is a code, a message for a person, the place that made it, and optionally the Status
/// that caused it. "Ok" costs one null pointer. A Status never changes after it is made; copies
/// share it, so it may be read from any thread.
///
/// Nothing below floor 7 throws for a failure of its own: exceptions, C codes and Python errors
/// are made from a Status once, at the edge of each adapter. A message names the thing, what was
/// given, what is allowed, and the next step.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "corelane/base/api.h"

namespace corelane {

/// What went wrong, in bands of one hundred. The numbers are stable and printed by the CLI.
enum class Code : std::int32_t {
  kOk = 0,
  // 1xx: the caller asked for something that cannot be.
  kInvalidArgument = 101,  ///< A value outside what the function allows.
  kNotFound = 102,         ///< A name, file, device or operator that does not exist.
  kOutOfRange = 103,       ///< An index or offset beyond the end.
  kWrongState = 104,     ///< A legal call at the wrong time (run before bind, bind while running).
  kUnsupported = 105,    ///< A legal request this device or build cannot serve.
  kShapeMismatch = 106,  ///< A shape that is not the declared one, nor one of the declared sets.
  kTypeMismatch = 107,   ///< An element type that cannot be converted to the declared one.
  // 2xx: the bytes that were given are not what they should be.
  kMalformed = 201,         ///< Not a program file / ONNX model, or truncated, or inconsistent.
  kCorrupted = 202,         ///< A checksum does not match.
  kVersionMismatch = 203,   ///< Written by a version this one cannot read.
  kUnsupportedModel = 204,  ///< A valid model with an operator or pattern the engine refuses.
  kForeignImage = 205,      ///< A vendor-compiled file on a device that cannot take it.
  // 3xx: a resource is missing.
  kOutOfMemory = 301,  ///< Host or device memory.
  kOutOfCores = 302,   ///< No core set of that size is free or exists.
  kBusy = 303,         ///< The object is in use; try again later.
  kIo = 304,           ///< The operating system refused a file, mapping or library.
  // 4xx: the work itself failed.
  kTimeout = 401,              ///< The deadline passed; the job was abandoned.
  kCancelled = 402,            ///< Cancelled before it started.
  kDeviceReset = 403,          ///< The core that ran it was reset.
  kDeviceLost = 404,           ///< The device is gone and must be opened again.
  kBadResult = 405,            ///< The device reported success with a wrong or short result.
  kHostOperatorMissing = 406,  ///< A declared custom operator has no implementation registered.
  kHostOperatorFailed = 407,   ///< A custom operator's callback failed or threw.
  kEngineFailed = 408,         ///< The engine threw while it ran the job.
  // 5xx: our fault.
  kInternal = 501,  ///< A broken invariant. Please report it.
};

/// The snake_case name of a code ("invalid_argument"), or "unknown". Any thread.
CORELANE_API std::string_view code_name(Code code) noexcept;

/// Success, or a failure with code, message, place and cause.
class [[nodiscard]] CORELANE_API Status {
 public:
  /// Success.
  Status() noexcept = default;
  /// A failure. `code` must not be kOk (kInternal is stored instead).
  Status(Code code, std::string message,
         std::source_location where = std::source_location::current());

  bool ok() const noexcept { return rep_ == nullptr; }
  explicit operator bool() const noexcept { return ok(); }
  Code code() const noexcept;
  /// The message of this failure alone; empty when ok.
  const std::string& message() const noexcept;
  /// "file.cpp:42", the place that made it; empty when ok.
  const std::string& place() const noexcept;
  /// The failure behind this one; ok when there is none.
  Status cause() const noexcept;

  /// A new failure with the same code (or `code`), this one as its cause. Ok stays ok.
  Status wrap(std::string message,
              std::source_location where = std::source_location::current()) const;
  Status wrap(Code code, std::string message,
              std::source_location where = std::source_location::current()) const;

  /// "shape_mismatch: input 'x': ...: caused by ..."; "ok" when ok. One line.
  std::string to_string() const;

 private:
  struct Rep;
  std::shared_ptr<const Rep> rep_;
};

/// A value or the reason why there is none.
template <class T>
using Result = tl::expected<T, Status>;

namespace detail {
/// A format string together with the place of the call.
template <class... Args>
struct FormatAt {
  template <class S>
  consteval FormatAt(const S& s,  // NOLINT(google-explicit-constructor)
                     std::source_location w = std::source_location::current())
      : format(s), where(w) {}
  fmt::format_string<Args...> format;
  std::source_location where;
};
}  // namespace detail

/// Makes a failure: `return error(Code::kNotFound, "no input named '{}'", name);`
template <class... Args>
tl::unexpected<Status> error(Code code, detail::FormatAt<std::type_identity_t<Args>...> at,
                             Args&&... args) {
  return tl::unexpected<Status>(
      Status(code, fmt::format(at.format, std::forward<Args>(args)...), at.where));
}

/// The same as a Status, for functions that return Status.
template <class... Args>
Status failure(Code code, detail::FormatAt<std::type_identity_t<Args>...> at, Args&&... args) {
  return Status(code, fmt::format(at.format, std::forward<Args>(args)...), at.where);
}

}  // namespace corelane

#define CORELANE_CONCAT_INNER_(a, b) a##b
#define CORELANE_CONCAT_(a, b) CORELANE_CONCAT_INNER_(a, b)

/// Returns from the function when `expr` (a Status) is a failure; in a function returning Status.
#define CORELANE_RETURN_IF_ERROR(expr)                                      \
  do {                                                                      \
    if (::corelane::Status status_ = (expr); !status_.ok()) return status_; \
  } while (false)

/// The same in a function returning Result<T>.
#define CORELANE_TRY(expr)                                             \
  do {                                                                 \
    if (::corelane::Status status_ = (expr); !status_.ok())            \
      return ::tl::unexpected<::corelane::Status>(std::move(status_)); \
  } while (false)

/// `CORELANE_ASSIGN(auto x, f());` takes the value of a Result, or returns its failure from a
/// function returning Result.
#define CORELANE_ASSIGN(lhs, expr) \
  CORELANE_ASSIGN_IMPL_(CORELANE_CONCAT_(result_, __LINE__), lhs, expr)
#define CORELANE_ASSIGN_IMPL_(tmp, lhs, expr)                                    \
  auto tmp = (expr);                                                             \
  if (!tmp) return ::tl::unexpected<::corelane::Status>(std::move(tmp).error()); \
  lhs = std::move(*tmp)

/// `CORELANE_ASSIGN_OR_STATUS(auto x, f());` the same from a function returning Status.
#define CORELANE_ASSIGN_OR_STATUS(lhs, expr) \
  CORELANE_ASSIGN_OR_STATUS_IMPL_(CORELANE_CONCAT_(result_, __LINE__), lhs, expr)
#define CORELANE_ASSIGN_OR_STATUS_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                    \
  if (!tmp) return std::move(tmp).error();              \
  lhs = std::move(*tmp)
