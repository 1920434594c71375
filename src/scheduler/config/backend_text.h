/// Names of backends as settings write them: `A[B[C]]`, `S[a(k=v),(swap)b]`, `x&y`.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/status.h"

namespace corelane::scheduler {

/// One name with what stands around it.
struct BackendText {
  std::string filter;                             ///< Of `(swap)b`: "swap"; empty: none.
  std::string name;                               ///< `A`.
  std::map<std::string, std::string> parameters;  ///< Of `a(k=v,l=w)`.
  std::vector<BackendText> inner;                 ///< Of `A[b,c]`, in order.
  /// As it would be written, without spaces.
  std::string text() const;
};

/// Reads one expression (no `&`). kMalformed says where it went wrong and what was expected.
Result<BackendText> parse_backend(std::string_view text);

/// The parts of a value that is divided by `&`, trimmed; one part where there is no `&`.
/// kInvalidArgument for an empty part.
Result<std::vector<std::string>> split_parts(std::string_view key, std::string_view value);

}  // namespace corelane::scheduler
