#include "base/trust/file_names.h"

#include <dirent.h>

#include <memory>
#include <string_view>

namespace corelane {

std::vector<std::string> file_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  constexpr auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> open(::opendir(folder.c_str()));
  if (open == nullptr) return names;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

}  // namespace corelane
