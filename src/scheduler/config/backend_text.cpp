#include "scheduler/config/backend_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text_parts.h"
#include "scheduler/config/shown_text.h"

namespace corelane::scheduler {
namespace {

constexpr std::string_view kSpecial = ",()[]";

bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }
bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_control(char c) noexcept {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}

std::string_view without_blanks(std::string_view text) { return trimmed(text, " \t"); }

/// Reads from the left; each function leaves `at_` after what it has read.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<BackendText>> list(std::size_t depth) {
    std::vector<BackendText> found;
    do {
      CORELANE_ASSIGN(BackendText one, backend(depth));
      found.push_back(std::move(one));
    } while (take(','));
    return found;
  }

  Status end(std::string_view expected) {
    if (skip_blanks(); at_ < text_.size()) return wrong(expected);
    return {};
  }

 private:
  Result<BackendText> backend(std::size_t depth) {
    BackendText out;
    if (take('(')) {
      CORELANE_ASSIGN(out.filter, name("the name of a filter"));
      if (!take(')')) return wrong("')' after the filter");
    }
    CORELANE_ASSIGN(out.name, name("the name of a backend"));
    if (take('(')) CORELANE_TRY(parameters(out.parameters));
    if (!take('[')) return out;
    // list() and backend() call each other: this bounds the stack.
    if (depth == kMaxNesting)
      return error(Code::kMalformed,
                   "backend {}: more than {} brackets inside of each other at "
                   "character {}; write fewer",
                   shown(text_), kMaxNesting, at_);
    CORELANE_ASSIGN(out.inner, list(depth + 1));
    if (!take(']')) return wrong("',' or ']'");
    return out;
  }

  Status parameters(std::map<std::string, std::string>& found) {
    do {
      CORELANE_ASSIGN(std::string key, name("the name of a parameter"));
      if (!take('=')) return wrong("'=' after the parameter");
      CORELANE_ASSIGN(std::string value, value_text());
      if (!found.emplace(key, std::move(value)).second)
        return error(Code::kMalformed,
                     "backend {}: parameter '{}' stands twice in one list, again "
                     "before character {}; keep one",
                     shown(text_), key, at_ + 1);
    } while (take(','));
    if (!take(')')) return wrong("',' or ')'");
    return {};
  }

  Result<std::string> name(std::string_view expected) {
    skip_blanks();
    const std::size_t from = at_;
    if (at_ == text_.size() || !is_letter(text_[at_])) return wrong(expected);
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    if (at_ - from > kMaxName)
      return error(Code::kMalformed,
                   "backend {}: the name at character {} has {} letters, at most {} are allowed; "
                   "write a shorter one",
                   shown(text_), from + 1, at_ - from, kMaxName);
    return std::string(text_.substr(from, at_ - from));
  }

  Result<std::string> value_text() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote == '"' || quote == '\'') return quoted(quote);
    const std::size_t from = at_;
    while (at_ < text_.size() && kSpecial.find(text_[at_]) == kSpecial.npos &&
           !is_control(text_[at_]))
      ++at_;
    const std::string_view value = without_blanks(text_.substr(from, at_ - from));
    if (value.empty()) return wrong("a value");
    return std::string(value);
  }

  Result<std::string> quoted(char quote) {
    // A quote cannot be escaped: a value with one stands in quotes of the other kind.
    const std::size_t from = ++at_;
    while (at_ < text_.size() && text_[at_] != quote && !is_control(text_[at_])) ++at_;
    if (at_ == text_.size() || text_[at_] != quote) return wrong("the closing quote of a value");
    return std::string(text_.substr(from, at_++ - from));
  }

  void skip_blanks() noexcept {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  bool take(char c) noexcept {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Failure wrong(std::string_view expected) {
    skip_blanks();
    const std::string given =
        at_ == text_.size() ? std::string("the end") : shown(text_.substr(at_, 1));
    return error(Code::kMalformed,
                 "backend {}: expected {} at character {}, found {}; write it as A[B] or "
                 "S[a(key=value),(filter)b]",
                 shown(text_), expected, at_ + 1, given);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

Result<std::vector<BackendText>> parse(std::string_view text, std::string_view expected) {
  if (text.size() > kMaxExpression)
    return error(Code::kMalformed,
                 "backend {}: it has {} bytes, at most {} are allowed; write a "
                 "shorter one",
                 shown(text), text.size(), kMaxExpression);
  Parser parser(text);
  CORELANE_ASSIGN(std::vector<BackendText> found, parser.list(0));
  CORELANE_TRY(parser.end(expected));
  return found;
}

std::string value_as_written(const std::string& value) {
  const bool bare = !value.empty() && without_blanks(value).size() == value.size() &&
                    value.find_first_of(kSpecial) == value.npos && value.front() != '"' &&
                    value.front() != '\'';
  if (bare) return value;
  // What was read from quotes lacks their kind, and what stood bare with both is written bare.
  const char quote = value.find('"') == value.npos ? '"' : '\'';
  return quote + value + quote;
}

}  // namespace

std::string BackendText::text() const {
  std::string out = filter.empty() ? std::string() : "(" + filter + ")";
  out += name;
  char before = '(';
  for (const auto& [key, value] : parameters) {
    out += before + key + "=" + value_as_written(value);
    before = ',';
  }
  if (!parameters.empty()) out += ')';
  if (!inner.empty()) out += "[" + list_text(inner) + "]";
  return out;
}

Result<BackendText> parse_backend(std::string_view text) {
  CORELANE_ASSIGN(std::vector<BackendText> found, parse(text, "'(', '[' or the end"));
  if (found.size() == 1) return std::move(found.front());
  return error(Code::kMalformed,
               "backend {}: {} backends with ',' between them, one is allowed; write S[...] around "
               "them, or '&' between them",
               shown(text), found.size());
}

Result<std::vector<BackendText>> parse_backend_list(std::string_view text) {
  return parse(text, "',', '(', '[' or the end");
}

std::string list_text(const std::vector<BackendText>& list) {
  std::string out;
  for (const BackendText& one : list) {
    if (!out.empty()) out += ',';
    out += one.text();
  }
  return out;
}

bool is_name(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kMaxName && is_letter(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
}

Result<std::vector<std::string>> split_parts(std::string_view key, std::string_view value) {
  std::vector<std::string> parts;
  CORELANE_TRY(for_each_part(value, '&', [&](std::string_view part) -> Status {
    if (without_blanks(part).empty())
      return error(Code::kInvalidArgument,
                   "key {}: given {}, part {} is empty; write a value on each side of '&'",
                   shown(key, '\''), shown(value), parts.size() + 1)
          .with(Detail::kKey, key)
          .with(Detail::kGiven, value);
    if (parts.size() == kMaxParts)
      return error(Code::kInvalidArgument,
                   "key {}: given {}, more than {} parts; join groups of the same kind with "
                   "instance_num",
                   shown(key, '\''), shown(value), kMaxParts)
          .with(Detail::kKey, key)
          .with(Detail::kGiven, value)
          .with(Detail::kLimit, kMaxParts);
    parts.emplace_back(without_blanks(part));
    return {};
  }));
  return parts;
}

}  // namespace corelane::scheduler
