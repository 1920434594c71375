#include "adapters/ggml/plugin/ggml_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace corelane::ggml {

std::size_t available_memory(const char* meminfo, std::size_t total) {
  std::ifstream file(meminfo);
  std::string name;
  std::size_t kilobytes = 0;
  while (file >> name >> kilobytes) {
    if (name == "MemAvailable:") return std::min(total, kilobytes * 1024);
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return total;
}

}  // namespace corelane::ggml
