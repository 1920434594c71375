/// Symbol visibility of the public interface. Everything else in the library is hidden.
#pragma once

#if __cplusplus < 202002L
#error "Corelane needs C++20: compile with -std=c++20"
#endif

#define CORELANE_API [[gnu::visibility("default")]]

/// Version of this source tree; `corelane::version()` is that of the library in the process.
#define CORELANE_VERSION_MAJOR 0
#define CORELANE_VERSION_MINOR 3
#define CORELANE_VERSION_PATCH 0
#define CORELANE_VERSION_STRING "0.3.0"

namespace corelane {

/// The version of the library that is loaded, such as "0.3.0". Any thread.
CORELANE_API const char* version() noexcept;

}  // namespace corelane
