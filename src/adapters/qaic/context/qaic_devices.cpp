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
  const std::string_view list = variable == nullptr ? "" : variable;
  CORELANE_ASSIGN(auto texts, device::parse_device_list(list, kVariable));
  if (texts.empty()) texts.emplace_back(kDefault);
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
    // Whatever fails, callers of the API see QS_NODEV, and the reason in the text.
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
