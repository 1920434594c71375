/// The known name that somebody may have meant by one that does not exist.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "corelane/base/api.h"

namespace corelane {

/// The name of `known` with the fewest edits from `given`: a letter added, left out, replaced, or
/// two neighbours exchanged; letters in the other case count as equal. Of several the first. Empty
/// where all need more than a third of the letters of `given` (at least one edit is allowed).
CORELANE_API std::string nearest_name(std::string_view given, std::span<const std::string> known);

/// "; did you mean 'x'?", or empty: the end of a message about the unknown name `given`.
CORELANE_API std::string nearest_hint(std::string_view given, std::span<const std::string> known);

}  // namespace corelane
