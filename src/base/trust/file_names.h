/// What is in a folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "corelane/base/api.h"

namespace corelane {

/// The names of what is in `folder`, in no order; none where it cannot be read. Unlike
/// std::filesystem::directory_iterator, which ends the process, it throws std::bad_alloc where
/// memory has run out. Any thread.
CORELANE_API std::vector<std::string> file_names(const std::filesystem::path& folder);

}  // namespace corelane
