#include "session/fork_guard.h"

namespace corelane::session {

Status forked_status(std::string_view what) {
  return error(Code::kWrongState,
               "{} before this process forked, and its threads stayed in the parent; start workers "
               "by spawn or exec (in Python: multiprocessing's 'spawn'), or fork before the first "
               "session is made",
               what);
}

}  // namespace corelane::session
