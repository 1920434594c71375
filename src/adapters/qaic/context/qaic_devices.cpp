#include "adapters/qaic/context/qaic_devices.h"

#include <string_view>
#include <utility>

#include "base/leaked.h"
#include "base/sync.h"
#include "base/trust/secure_environment.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"

namespace corelane::qaic {
namespace {

constexpr const char* kVariable = "CORELANE_QAIC_DEVICES";
constexpr std::string_view kDefault = "virtual:aic100";

/// What set_devices() gave; used while it is not empty.
struct Given {
  Mutex mutex{LockRank::kLeaf};
  std::vector<std::shared_ptr<device::Device>> devices CORELANE_GUARDED_BY(mutex);

  std::vector<std::shared_ptr<device::Device>> get() {
    const MutexLock lock(mutex);
    return devices;
  }
};
Given& given() {
  static Leaked<Given> given;
  return *given;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

/// One text of the list, checked. Two equal texts would be one device with two numbers.
Status add_text(std::string_view text, std::vector<std::string>& texts) {
  if (text.empty()) {
    return error(Code::kInvalidArgument,
                 "{}: device {} has no text; give device texts divided by ';', such as "
                 "'virtual:aic100?name=left;virtual:aic100?name=right'",
                 kVariable, texts.size());
  }
  auto spec = device::parse_device_spec(text);
  if (!spec) return spec.error().wrap(fmt::format("{}, device {}", kVariable, texts.size()));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto other = device::parse_device_spec(texts[i]);
    const bool same = other && other->kind == spec->kind && other->profile == spec->profile &&
                      other->options == spec->options;
    if (!same) continue;
    return error(Code::kInvalidArgument,
                 "{}: devices {} and {} are both '{}', which is one device; give each a name, such "
                 "as '{}{}name=second'",
                 kVariable, i, texts.size(), texts[i], texts[i], spec->options.empty() ? '?' : '&');
  }
  texts.emplace_back(text);
  return {};
}

Status no_such(QID number, std::size_t count) {
  const std::string there =
      count == 1 ? "the only one is 0" : fmt::format("there are 0 to {}", count - 1);
  return error(Code::kNotFound, "no device {}; {} (the list is {})", number, there, kVariable);
}

bool is_number(QID number, std::size_t count) {
  return number >= 0 && static_cast<std::size_t>(number) < count;
}

}  // namespace

Result<std::vector<std::string>> device_texts() {
  if (const auto devices = given().get(); !devices.empty()) {
    std::vector<std::string> names;
    for (const auto& device : devices) names.push_back(device->info().instance);
    return names;
  }
  const char* const variable = environment(kVariable);
  std::string_view rest = variable == nullptr ? "" : trimmed(variable);
  if (rest.empty()) rest = kDefault;
  // A ';' at the end does not begin another device.
  if (rest.ends_with(';')) rest.remove_suffix(1);
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin <= rest.size();) {
    const auto end = std::min(rest.find(';', begin), rest.size());
    CORELANE_TRY(add_text(trimmed(rest.substr(begin, end - begin)), texts));
    begin = end + 1;
  }
  return texts;
}

Result<std::shared_ptr<device::Device>> open_device(QID number) {
  if (const auto devices = given().get(); !devices.empty()) {
    if (!is_number(number, devices.size())) return error(no_such(number, devices.size()));
    return devices[static_cast<std::size_t>(number)];
  }
  auto texts = device_texts();
  if (!texts)
    return error(texts.error().wrap(Code::kNotFound, fmt::format("no device {}", number)));
  if (!is_number(number, texts->size())) return error(no_such(number, texts->size()));
  const std::string& text = (*texts)[static_cast<std::size_t>(number)];
  // The registry shares one device among all that open the text, other APIs of the process too.
  auto device = device::open_device(text);
  if (!device) {
    return error(device.error().wrap(
        Code::kNotFound,
        fmt::format("device {} ('{}') cannot be opened; correct {}", number, text, kVariable)));
  }
  return device;
}

bool takes_leases(QID number) {
  if (!given().get().empty()) return false;
  const auto texts = device_texts();
  if (!texts || !is_number(number, texts->size())) return false;
  const auto spec = device::parse_device_spec((*texts)[static_cast<std::size_t>(number)]);
  if (!spec) return false;
  const auto lease = spec->options.find("lease");
  return lease != spec->options.end() && lease->second == "1";
}

Outcome device_outcome(Status status) {
  if (status.code() == Code::kNotFound) return {QS_NODEV, std::move(status)};
  return status;
}

void set_devices(std::vector<std::shared_ptr<device::Device>> devices) {
  // What was there is closed without the lock.
  const MutexLock lock(given().mutex);
  given().devices.swap(devices);
}

}  // namespace corelane::qaic
