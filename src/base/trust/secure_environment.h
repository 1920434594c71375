/// The one place that reads the environment.
#pragma once

#include <cstdlib>
#include <string>

namespace corelane {

/// The value of a variable; null where it is not set, and in a program that has more rights than
/// who started it (set-uid, set-gid, file capabilities): nobody may steer such a program by a path
/// or a module that the environment names. Valid until somebody changes the environment. As
/// std::getenv(), from any thread while none changes it.
inline const char* environment(const char* name) noexcept { return ::secure_getenv(name); }

/// The same as text; empty where environment() is null.
inline std::string environment_text(const char* name) {
  const char* value = environment(name);
  return value != nullptr ? value : "";
}

}  // namespace corelane
