#include "cli/qaic/vendor_container.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

namespace corelane::cli {
namespace {

constexpr std::uint32_t kMagic = 0x00A1CD7C;
// Bytes: the magic number (4), version (1 and 1), compression (2); size, base address, number and
// address of the segments (8 each).
constexpr std::size_t kHeaderBytes = 40;
// Bytes: size, division, address of the name, address of the content (8 each).
constexpr std::size_t kSegmentBytes = 32;
constexpr std::string_view kConstants = "constants.bin";

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kMeanings{{
    {"network.elf", "the network's code"},
    {"networkdesc.bin", "its inputs, outputs and transforms"},
    {"constants.bin", "constants"},
    {"constantsdesc.bin", "where the constants go"},
    {"network.elf.crc", "checksum of the code"},
    {"constants.bin.crc", "checksum of the constants"},
    {"mdp_meta_info", "the parts of a program for several devices"},
}};

/// A piece of the file, for the check that no two overlap.
struct Piece {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string what;
};

/// The fixed part of the file.
struct Header {
  VendorContainer container;
  std::uint64_t base = 0;
  std::uint64_t count = 0;
  std::uint64_t array = 0;
};

Status malformed(const std::string& text) {
  return error(Code::kMalformed,
               "the vendor's container is damaged: {}; compile its ONNX model again", text);
}

/// Where an address lies in the file. A wrong base makes the subtraction wrap; the bounds check of
/// the result refuses that.
std::uint64_t place(std::uint64_t address, std::uint64_t base) { return address - base; }

Result<Header> read_header(ByteSpan bytes) {
  if (!is_vendor_container(bytes))
    return error(Code::kForeignImage, "this is not a container of the vendor's compiler");
  if (bytes.size() < kHeaderBytes)
    return error(
        malformed(fmt::format("a header has {} bytes, there are {}", kHeaderBytes, bytes.size())));
  ByteReader reader(bytes.first(kHeaderBytes));
  Header h;
  CORELANE_ASSIGN([[maybe_unused]] const auto magic, reader.read<std::uint32_t>());
  CORELANE_ASSIGN(h.container.major, reader.read<std::uint8_t>());
  CORELANE_ASSIGN(h.container.minor, reader.read<std::uint8_t>());
  CORELANE_ASSIGN(h.container.compression, reader.read<std::uint16_t>());
  CORELANE_ASSIGN(h.container.size, reader.read<std::uint64_t>());
  CORELANE_ASSIGN(h.base, reader.read<std::uint64_t>());
  CORELANE_ASSIGN(h.count, reader.read<std::uint64_t>());
  CORELANE_ASSIGN(const auto array, reader.read<std::uint64_t>());
  h.array = place(array, h.base);
  return h;
}

Status check_header(const Header& h, std::size_t bytes) {
  const VendorContainer& c = h.container;
  if (c.major != 0) {
    return error(Code::kVersionMismatch,
                 "the vendor's container has version {}.{}; 0.1 is known here", c.major, c.minor);
  }
  if (c.compression > 1)
    return malformed(fmt::format("compression {}, allowed are 0 and 1", c.compression));
  if (c.size < kHeaderBytes || c.size > bytes)
    return malformed(fmt::format("it says that it has {} bytes, there are {}", c.size, bytes));
  if (h.count > VendorContainer::kMostSegments) {
    return malformed(
        fmt::format("{} segments, at most {}", h.count, VendorContainer::kMostSegments));
  }
  return {};
}

/// The text up to its 0, which has to come.
Result<std::string> read_name(ByteSpan bytes, std::uint64_t at, std::size_t index) {
  if (at >= bytes.size()) {
    return error(malformed(fmt::format("the name of segment {} at {} lies outside of {} bytes",
                                       index, at, bytes.size())));
  }
  const std::string_view rest =
      as_string_view(bytes.subspan(at)).substr(0, VendorContainer::kMostName + 1);
  const std::size_t length = rest.find('\0');
  if (length == rest.npos || length == 0) {
    return error(
        malformed(fmt::format("the name of segment {} is empty, has no end, or more than {} bytes",
                              index, VendorContainer::kMostName)));
  }
  return std::string(rest.substr(0, length));
}

std::string_view meaning_of(std::string_view name) {
  for (const auto& [known, meaning] : kMeanings)
    if (known == name) return meaning;
  return {};
}

Result<VendorSegment> read_segment(ByteSpan bytes, const Header& h, ByteSpan entry,
                                   std::size_t index, std::vector<Piece>& pieces) {
  ByteReader reader(entry);
  VendorSegment s;
  CORELANE_ASSIGN(s.size, reader.read<std::uint64_t>());
  CORELANE_ASSIGN(s.split, reader.read<std::uint64_t>());
  CORELANE_ASSIGN(const auto name, reader.read<std::uint64_t>());
  CORELANE_ASSIGN(const auto start, reader.read<std::uint64_t>());
  const std::uint64_t name_at = place(name, h.base);
  CORELANE_ASSIGN(s.name, read_name(bytes, name_at, index));
  s.at = place(start, h.base);
  s.meaning = meaning_of(s.name);
  if (!checked_slice(bytes, s.at, s.size, "segment")) {
    return error(malformed(fmt::format("segment '{}' at {} with {} bytes leaves the {} there are",
                                       s.name, s.at, s.size, bytes.size())));
  }
  if (s.name == kConstants && s.split > s.size) {
    return error(malformed(
        fmt::format("segment '{}' is divided at {}, but has {} bytes", s.name, s.split, s.size)));
  }
  pieces.push_back({name_at, name_at + s.name.size() + 1, fmt::format("the name '{}'", s.name)});
  if (s.size > 0) pieces.push_back({s.at, s.at + s.size, fmt::format("segment '{}'", s.name)});
  return s;
}

Status check_overlap(std::vector<Piece>& pieces) {
  std::ranges::sort(pieces, {}, &Piece::begin);
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    if (pieces[i].begin >= pieces[i - 1].end) continue;
    return malformed(fmt::format("{} and {} overlap", pieces[i - 1].what, pieces[i].what));
  }
  return {};
}

}  // namespace

bool is_vendor_container(ByteSpan bytes) noexcept {
  std::uint32_t magic = 0;
  if (bytes.size() < sizeof magic) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == kMagic;
}

Result<VendorContainer> VendorContainer::read(ByteSpan bytes) {
  CORELANE_ASSIGN(Header h, read_header(bytes));
  CORELANE_TRY(check_header(h, bytes.size()));
  // What follows the container in the file is not its own.
  bytes = bytes.first(h.container.size);
  // No overflow: check_header() has bounded the number.
  const std::uint64_t table = h.count * kSegmentBytes;
  const auto entries = checked_slice(bytes, h.array, table, "segments");
  if (!entries) {
    return error(malformed(fmt::format("{} segments at {} leave the {} bytes there are", h.count,
                                       h.array, bytes.size())));
  }
  std::vector<Piece> pieces{{0, kHeaderBytes, "the header"}};
  if (table > 0) pieces.push_back({h.array, h.array + table, "the table of segments"});
  std::set<std::string> names;
  for (std::size_t i = 0; i < h.count; ++i) {
    const ByteSpan entry = entries->subspan(i * kSegmentBytes, kSegmentBytes);
    CORELANE_ASSIGN(VendorSegment s, read_segment(bytes, h, entry, i, pieces));
    if (!names.insert(s.name).second)
      return error(malformed(fmt::format("two segments are named '{}'", s.name)));
    h.container.segments.push_back(std::move(s));
  }
  CORELANE_TRY(check_overlap(pieces));
  return std::move(h.container);
}

}  // namespace corelane::cli
