#include "base/text_parts.h"
#include "corelane/device/registry.h"

namespace corelane::device {
namespace {

std::string example() {
  return fmt::format("write kind[:profile][?key=value&...], for instance {}?name=left",
                     default_device());
}

bool is_word(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
}

}  // namespace

/// Options in the order of their keys: texts of equal devices are equal, and serve as keys.
std::string DeviceSpec::to_string() const {
  std::string text = kind;
  if (!profile.empty()) text += ":" + profile;
  char separator = '?';
  for (const auto& [key, value] : options) {
    text += separator + key + "=" + value;
    separator = '&';
  }
  return text;
}

Result<DeviceSpec> parse_device_spec(std::string_view text) {
  DeviceSpec spec;
  // The first '?' ends the head; values may hold any character but '&'.
  const std::size_t question = std::min(text.find('?'), text.size());
  const std::string_view head = text.substr(0, question);
  const std::size_t colon = head.find(':');
  spec.kind = head.substr(0, colon);
  if (!is_word(spec.kind))
    return error(Code::kInvalidArgument, "device '{}' has no kind; {}", text, example());
  if (colon != std::string_view::npos) {
    spec.profile = head.substr(colon + 1);
    if (spec.profile.empty())
      return error(Code::kInvalidArgument, "device '{}' has an empty profile; {}", text, example());
  }
  // Without a '?'; one with nothing after it is refused below.
  if (question == text.size()) return spec;
  CORELANE_TRY(for_each_part(text.substr(question + 1), '&', [&](std::string_view token) -> Status {
    const std::size_t equals = token.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return error(Code::kInvalidArgument, "device '{}': '{}' is not key=value; {}", text, token,
                   example());
    const std::string key(token.substr(0, equals));
    if (!spec.options.emplace(key, token.substr(equals + 1)).second)
      return error(Code::kInvalidArgument, "device '{}': option '{}' is given twice; {}", text, key,
                   example());
    return {};
  }));
  return spec;
}

}  // namespace corelane::device
