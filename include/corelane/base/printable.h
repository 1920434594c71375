/// Writing out control characters in names and texts that come from models, clients, files and
/// other processes.
#pragma once

#include <string>

#include "corelane/base/api.h"

namespace corelane {

/// The text with each control character written out: \n, \r and \t by their letters, other bytes
/// below 0x20, 0x7f, and the code points U+0080 to U+009f and those that reorder a line (U+200e,
/// U+200f, U+2028 to U+202e, U+2066 to U+2069) as \xNN for each byte. A line of a log stays one
/// line, and a terminal obeys nothing in it. Any other byte stays as it is. Any thread.
CORELANE_API std::string printable(std::string text);

/// As printable(), but line ends and tabs stay: for a text of several lines that the library makes.
CORELANE_API std::string printable_lines(std::string text);

}  // namespace corelane
