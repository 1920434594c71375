/// Names of backends as settings write them: `A[B[C]]`, `S[a(k=v),(swap)b]`, `x&y`.
///
///     list    = backend { "," backend }
///     backend = [ "(" filter ")" ] name [ "(" pairs ")" ] [ "[" list "]" ]
///     pairs   = key "=" value { "," key "=" value }
///
/// A name has at most 128 letters, digits and `_`, and begins with no digit. A value that has one
/// of `,()[]` or a blank at its ends stands in quotes, "..." or '...'. Blanks and tabs around all
/// parts are left out. All functions from any thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/status.h"

namespace corelane::scheduler {

/// Brackets inside of brackets: more is refused.
inline constexpr std::size_t kMaxNesting = 32;
/// Letters of a name: more is refused.
inline constexpr std::size_t kMaxName = 128;
/// Bytes of an expression: more is refused.
inline constexpr std::size_t kMaxExpression = 65536;
/// Parts of a value that `&` divides: more is refused.
inline constexpr std::size_t kMaxParts = 64;

/// One name with what stands around it.
struct BackendText {
  std::string filter;                             ///< Of `(swap)b`: "swap"; empty: none.
  std::string name;                               ///< `A`.
  std::map<std::string, std::string> parameters;  ///< Of `a(k=v,l=w)`.
  std::vector<BackendText> inner;                 ///< Of `A[b,c]`, in order.
  /// As it would be written, without spaces.
  std::string text() const;
  friend bool operator==(const BackendText&, const BackendText&) = default;
};

/// Reads one expression (no `&`). kMalformed says where it went wrong and what was expected.
Result<BackendText> parse_backend(std::string_view text);

/// Reads what stands between the brackets: one or more expressions with `,` between them. Fails
/// as parse_backend().
Result<std::vector<BackendText>> parse_backend_list(std::string_view text);

/// The expressions with `,` between them, without spaces: what parse_backend_list() reads.
std::string list_text(const std::vector<BackendText>& list);

/// Whether registries and expressions take it as a name.
bool is_name(std::string_view text) noexcept;

/// The parts of a value that is divided by `&`, trimmed; one part where there is no `&`.
/// kInvalidArgument for an empty part, and for more than kMaxParts.
Result<std::vector<std::string>> split_parts(std::string_view key, std::string_view value);

}  // namespace corelane::scheduler
