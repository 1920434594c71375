#include "scheduler/config/node_toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "scheduler/config/key_table.h"
#include "scheduler/config/settings_reader.h"
#include "scheduler/config/shown_text.h"
#include "scheduler/config/toml_headers.h"

namespace corelane::scheduler {
namespace {

/// Dots of one line. toml++ makes a table for each dot of a key, and destroys them recursively: a
/// key of 100,000 dots would exhaust the stack.
constexpr std::size_t kMaxDots = 32;
constexpr std::size_t kLongestName = 128;

/// Line `number`, from 1; empty where the text has fewer.
std::string_view line_of(std::string_view text, std::size_t number) noexcept {
  for (; number > 1; --number) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

/// Whether a key with `::` stands at the front of a line, without quotes.
bool has_bare_scope(std::string_view line) noexcept {
  const std::string_view key = line.substr(0, line.find_first_of("=\"'#"));
  return key.find("::") != key.npos;
}

/// A text for each kind of value that a node takes; nothing for the others.
std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
  const auto* real = node.as_floating_point();
  if (real == nullptr) return std::nullopt;
  std::string text = fmt::format("{}", real->get());
  // 2.0 stays "2.0", which is not a whole number.
  const bool whole =
      std::ranges::all_of(text, [](char c) { return c == '-' || (c >= '0' && c <= '9'); });
  return whole ? text + ".0" : text;
}

std::string_view kind_of(const toml::node& node) noexcept {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::date:
      return "a date";
    case toml::node_type::time:
      return "a time";
    case toml::node_type::date_time:
      return "a date with a time";
    default:
      return "a value";
  }
}

class NodeReader {
 public:
  NodeReader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  Result<NodeSettings> read(const BackendRegistry& registry) {
    CORELANE_TRY(check_text());
    toml::parse_result parsed = toml::parse(text_);
    if (!parsed) return syntax_error(parsed.error());
    // `node_` points into `parsed` from here on.
    CORELANE_TRY(read_global(parsed.table()));
    CORELANE_TRY(read_node());
    const KeyErrors errors([this](std::string_view key) { return place_of_key(key); });
    CORELANE_ASSIGN(NodeSettings settings, read_settings(config_, registry, errors));
    settings.name = name_;
    return settings;
  }

 private:
  /// "file:line:column: ".
  std::string place(std::size_t line, std::size_t column) const {
    return fmt::format("{}:{}:{}: ", file_, line, column);
  }
  std::string place(const toml::source_position& at) const { return place(at.line, at.column); }

  /// A key that is in the text, or, for what was derived, the expression or the table.
  std::string place_of_key(std::string_view key) const {
    auto found = places_.find(key);
    if (found == places_.end()) found = places_.find("backend");
    return place(found == places_.end() ? node_place_ : found->second);
  }

  Status check_text() const {
    if (text_.size() > kMaxToml)
      return error(Code::kInvalidArgument,
                   "{}the text has {} bytes, at most {} are allowed; write one node", place(1, 1),
                   text_.size(), kMaxToml);
    std::size_t line = 1;
    std::size_t dots = 0;
    char before = '\n';
    for (const char c : text_) {
      // Dots side by side are one: they make no key, but lines of comments.
      if (c == '.' && before != '.' && ++dots > kMaxDots)
        return error(Code::kInvalidArgument,
                     "{}more than {} dots in one line; write short keys, and long texts in lines",
                     place(line, 1), kMaxDots);
      if (c == '\n') {
        ++line;
        dots = 0;
      }
      before = c;
    }
    return {};
  }

