/// Texts of users in messages.
#pragma once

#include <string>
#include <string_view>

namespace corelane::scheduler {

/// `text` between two `quote`, on one line and at most some 80 characters: control characters and
/// bytes that are not UTF-8 as \xNN, and "..." where something was left out.
std::string shown(std::string_view text, char quote = '"');

}  // namespace corelane::scheduler
