/// What a function of a foreign API ends with: one of its codes, and the reason where that is a
/// failure.
#pragma once

#include <utility>

#include "corelane/base/status.h"

namespace corelane::edge {

/// The API's success, or a code and the reason. A Status and what error() makes convert to it, so
/// that CORELANE_TRY and CORELANE_ASSIGN work in functions that return it. `kCodeOf` is the API's
/// table of codes.
template <class Foreign, Foreign kSuccess, Foreign (*kCodeOf)(Code) noexcept>
class [[nodiscard]] Outcome {
 public:
  Outcome() noexcept = default;
  /// The code of the table.
  Outcome(Status status)  // NOLINT(google-explicit-constructor)
      : code_(kCodeOf(status.code())), status_(std::move(status)) {}
  Outcome(tl::unexpected<Status> failure)  // NOLINT(google-explicit-constructor)
      : Outcome(std::move(failure).value()) {}
  /// A code that differs from the table's.
  Outcome(Foreign code, Status status) noexcept : code_(code), status_(std::move(status)) {}
  Foreign code() const noexcept { return code_; }
  const Status& status() const noexcept { return status_; }

 private:
  Foreign code_ = kSuccess;
  Status status_;
};

}  // namespace corelane::edge
