// Any bytes as a program file. The mutator mends the checksums most of the time, so that the checks
// after them are reached.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "corelane/program/program_file.h"
#include "program/program_header.h"
#include "program/testing/program_copy.h"
#include "program/testing/program_surgery.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace corelane {
namespace {

namespace format = program;

/// A broken promise is a crash that libFuzzer reports.
void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "program_fuzz: %s\n", what);
  std::abort();
}

/// Checksums of the segments, where the header can be read and keeps its size.
void mend_segments(ByteVector& file) {
  if (file.size() < format::kFixedHeaderBytes) return;
  const std::size_t size =
      testing::read_at<std::uint32_t>(file, offsetof(format::FixedHeader, header_size));
  if (size > file.size() - format::kFixedHeaderBytes) return;
  auto decoded = decode_header(ByteSpan(file).subspan(format::kFixedHeaderBytes, size), "fuzz");
  if (!decoded) return;
  for (SegmentInfo& s : decoded->segments)
    if (const auto slice = checked_slice(file, s.offset, s.size, "segment"))
      s.crc32c = crc32c(*slice);
  const ByteVector header = encode_header(decoded->parts, decoded->segments);
  if (header.size() != size) return;
  std::memcpy(file.data() + format::kFixedHeaderBytes, header.data(), size);
}

void rewrite(const ProgramFile& file) {
  const auto again = testing::write_again(file);
  if (!again && again.error().code() == Code::kUnsupported) return;
  require(again.has_value(), "what was read of a verified file cannot be written");
  const auto reopened = ProgramFile::from_bytes(*again, nullptr, Verify::kEverything);
  require(reopened.has_value(), "a file that was written cannot be read");
  require(testing::same_descriptions(**reopened, file), "a description changed");
  for (std::size_t i = 0; i < file.part_count(); ++i) {
    const auto found = file.find_part(file.description(i).part);
    require(found.has_value() && *found == i, "a part is not found by its name");
    require(file.find(SegmentKind::kGraph, {}, i).has_value(), "a part has no network");
  }
}

}  // namespace
}  // namespace corelane

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace corelane;
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  const std::shared_ptr<const void> borrowed(data, [](const void*) {});
  const auto whole = ProgramFile::from_bytes(bytes, borrowed, Verify::kEverything);
  const auto header = ProgramFile::from_bytes(bytes, borrowed, Verify::kHeader);
  require(header.has_value() || !whole.has_value(), "the deeper check accepts more");
  if (header) {
    bool sound = true;
    for (std::size_t i = 0; i < (*header)->segments().size(); ++i)
      sound = sound && (*header)->segment(i).has_value();
    require(sound == whole.has_value(), "the two levels disagree on the segments");
    require(detect_file_kind(bytes) == FileKind::kProgram, "a program is not detected as one");
  }
  if (whole) rewrite(**whole);
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  using namespace corelane;
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 == 0) return size;
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  ByteVector file(bytes.begin(), bytes.end());
  if (seed % 8 < 4) mend_segments(file);
  corelane::testing::repair_header(file);
  std::memcpy(data, file.data(), file.size());
  return file.size();
}
