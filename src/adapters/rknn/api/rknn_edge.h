/// Where a Status becomes a code of the API: one table, one log line, one frame for each function.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "adapters/rknn/checks/rknn_check.h"
#include "corelane/base/status.h"
#include "edge/api_outcome.h"
#include "edge/entry.h"
#include "rknn_api.h"

/// Precedes the definition of each function of the API: they alone leave the library.
#define RKNN_EXPORT extern "C" __attribute__((visibility("default")))

namespace corelane::rknn {

/// The code of the API that stands for a failure, by the table of docs/apis/rknn.md.
int code_of(Code code) noexcept;

/// What a function of the API ends with, and how it is logged.
class [[nodiscard]] Outcome : public edge::Outcome<int, RKNN_SUCC, &code_of> {
 public:
  using edge::Outcome<int, RKNN_SUCC, &code_of>::Outcome;
  /// The answer to what clients ask to see whether it is there: no error. The reason becomes a
  /// debug line, and none where it was `told` before.
  Outcome as_probe(bool told) && {
    line_ = told ? Line::kNone : Line::kDebug;
    return std::move(*this);
  }
  enum class Line : std::uint8_t { kError, kDebug, kNone };
  /// What report() writes.
  Line line() const noexcept { return line_; }

 private:
  Line line_ = Line::kError;
};

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

}  // namespace corelane::rknn
