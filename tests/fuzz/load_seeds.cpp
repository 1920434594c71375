// Gives the target load_fuzz each of its seeds once, without libFuzzer: load_seeds <folder>.
#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "corelane/base/file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  int count = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(argc == 2 ? argv[1] : "", ignored)) {
    const auto bytes = corelane::read_file(entry.path());
    if (!bytes) continue;
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes->data()), bytes->size());
    ++count;
  }
  std::printf("%d seeds loaded and run\n", count);
  return count > 0 ? 0 : 1;
}
