/// Containers in the form of the vendor's compiler, with generated content: what the reader of them
/// is tried on.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "corelane/base/bytes.h"

namespace corelane::robustness {

struct ContainerPart {
  std::string name;
  std::size_t size = 0;
  std::uint64_t split = 0;
};

/// The writer's memory lay at `base`; names come before the segments' bytes, each at a multiple
/// of 8.
inline ByteVector vendor_container(const std::vector<ContainerPart>& parts, std::uint64_t base) {
  ByteVector file;
  const auto put = [&](std::uint64_t value, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i)
      file.push_back(static_cast<std::byte>(value >> (8 * i)));
  };
  const auto aligned = [](std::uint64_t n) { return (n + 7) / 8 * 8; };
  std::uint64_t at = 40 + 32 * parts.size();
  std::vector<std::uint64_t> names, starts;
  for (const ContainerPart& part : parts) {
    names.push_back(at);
    at = aligned(at + part.name.size() + 1);
  }
  for (const ContainerPart& part : parts) {
    starts.push_back(at);
    at = aligned(at + part.size);
  }
  put(0x00A1CD7C, 4);
  put(0, 1);
  put(1, 1);
  put(1, 2);
  put(at, 8);
  put(base, 8);
  put(parts.size(), 8);
  put(base + 40, 8);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    put(parts[i].size, 8);
    put(parts[i].split, 8);
    put(base + names[i], 8);
    put(base + starts[i], 8);
  }
  file.resize(at);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::memcpy(file.data() + names[i], parts[i].name.data(), parts[i].name.size());
    for (std::size_t k = 0; k < parts[i].size; ++k)
      file[starts[i] + k] = static_cast<std::byte>(17 * i + k);
  }
  return file;
}

/// A small one, one with checksums and a base of 0, and one for several devices.
inline std::vector<ByteVector> vendor_containers() {
  return {vendor_container({{"network.elf", 96}, {"networkdesc.bin", 40}}, 0x7F0012345000),
          vendor_container({{"constants.bin", 200, 128},
                            {"constantsdesc.bin", 33},
                            {"networkdesc.bin", 57},
                            {"network.elf", 301},
                            {"network.elf.crc", 4},
                            {"constants.bin.crc", 4}},
                           0),
          vendor_container({{"mdp_meta_info", 24},
                            {"device0/network.elf", 64},
                            {"device1/network.elf", 65},
                            {"constants.bin", 0},
                            {"networkdesc.bin", 16}},
                           0xFFFFFFFFFFFF0000)};
}

}  // namespace corelane::robustness
