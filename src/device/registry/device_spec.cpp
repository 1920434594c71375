#include "corelane/device/registry.h"

namespace corelane::device {
namespace {

std::string example() {
  return fmt::format("write kind[:profile][?key=value&...], for instance {}?name=left",
                     default_device());
}

bool is_word(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-')) return false;
  return true;
}

}  // namespace

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
  if (question == text.size()) return spec;
  const std::string_view tail = text.substr(question + 1);
  for (std::size_t at = 0; at <= tail.size();) {
    const std::size_t end = std::min(tail.find('&', at), tail.size());
    const std::string_view token = tail.substr(at, end - at);
    const std::size_t equals = token.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return error(Code::kInvalidArgument, "device '{}': '{}' is not key=value; {}", text, token,
                   example());
    const std::string key(token.substr(0, equals));
    if (!spec.options.emplace(key, token.substr(equals + 1)).second)
      return error(Code::kInvalidArgument, "device '{}': option '{}' is given twice; {}", text, key,
                   example());
    at = end + 1;
  }
  return spec;
}

}  // namespace corelane::device
