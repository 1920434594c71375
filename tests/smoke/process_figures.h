/// Memory, descriptors and threads of this process, as the kernel counts them.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

namespace corelane::testing {

struct ProcessFigures {
  std::size_t resident_kb = 0;  ///< Anonymous memory: what the heap holds, without mapped files.
  std::size_t fds = 0;
  std::size_t threads = 0;
};

inline std::size_t entries_of(const char* folder) {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(folder)) ++n;
  return n;
}

inline ProcessFigures process_figures() {
  ::malloc_trim(0);
  ProcessFigures figures;
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    if (key == "RssAnon:") status >> figures.resident_kb;
    std::getline(status, key);
  }
  figures.fds = entries_of("/proc/self/fd") - 1;  // The listing's own.
  figures.threads = entries_of("/proc/self/task");
  return figures;
}

}  // namespace corelane::testing
