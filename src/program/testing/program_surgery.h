/// Changes to a program file's bytes that keep its checksums right, so that the checks after them
/// is reached. For tests.
#pragma once

#include <cstdint>
#include <cstring>

#include "corelane/base/bytes.h"
#include "program/program_format.h"

namespace corelane::testing {

template <class T>
T read_at(ByteSpan file, std::size_t at) {
  T value;
  std::memcpy(&value, file.data() + at, sizeof(T));
  return value;
}

template <class T>
void write_at(ByteVector& file, std::size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof(T));
}

/// The checksum of the 64 bytes alone.
inline void repair_fixed_header(ByteVector& file) {
  namespace format = program;
  if (file.size() < format::kFixedHeaderBytes) return;
  write_at(file, format::kFixedCrcAt, crc32c(ByteSpan(file).first(format::kFixedCrcAt)));
}

/// Size of the file, checksum of the description (as far as its size is possible) and of the 64
/// bytes.
inline void repair_header(ByteVector& file) {
  namespace format = program;
  if (file.size() < format::kFixedHeaderBytes) return;
  write_at(file, offsetof(format::FixedHeader, file_size), static_cast<std::uint64_t>(file.size()));
  const std::size_t size = read_at<std::uint32_t>(file, offsetof(format::FixedHeader, header_size));
  if (size <= file.size() - format::kFixedHeaderBytes) {
    write_at(file, offsetof(format::FixedHeader, header_crc32c),
             crc32c(ByteSpan(file).subspan(format::kFixedHeaderBytes, size)));
  }
  repair_fixed_header(file);
}

}  // namespace corelane::testing
