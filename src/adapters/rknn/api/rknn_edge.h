/// Where a Status becomes a code of the API: one table, one log line, one frame for each function.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "adapters/rknn/checks/rknn_check.h"
#include "corelane/base/status.h"
#include "edge/entry.h"
#include "rknn_api.h"

/// Precedes the definition of each function of the API: they alone leave the library.
#define RKNN_EXPORT extern "C" __attribute__((visibility("default")))

namespace corelane::rknn {

/// What a function of the API ends with: RKNN_SUCC, or a code and the reason. A Status and what
/// error() makes convert to it, so that CORELANE_TRY and CORELANE_ASSIGN work in functions that
/// return it.
class [[nodiscard]] Outcome {
 public:
  Outcome() noexcept = default;
  /// The code by the table of docs/apis/rknn.md.
  Outcome(Status status);                  // NOLINT(google-explicit-constructor)
  Outcome(tl::unexpected<Status> failure)  // NOLINT(google-explicit-constructor)
      : Outcome(std::move(failure).value()) {}
  /// A code that differs from the table's.
  Outcome(int code, Status status) noexcept : code_(code), status_(std::move(status)) {}
  /// The answer to what clients ask to see whether it is there: no error. The reason becomes a
  /// debug line, and none where it was `told` before.
  Outcome as_probe(bool told) && {
    line_ = told ? Line::kNone : Line::kDebug;
    return std::move(*this);
  }
  enum class Line : std::uint8_t { kError, kDebug, kNone };
  /// What report() writes.
  Line line() const noexcept { return line_; }
  int code() const noexcept { return code_; }
  const Status& status() const noexcept { return status_; }

 private:
  int code_ = RKNN_SUCC;
  Line line_ = Line::kError;
  Status status_;
};

/// The code of the API that stands for a failure.
int code_of(const Status& status) noexcept;

/// A failure with a code of the API that differs from the table's.
template <class... Args>
Outcome outcome(int code, detail::FormatAt<std::type_identity_t<Args>...> at, Args&&... args) {
  return {code, Status(Code::kInvalidArgument, fmt::format(at.format, std::forward<Args>(args)...),
                       at.where)};
}

/// Writes "<function>: <reason>", as an error line but for probes, and gives the code.
int report(std::string_view function, const Outcome& outcome) noexcept;

/// The frame of each function of the API that returns a code: nothing leaves it but the code.
template <class Body>
int guard(const char* function, Body&& body) noexcept {
  const Outcome outcome =
      edge::entry(check::enabled(), function, [&]() -> Outcome { return body(); });
  if (outcome.code() == RKNN_SUCC) [[likely]]
    return RKNN_SUCC;
  return report(function, outcome);
}

/// The same for functions that return memory: null after a line with the reason.
template <class Body>
rknn_tensor_mem* guard_memory(const char* function, Body&& body) noexcept {
  rknn_tensor_mem* memory = nullptr;
  (void)guard(function, [&]() -> Outcome {
    CORELANE_ASSIGN(memory, body());
    return {};
  });
  return memory;
}

}  // namespace corelane::rknn
