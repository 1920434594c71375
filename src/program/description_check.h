/// What a program may say of itself: the rules that the writer and the reader of program files
/// share. Private to this room.
#pragma once

#include <span>

#include "corelane/base/status.h"
#include "corelane/program/description.h"

namespace corelane {

/// Ok when `d` is consistent, otherwise kInvalidArgument that names the entry, what it says and
/// what is allowed. Rules: docs/formats/program-file.md, "What a description must satisfy".
Status check_description(const ProgramDescription& d);

/// check_description() of each part of a file, named in front, and the rules on their names: where
/// there are several, each has one, and each is used once.
Status check_parts(std::span<const ProgramDescription> parts);

/// The ranks are equal, and so are the dimensions that both fix.
bool may_be_equal(const Shape& a, const Shape& b);

/// Whether a file with these descriptions is one of parts: its networks have names.
inline bool has_parts(std::span<const ProgramDescription> parts) {
  return !parts.empty() && !parts.front().part.empty();
}

/// The rules on a first network that is a chain of the others, each of which is right by itself.
/// kInvalidArgument names the part and the value. Implemented in chain_check.cpp.
Status check_chain(std::span<const ProgramDescription> parts);

/// Whether an input or output has, or reports, a type with is_opaque().
bool has_opaque_types(std::span<const ProgramDescription> parts);

/// Whether an input or output holds the flat form of a value.
bool has_values(std::span<const ProgramDescription> parts);

}  // namespace corelane
