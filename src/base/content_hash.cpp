#include <fmt/core.h>
#include <xxhash.h>

#include "corelane/base/bytes.h"

namespace corelane {

std::string content_hash(ByteSpan bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace corelane
