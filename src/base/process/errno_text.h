/// What the system's error numbers mean.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace corelane {

/// The system's text for an error number, by default that of the last call that failed: "No such
/// file or directory". Any thread.
inline std::string errno_text(int number = errno) {
  return std::generic_category().message(number);
}

}  // namespace corelane
