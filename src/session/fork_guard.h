/// How a forked child refuses the sessions and calls of its parent.
#pragma once

#include <string_view>

#include "corelane/base/status.h"

namespace corelane::session {

/// kWrongState: `what` ("the session was made") before this process forked.
Status forked_status(std::string_view what);

}  // namespace corelane::session
