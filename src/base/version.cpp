#include "corelane/base/api.h"

namespace corelane {

const char* version() noexcept { return CORELANE_VERSION_STRING; }

}  // namespace corelane
