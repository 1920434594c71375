#include "base/trust/environment_switch.h"

#include <string_view>

#include "base/trust/secure_environment.h"
#include "corelane/base/log.h"

namespace corelane {

bool EnvironmentSwitch::on() noexcept {
  const char* const given = environment(name_);
  const std::string_view value = given == nullptr ? "" : given;
  if (value.empty()) return by_default_;
  if (value == "0" || value == "1") return value == "1";
  if (!told_.exchange(true))
    log::warn("base", "{} is '{}'; allowed are 0 and 1; using {}", name_, value,
              by_default_ ? 1 : 0);
  return by_default_;
}

}  // namespace corelane
