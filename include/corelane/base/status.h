/// Status and Result: how every function inside Corelane reports failure.
///
/// A Status is a code, a message for a person, details for a program, the place that made it, and
/// optionally the Status that caused it. "Ok" costs one null pointer. A Status never changes after
/// it is made; copies share it, so it may be read from any thread. Where there is no memory for its
/// texts, a failure is its code alone, and what is said on top of another one is left out.
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
#include <vector>

#include "corelane/base/api.h"

namespace corelane {

/// What went wrong, in bands of one hundred. The numbers are stable and printed by the CLI.
enum class Code : std::int32_t {
  kOk = 0,
  // 1xx: the caller asked for something that cannot be.
  kInvalidArgument = 101,  ///< A value outside what the function allows.
  kNotFound = 102,         ///< A name, file, device or operator that does not exist.
  kOutOfRange = 103,       ///< An index or offset beyond the end.
  kWrongState = 104,       ///< A legal call at the wrong time (a closed session, a forked child).
  kUnsupported = 105,      ///< A legal request this device or build cannot serve.
  kShapeMismatch = 106,    ///< A shape that is not the declared one, nor one of the declared sets.
  kTypeMismatch = 107,     ///< An element type that cannot be converted to the declared one.
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
  kDeviceLost = 404,           ///< The device was lost: prepare again when it is back.
  kBadResult = 405,            ///< The device reported success with a wrong or short result.
  kHostOperatorMissing = 406,  ///< A declared custom operator has no implementation registered.
  kHostOperatorFailed = 407,   ///< A custom operator's callback failed or threw.
  kEngineFailed = 408,         ///< The engine threw while it ran the job.
  // 5xx: a defect of Corelane.
  kInternal = 501,  ///< A broken invariant. Please report it.
};

/// The snake_case name of a code ("invalid_argument"), or "unknown". Any thread.
CORELANE_API std::string_view code_name(Code code) noexcept;

/// The facts of a failure that code may act on. Programs read these; only people read the message.
enum class Detail : std::uint8_t {
  kInput,       ///< Name of the model input at fault.
  kOutput,      ///< Name of the model output at fault.
  kDimension,   ///< Index or name of the dimension at fault.
  kGiven,       ///< What the caller gave.
  kAllowed,     ///< What would have been accepted.
  kLimit,       ///< The limit that was reached, a number with its unit.
  kNode,        ///< Name of the node of the network.
  kOperator,    ///< Operator type of that node, "domain.Type" or "Type".
  kRetryAfter,  ///< When another try may succeed, in milliseconds from now: "12.5".
  kKey,         ///< Key of the batch scheduler's settings at fault.
};

/// The snake_case name of a detail ("input"), or "unknown". Any thread.
CORELANE_API std::string_view detail_name(Detail key) noexcept;

/// A result without a value: success, or a failure with code, message, details, place and cause.
class [[nodiscard]] CORELANE_API Status {
 public:
  /// Success.
  Status() noexcept = default;
  /// The failure that error() made.
  Status(tl::unexpected<Status> failure) noexcept;  // NOLINT(google-explicit-constructor)
  /// A failure. `code` must not be kOk (kInternal is stored instead).
  Status(Code code, std::string message,
         std::source_location where = std::source_location::current()) noexcept;

  /// True for success.
  bool ok() const noexcept { return rep_ == nullptr; }
  /// As ok().
  explicit operator bool() const noexcept { return ok(); }
  /// The code; kOk for success.
  Code code() const noexcept;
  /// The message of this failure alone, on one line: control characters in the names that it holds
  /// are written out (corelane/base/printable.h). Empty when ok.
  const std::string& message() const noexcept;
  /// "file.cpp:42", the place that made it; empty when ok.
  const std::string& place() const noexcept;
  /// The failure that caused this one; ok when there is none.
  Status cause() const noexcept;
  /// What this failure or one of its causes says under `key`, the outermost first; empty when
  /// none does. The view lives as long as a copy of this Status.
  std::string_view detail(Detail key) const noexcept;
  /// The details of this failure and its causes, each key once, in the order of Detail.
  std::vector<std::pair<Detail, std::string>> details() const;
  /// This failure with one more detail; a key that it has already is replaced. Ok stays ok.
  Status with(Detail key, std::string value) const noexcept;

