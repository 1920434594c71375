/// Where a Status becomes a QStatus: one table, one text for the caller, one frame for each
/// function.
#pragma once

#include <string_view>
#include <utility>

#include "QAicApi.h"
#include "adapters/qaic/checks/qaic_check.h"
#include "base/guard.h"
#include "corelane/base/status.h"
#include "edge/api_outcome.h"
#include "edge/call_site.h"

/// Precedes the definition of each function of the API: they alone leave the library.
#define QAIC_EXPORT extern "C" __attribute__((visibility("default")))

namespace corelane::qaic {

/// The QStatus that stands for a code, by the table of docs/apis/object-runtime.md.
QStatus code_of(Code code) noexcept;

using Outcome = edge::Outcome<QStatus, QS_SUCCESS, &code_of>;

/// A failure with a QStatus that differs from the table's.
template <class... Args>
Outcome outcome(QStatus code, detail::FormatAt<std::type_identity_t<Args>...> at, Args&&... args) {
  return {code, Status(Code::kInvalidArgument, fmt::format(at.format, std::forward<Args>(args)...),
                       at.where)};
}

/// Keeps "<function>: <reason>" as this thread's last error, writes it as a debug line, and gives
/// the code. A failure is the caller's to report: it gets the code, and the text on request.
QStatus report(std::string_view function, const Outcome& outcome) noexcept;
/// The same with a text that is whole.
QStatus report(QStatus code, std::string_view text) noexcept;
/// The text that report() kept last in this thread; "" before one. Valid until the next.
const char* last_error_text() noexcept;

/// QS_ERROR in a child of fork() whose parent had used the library.
Outcome check_process();

/// The frame of each function of the API that returns a code: nothing leaves it but the code.
template <class Body>
QStatus guard(const char* function, Body&& body) noexcept {
  const edge::CallScope scope(check::enabled(), function);  // What report() says is of it, too.
  const Outcome outcome = no_throw(function, [&]() -> Outcome {
    Outcome process = check_process();
    if (process.code() != QS_SUCCESS) [[unlikely]]
      return process;
    return body();
  });
  if (outcome.code() == QS_SUCCESS) [[likely]]
    return QS_SUCCESS;
  return report(function, outcome);
}

}  // namespace corelane::qaic
