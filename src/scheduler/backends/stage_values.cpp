#include "scheduler/backends/stage_values.h"

#include <string>

#include "base/text_parts.h"
#include "scheduler/config/shown_text.h"

namespace corelane::scheduler {
namespace {

constexpr std::string_view kDivider = "||";

bool holds_backends(std::string_view key) { return key == "backend" || key.ends_with("::backend"); }

std::vector<std::string_view> divided(std::string_view value) {
  constexpr std::string_view kBlanks = " \t";
  std::vector<std::string_view> parts;
  // Up to the end, so that a value that ends with the divider has an empty last part, which is
  // refused.
  for (std::size_t at = 0; at <= value.size();) {
    const std::size_t end = std::min(value.find(kDivider, at), value.size());
    parts.push_back(trimmed(value.substr(at, end - at), kBlanks));
    at = end + kDivider.size();
  }
  return parts;
}

}  // namespace

Result<std::vector<Config>> stage_values(std::string_view name, const Config& config,
                                         std::size_t stages) {
  std::vector<Config> result(stages, config);
  for (const auto& [key, value] : config) {
    if (value.find(kDivider) == value.npos || holds_backends(key)) continue;
    const std::vector<std::string_view> parts = divided(value);
    if (parts.size() != stages)
      return error(Code::kInvalidArgument,
                   "key '{}': given {}, which is {} values; backend '{}' has {} stages, and '||' "
                   "divides one value for each",
                   key, shown(value), parts.size(), name, stages)
          .with(Detail::kKey, key)
          .with(Detail::kGiven, parts.size())
          .with(Detail::kAllowed, stages);
    for (std::size_t i = 0; i < stages; ++i) {
      if (parts[i].empty())
        return error(Code::kInvalidArgument,
                     "key '{}': given {}, whose value {} is empty; set the key of one stage as in "
                     "'{}[a({}=x)]'",
                     key, shown(value), i + 1, name, key)
            .with(Detail::kKey, key)
            .with(Detail::kGiven, value);
      result[i][key] = parts[i];
    }
  }
  return result;
}

}  // namespace corelane::scheduler
