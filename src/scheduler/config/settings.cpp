#include "scheduler/config/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/nearest_name.h"
#include "scheduler/config/key_table.h"
#include "scheduler/config/settings_reader.h"

namespace corelane::scheduler {
namespace {

std::vector<std::string> live_keys() {
  std::vector<std::string> names;
  for (const Key& key : key_table())
    if (key.live) names.emplace_back(key.name);
  return names;
}

Failure not_live(const std::string& name, const std::string& given, const KeyErrors& errors) {
  const std::vector<std::string> live = live_keys();
  const std::string nearest = nearest_name(name, live);
  return errors.refuse(name, given, fmt::format("a change of {}", fmt::join(live, ", ")),
                       find_key(name) == nullptr && !nearest.empty()
                           ? fmt::format("the nearest key is '{}': correct the name", nearest)
                           : std::string("make a new pipeline for other changes"));
}

/// Other lists may have made the groups: a short one repeats its last part for each.
void repeat_last(Config& config, const std::string& key, std::size_t groups) {
  const auto found = config.find(key);
  if (found == config.end()) return;
  std::string& value = found->second;
  const std::string last = value.substr(value.rfind('&') + 1);
  for (auto parts = static_cast<std::size_t>(std::ranges::count(value, '&')) + 1; parts < groups;
       ++parts)
    value += "&" + last;
}

}  // namespace

Result<NodeSettings> read_settings(const Config& config, const BackendRegistry& registry) {
  return read_settings(config, registry, KeyErrors());
}

Result<NodeSettings> change_settings(const NodeSettings& settings, const Config& changes,
                                     const BackendRegistry& registry) {
  // Without places: changes come from a call, not from a file.
  const KeyErrors errors;
  Config merged = settings.settings;
  for (const auto& [name, value] : changes) {
    const Key* key = find_key(name);
    if (key == nullptr || !key->live) return not_live(name, value, errors);
    merged.insert_or_assign(name, value);
  }
  repeat_last(merged, "instance_num", settings.groups.size());
  CORELANE_ASSIGN(NodeSettings changed, read_settings(merged, registry, errors));
  if (changed.groups.size() != settings.groups.size())
    return errors.refuse("instance_num", merged.at("instance_num"),
                         fmt::format("1 to {} parts, as there are groups", settings.groups.size()),
                         "make a new pipeline for other groups");
  // The name is no setting, so that reading them anew gives the default one.
  changed.name = settings.name;
  return changed;
}

}  // namespace corelane::scheduler
