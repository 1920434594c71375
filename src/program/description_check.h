/// What a program may say of itself: the rules that the writer and the reader of program files
/// share. Private to this room.
#pragma once

#include "corelane/base/status.h"
#include "corelane/program/description.h"

namespace corelane {

/// Ok when `d` is consistent, otherwise kInvalidArgument that names the entry, what it says and
/// what is allowed. Rules: docs/formats/program-file.md, "What a description must satisfy".
Status check_description(const ProgramDescription& d);

}  // namespace corelane
