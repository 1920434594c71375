/// How deeply a program file is verified.
#pragma once

#include <cstdint>

namespace corelane {

/// How deeply a file is verified when opened.
enum class Verify : std::uint8_t {
  kHeader,      ///< Header, descriptors, segment table; segments' CRC when first read.
  kEverything,  ///< And the CRC of every segment.
};

}  // namespace corelane