  /// A new failure with the same code (or `code`), this one as its cause. Ok stays ok.
  Status wrap(std::string_view message,
              std::source_location where = std::source_location::current()) const noexcept;
  /// The same with another code; kOk becomes kInternal.
  Status wrap(Code code, std::string_view message,
              std::source_location where = std::source_location::current()) const noexcept;

  /// "shape_mismatch: input 'x': ...: caused by ..."; "ok" when ok. One line.
  std::string to_string() const;

 private:
  struct Rep;
  static std::shared_ptr<const Rep> without_text(Code code) noexcept;
  std::shared_ptr<const Rep> rep_;
};

/// A value or the reason why there is none.
template <class T>
using Result = tl::expected<T, Status>;

namespace detail {
/// A format string together with the place of the call.
template <class... Args>
struct FormatAt {
  /// Takes the format string, checked at compile time, and the place of the call.
  template <class S>
  consteval FormatAt(const S& s,  // NOLINT(google-explicit-constructor)
                     std::source_location w = std::source_location::current())
      : format(s), where(w) {}
  fmt::format_string<Args...> format;
  std::source_location where;
};
/// The failure with this message; its code alone where there is no memory for more.
CORELANE_API Status formatted(Code code, fmt::string_view format, fmt::format_args arguments,
                              std::source_location where) noexcept;
}  // namespace detail

/// A failure on its way out of a function: converts to Status and to every Result.
class [[nodiscard]] Failure : public tl::unexpected<Status> {
 public:
  /// A failure of this status, which must not be ok.
  explicit Failure(Status status) noexcept : tl::unexpected<Status>(std::move(status)) {}
  /// Adds a fact for programs: `error(...).with(Detail::kInput, name)`. `value` is formatted by
  /// fmt.
  template <class V>
  Failure with(Detail key, const V& value) && noexcept {
    try {
      return Failure(this->value().with(key, fmt::format("{}", value)));
    } catch (...) {
      return std::move(*this);  // There is no memory for it.
    }
  }
};

/// Makes a failure, in functions that return Status or Result:
/// `return error(Code::kNotFound, "no input named '{}'", name);`
template <class... Args>
Failure error(Code code, detail::FormatAt<std::type_identity_t<Args>...> at,
              Args&&... args) noexcept {
  return Failure(detail::formatted(code, at.format, fmt::make_format_args(args...), at.where));
}

/// Passes a failure on as it is: `return error(result.error());`. `status` must not be ok.
inline Failure error(Status status) noexcept { return Failure(std::move(status)); }

}  // namespace corelane

#define CORELANE_CONCAT_INNER_(a, b) a##b
#define CORELANE_CONCAT_(a, b) CORELANE_CONCAT_INNER_(a, b)

/// Returns the failure of `expr` (a Status) from a function that returns Status or Result.
#define CORELANE_TRY(expr)                                  \
  do {                                                      \
    if (::corelane::Status status_ = (expr); !status_.ok()) \
      return ::corelane::error(std::move(status_));         \
  } while (false)

/// `CORELANE_ASSIGN(auto x, f());` takes the value of a Result, or returns its failure from a
/// function that returns Status or Result.
#define CORELANE_ASSIGN(lhs, expr) \
  CORELANE_ASSIGN_IMPL_(CORELANE_CONCAT_(result_, __LINE__), lhs, expr)
#define CORELANE_ASSIGN_IMPL_(tmp, lhs, expr)                 \
  auto tmp = (expr);                                          \
  if (!tmp) return ::corelane::error(std::move(tmp).error()); \
  lhs = std::move(*tmp)
