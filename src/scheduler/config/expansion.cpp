#include "scheduler/config/expansion.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/config/shown_text.h"

namespace corelane::scheduler {
namespace {

constexpr std::size_t kMaxNames = 1000;

std::string backend_key(std::string_view name) { return std::string(name) + "::backend"; }

/// `A::backend` of `config`; nothing where it has none.
Result<std::vector<BackendText>> inner_of(std::string_view name, const Config& config) {
  const auto found = config.find(backend_key(name));
  if (found == config.end()) return std::vector<BackendText>();
  auto list = parse_backend_list(found->second);
  if (list) return list;
  return error(list.error().wrap(Code::kInvalidArgument, fmt::format("key '{}'", found->first)))
      .with(Detail::kKey, found->first);
}

/// `replace`: it takes the place of a value that is there already.
Status set_key(Config& config, const std::string& key, const std::string& value, bool replace) {
  const auto [place, added] = config.try_emplace(key, value);
  if (added || place->second == value) return {};
  if (!replace)
    return error(Code::kInvalidArgument,
                 "key '{}': given {}, and {} by the expression of a backend; keep one of them", key,
                 shown(place->second), shown(value))
        .with(Detail::kKey, key)
        .with(Detail::kGiven, place->second);
  place->second = value;
  return {};
}

/// Goes from the outer name inwards, as long as there is one inner backend without a filter. A list
/// ends the way, since the stages of `S` are expanded by `S`. A failure leaves `config` half
/// written: callers give it up.
Result<std::string> expand(const BackendText& text, Config& config, bool replace) {
  BackendText at = text;
  std::set<std::string> above;
  for (;;) {
    if (!above.insert(at.name).second || above.size() > kMaxNesting)
      return error(Code::kInvalidArgument,
                   "backend '{}' stands inside of itself, or in more than {} others; write a chain "
                   "of different ones",
                   at.name, kMaxNesting);
    for (const auto& [key, value] : at.parameters)
      CORELANE_TRY(set_key(config, at.name + "::" + key, value, replace));
    CORELANE_ASSIGN(std::vector<BackendText> inner, inner_of(at.name, config));
    if (!at.inner.empty()) {
      if (!inner.empty() && !replace && inner != at.inner)
        return error(Code::kInvalidArgument,
                     "key '{}': given {}, and {} by the expression of a backend; keep one of them",
                     backend_key(at.name), shown(list_text(inner)), shown(list_text(at.inner)))
            .with(Detail::kKey, backend_key(at.name))
            .with(Detail::kGiven, list_text(inner));
      inner = std::move(at.inner);
    }
    if (inner.empty()) return text.name;
    const bool one = inner.size() == 1 && inner.front().filter.empty();
    // A single name: what stands around it is written to the keys of its own in the next round.
    config[backend_key(at.name)] = one ? inner.front().name : list_text(inner);
    if (!one) return text.name;
    BackendText next = std::move(inner.front());
    at = std::move(next);
  }
}

/// Walks through an expression and what `A::backend` says, with the names above in `path_`.
class Walk {
 public:
  Walk(const Config& config, NamedBackends& found) : config_(config), found_(found) {}

  Status visit(const BackendText& text) {
    if (std::ranges::find(path_, text.name) != path_.end())
      return error(Code::kInvalidArgument,
                   "backend '{}' stands inside of itself; write a chain of different ones",
                   text.name);
    // The path bounds the stack. Visits are counted, not names: lists in which each backend names
    // the next one twice double with each level.
    if (path_.size() == kMaxNesting || ++visited_ > kMaxNames)
      return error(Code::kInvalidArgument,
                   "backend '{}': at most {} names inside of each other and {} names are allowed; "
                   "write fewer",
                   text.name, kMaxNesting, kMaxNames);
    found_.names.insert(text.name);
    for (const auto& [key, value] : text.parameters) found_.keys.insert(text.name + "::" + key);
    path_.push_back(text.name);
    if (text.inner.empty()) {
      CORELANE_ASSIGN(const std::vector<BackendText> inner, inner_of(text.name, config_));
      CORELANE_TRY(visit_all(inner));
    } else {
      found_.keys.insert(text.name + "::backend");
      CORELANE_TRY(visit_all(text.inner));
    }
    path_.pop_back();
    return {};
  }

 private:
  Status visit_all(const std::vector<BackendText>& list) {
    for (const BackendText& one : list) CORELANE_TRY(visit(one));
    return {};
  }

  const Config& config_;
  std::vector<std::string> path_;
  NamedBackends& found_;
  std::size_t visited_ = 0;
};

}  // namespace

Result<std::string> expand_backend(const BackendText& text, Config& config) {
  return expand(text, config, false);
}

Result<std::string> expand_stage(const BackendText& text, Config& config) {
  return expand(text, config, true);
}

Status name_backends(const BackendText& text, const Config& config, NamedBackends& found) {
  return Walk(config, found).visit(text);
}

Config config_for(std::string_view name, const Config& config) {
  Config out = config;
  const std::string prefix = std::string(name) + "::";
  for (auto at = config.lower_bound(prefix); at != config.end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    const std::string key = at->first.substr(prefix.size());
    if (key != "backend") out[key] = at->second;
  }
  return out;
}

}  // namespace corelane::scheduler
