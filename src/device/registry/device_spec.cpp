#include "base/text_parts.h"
#include "corelane/device/registry.h"
#include "device/registry/device_profile.h"
#include "device/registry/driver_table.h"

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

constexpr std::string_view kBlanks = " \t\n";

/// The text that is the device's key, as far as it can be told without loading a module; one that
/// cannot be opened stays as it is.
std::string key_of(const DeviceSpec& spec) {
  for (const DriverRow& row : driver_table()) {
    if (row.describe().kind != spec.kind) continue;
    const auto completed = complete(row.describe(), spec);
    if (completed) return completed->to_string();
  }
  return spec.to_string();
}

/// One text of a list, checked.
Status add_text(std::string_view text, std::string_view source, std::vector<std::string>& texts) {
  if (text.empty()) {
    return error(Code::kInvalidArgument,
                 "{}: device {} has no text; give device texts divided by ';', such as "
                 "'{}?name=left;{}?name=right'",
                 source, texts.size(), default_device(), default_device());
  }
  const auto spec = parse_device_spec(text);
  if (!spec) return spec.error().wrap(fmt::format("{}, device {}", source, texts.size()));
  const std::string key = key_of(*spec);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto other = parse_device_spec(texts[i]);
    if (!other || key_of(*other) != key) continue;
    DeviceSpec named = *spec;
    named.options["name"] = "second";
    return error(Code::kInvalidArgument,
                 "{}: devices {} and {} are both '{}', which is one device; give each a name, such "
                 "as '{}'",
                 source, i, texts.size(), key, named.to_string());
  }
  texts.emplace_back(text);
  return {};
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

Result<std::vector<std::string>> parse_device_list(std::string_view list, std::string_view source) {
  std::vector<std::string> texts;
  list = trimmed(list, kBlanks);
  if (list.empty()) return texts;
  // A ';' at the end does not begin another device.
  if (list.ends_with(';')) list.remove_suffix(1);
  CORELANE_TRY(for_each_part(list, ';', [&](std::string_view text) {
    return add_text(trimmed(text, kBlanks), source, texts);
  }));
  return texts;
}

}  // namespace corelane::device
