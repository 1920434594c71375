#include "corelane/base/api.h"

// The library's own object; everything else comes whole from the static libraries of the floors.
static_assert(CORELANE_VERSION_MAJOR == 0, "the SONAME carries the major version");
