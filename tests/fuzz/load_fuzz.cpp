// Any bytes as a file that is loaded and run, on the engines: an error or a result. The mutator
// changes networks field by field and mends the checksums of program files.
#include <cstdint>
#include <cstring>

#include "mutant.h"
#include "mutant_trial.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace corelane;
  robustness::try_file(std::as_bytes(std::span(data, size)), size);
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  using namespace corelane;
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  ByteVector file(bytes.begin(), bytes.end());
  robustness::Mutator mutator(seed);
  robustness::mutate_file(file, ByteVector(bytes.begin(), bytes.end()), mutator);
  if (file.size() > max_size || file.empty()) return size;
  std::memcpy(data, file.data(), file.size());
  return file.size();
}