  Failure syntax_error(const toml::parse_error& problem) const {
    const toml::source_position at = problem.source().begin;
    const std::string where = place(at);
    if (has_bare_scope(line_of(text_, at.line)))
      return error(Code::kMalformed,
                   "{}a key with '::' must be in quotes; write \"A::key\" = \"value\"", where);
    // It may hold line breaks, and quotes the text; a message has one line.
    std::string what(problem.description());
    std::ranges::replace_if(
        what, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    return error(Code::kMalformed, "{}no TOML: {}; correct the line", where, what);
  }

  /// Scalars, and the one table.
  Status read_global(const toml::table& table) {
    for (const auto& [key, value] : table) {
      if (!value.is_table()) {
        CORELANE_TRY(take(key, value));
        continue;
      }
      if (node_ != nullptr) return second_table(key);
      node_ = value.as_table();
      name_ = key.str();
      node_place_ = key.source().begin;
    }
    return {};
  }

  /// toml++ has keys in the order of the alphabet: the later one in the text is named.
  Failure second_table(const toml::key& other) const {
    const bool later = before(node_place_, other.source().begin);
    return error(Code::kUnsupported,
                 "{}table {} is a second node beside {}: pipelines of several nodes are not there "
                 "yet; keep one table",
                 place(later ? other.source().begin : node_place_),
                 shown(later ? other.str() : name_), shown(later ? name_ : other.str()));
  }

  static bool before(const toml::source_position& a, const toml::source_position& b) noexcept {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  }

  Status read_node() {
    if (node_ == nullptr)
      return error(Code::kInvalidArgument,
                   "{}the text has no table; a node is one, such as [model] and its keys after it",
                   place(1, 1));
    CORELANE_TRY(check_name());
    for (const auto& [key, value] : *node_) {
      const Key* known = find_key(key.str());
      if (known != nullptr && known->global_only)
        return error(Code::kInvalidArgument,
                     "{}key '{}': given in table {}; allowed is above all tables; move it there",
                     place(key.source().begin), key.str(), shown(name_))
            .with(Detail::kKey, key.str());
      if (value.is_table())
        return error(Code::kUnsupported,
                     "{}table {} stands inside of table {}: pipelines of several nodes are not "
                     "there yet; keep one table, and write a key with a dot or '::' in quotes",
                     place(key.source().begin), shown(key.str()), shown(name_));
      CORELANE_TRY(take(key, value));
    }
    return {};
  }

  Status check_name() const {
    const auto good = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '-' || c == '.';
    };
    if (std::ranges::find(reserved_names(), name_) != reserved_names().end())
      return error(Code::kInvalidArgument,
                   "{}table {}: this name is reserved, as are {}; choose another name",
                   place(node_place_), shown(name_), fmt::join(reserved_names(), ", "));
    if (!name_.empty() && name_.size() <= kLongestName && std::ranges::all_of(name_, good))
      return {};
    return error(Code::kInvalidArgument,
                 "{}table {}: a node's name has 1 to {} letters, digits, '_', '-' and '.'; choose "
                 "another name",
                 place(node_place_), shown(name_), kLongestName);
  }

  /// The node is read after the global settings, and wins.
  Status take(const toml::key& key, const toml::node& value) {
    const toml::source_position at = key.source().begin;
    auto text = scalar_text(value);
    if (!text)
      return error(Code::kInvalidArgument,
                   "{}key {}: given {}; allowed is a text, a number, true or false; write several "
                   "values as one text with '&' between them",
                   place(at), shown(key.str(), '\''), kind_of(value))
          .with(Detail::kKey, key.str());
    config_.insert_or_assign(std::string(key.str()), *std::move(text));
    places_.insert_or_assign(std::string(key.str()), at);
    return {};
  }

  const std::string_view text_;
  const std::string_view file_;
  const toml::table* node_ = nullptr;
  std::string name_;
  toml::source_position node_place_{1, 1};
  Config config_;
  std::map<std::string, toml::source_position, std::less<>> places_;
};

}  // namespace

Result<NodeSettings> read_node_toml(std::string_view text, std::string_view file,
                                    const BackendRegistry& registry) {
  return NodeReader(text, file).read(registry);
}

}  // namespace corelane::scheduler
