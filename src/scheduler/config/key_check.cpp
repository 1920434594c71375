#include "scheduler/config/key_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/nearest_name.h"
#include "scheduler/config/key_table.h"
#include "scheduler/config/shown_text.h"

namespace corelane::scheduler {
namespace {

constexpr std::string_view kPage = "docs/apis/scheduler-keys.md lists all keys";

bool in_default_chain(std::string_view name) noexcept {
  return std::ranges::find(default_chain(), name) != default_chain().end();
}

std::string nearest_or_page(std::string_view what, std::string_view given,
                            const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(given, known);
  if (nearest.empty()) return fmt::format("no {} is near; {}", what, kPage);
  return fmt::format("the nearest {} is '{}': correct the name; {}", what, nearest, kPage);
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

class KeyCheck {
 public:
  KeyCheck(const Config& settings, const BackendRegistry& registry, const KeyErrors& errors)
      : settings_(settings), registry_(registry), errors_(errors) {
    for (const Key& key : key_table()) known_.emplace_back(key.name);
  }

  /// Learns the keys of a backend; of the expression, where the scheduler does not name it.
  Status add(const std::string& name, bool of_expression) {
    auto keys = registry_.keys_of(name);
    if (!keys && !in_default_chain(name)) return unknown_backend(name);
    names_.push_back(name);
    if (keys) {
      for (const std::string& key : *keys) {
        known_.push_back(key);
        known_.push_back(name + "::" + key);
      }
    }
    // A stage of the chain may have no entry, and takes its successor.
    if (!keys) known_.push_back(name + "::backend");
    if (of_expression) known_.insert(known_.end(), {name + "::min", name + "::max"});
    return {};
  }

  /// After the last add(): check() searches by halves.
  void sort() {
    std::ranges::sort(known_);
    const auto [from, to] = std::ranges::unique(known_);
    known_.erase(from, to);
  }

  Status check(const std::string& key, const std::string& given) const {
    if (std::ranges::binary_search(known_, key)) return {};
    if (key == kThreadIndex)
      return errors_.refuse(key, given, "nothing",
                            "each instance gets its own from the scheduler; leave the key out");
    if (std::ranges::find(reserved_names(), key) != reserved_names().end())
      return errors_.refuse(key, given, "nothing",
                            "this name is reserved for requests and nodes; leave the key out");
    if (is_key_of_several_nodes(key))
      return errors_.refuse(key,
                            error(Code::kUnsupported,
                                  "given {}; pipelines of several nodes are not there yet; leave "
                                  "the key out and make a pipeline of each node",
                                  shown(given))
                                .value(),
                            Code::kUnsupported);
    if (const std::size_t end = key.find("::"); end != key.npos)
      return unknown_qualified(key, end, given);
    return errors_.refuse(key, given,
                          fmt::format("a key of a node or of its backends ({})", joined(names_)),
                          nearest_or_page("key", key, known_));
  }

 private:
  Status unknown_qualified(const std::string& key, std::size_t end,
                           const std::string& given) const {
    const std::string name = key.substr(0, end);
    const std::string rest = key.substr(end + 2);
    if (std::ranges::find(names_, name) == names_.end())
      return errors_.refuse(
          key, given,
          fmt::format("a backend of the expression or of the chain before '::' ({})",
                      joined(names_)),
          nearest_or_page("key", key, known_));
    if (rest == "backend")
      return errors_.refuse(
          key, given, "nothing",
          fmt::format("'{0}' runs no other backend: write '{0}' without brackets and without this "
                      "key",
                      name));
    if (const Key* of_node = find_key(rest); of_node != nullptr)
      return errors_.refuse(
          key, given, fmt::format("a key that '{}' reads", name),
          fmt::format("'{}' is a key of the node: write it without '{}::'", rest, name));
    return errors_.refuse(key, given, fmt::format("a key that '{}' reads", name),
                          nearest_or_page("key", key, known_));
  }

  Status unknown_backend(const std::string& name) const {
    const std::vector<std::string> names = registry_.names();
    return errors_.refuse(naming_key(name), name,
                          fmt::format("a registered backend ({})", joined(names)),
                          nearest_or_page("name", name, names));
  }

  /// The key whose expression has this name.
  /// For a message only: a name that is a part of another may lead to that one's key.
  std::string naming_key(std::string_view name) const {
    for (const auto& [key, value] : settings_)
      if ((key == "backend" || key.ends_with("::backend")) && value.find(name) != std::string::npos)
        return key;
    return "backend";
  }

  const Config& settings_;
  const BackendRegistry& registry_;
  const KeyErrors& errors_;
  std::vector<std::string> known_;
  std::vector<std::string> names_;
};

}  // namespace

Status check_keys(const Config& settings, const NamedBackends& expression,
                  const NamedBackends& chain, const BackendRegistry& registry,
                  const KeyErrors& errors) {
  KeyCheck check(settings, registry, errors);
  for (const std::string& name : expression.names) CORELANE_TRY(check.add(name, true));
  for (const std::string& name : chain.names)
    if (!expression.names.contains(name)) CORELANE_TRY(check.add(name, false));
  check.sort();
  for (const auto& [key, value] : settings) CORELANE_TRY(check.check(key, value));
  for (const NamedBackends* named : {&expression, &chain})
    for (const std::string& key : named->keys)
      CORELANE_TRY(check.check(key, key.ends_with("::backend") ? "brackets" : "a parameter"));
  return {};
}

}  // namespace corelane::scheduler
