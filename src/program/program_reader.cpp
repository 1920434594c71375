#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>

#include "base/guard.h"
#include "corelane/base/file.h"
#include "corelane/program/program_file.h"
#include "program/program_format.h"
#include "program/program_header.h"
#include "program/program_segments.h"

namespace corelane {

namespace format = program;

namespace {

/// Whether a segment's checksum holds, found out once.
struct SegmentCheck {
  std::once_flag once;
  std::uint32_t computed = 0;
};

/// A copy of bytes from memory, aligned as a mapping is, so that constants may be used in place.
struct AlignedCopy {
  static constexpr std::align_val_t kAlignment{format::kConstantsAlignment};
  explicit AlignedCopy(std::byte* p) : data(p) {}
  AlignedCopy(const AlignedCopy&) = delete;
  AlignedCopy& operator=(const AlignedCopy&) = delete;
  ~AlignedCopy() { ::operator delete(data, kAlignment); }
  std::byte* data;
};

Result<std::shared_ptr<const AlignedCopy>> copy_aligned(ByteSpan bytes) {
  void* memory =
      ::operator new(std::max<std::size_t>(bytes.size(), 1), AlignedCopy::kAlignment, std::nothrow);
  if (memory == nullptr)
    return error(Code::kOutOfMemory, "no memory for a copy of a program of {} bytes", bytes.size());
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  return std::make_shared<const AlignedCopy>(static_cast<std::byte*>(memory));
}

/// Refuses what is not ours, with the way out.
Status check_kind(ByteSpan bytes, std::string_view name, std::string_view argument,
                  std::span<const ForeignMagic> foreign) {
  switch (detect_file_kind(bytes, foreign)) {
    case FileKind::kProgram:
      return {};
    case FileKind::kOnnx:
      return error(Code::kMalformed,
                   "{} is an ONNX model, not a program file: compile it with `corelane compile "
                   "{} -o model.rknn`",
                   name, argument);
    case FileKind::kVendor:
      return error(Code::kForeignImage,
                   "{} is a vendor-compiled image, which only the vendor's runtime understands: "
                   "select that device (CORELANE_DEVICE={}), or compile the ONNX model it came "
                   "from with `corelane compile model.onnx -o model.rknn`",
                   name, find_foreign(bytes, foreign)->kind);
    case FileKind::kVendorCrypted:
      return error(Code::kForeignImage,
                   "{} is an encrypted vendor-compiled image, which only the vendor's runtime on "
                   "its board opens: compile the ONNX model it came from with `corelane compile "
                   "model.onnx -o model.rknn`",
                   name);
    case FileKind::kUnknown:
      break;
  }
  return error(Code::kMalformed,
               "{} ({} bytes) is not a program file: it does not begin with {} {}; write one with "
               "`corelane compile model.onnx -o model.rknn`",
               name, bytes.size(), format::kMagic, format::kTag);
}

}  // namespace

struct ProgramFile::Impl {
  std::string name;
  ByteSpan bytes;
  std::shared_ptr<const void> owner;
  ProgramDescription description;
  std::vector<SegmentInfo> segments;
  std::unique_ptr<SegmentCheck[]> checks;
  std::string content_key;

  ByteSpan span(const SegmentInfo& s) const {
    return bytes.subspan(static_cast<std::size_t>(s.offset), static_cast<std::size_t>(s.size));
  }

  Status corrupted(const SegmentInfo& s, std::uint32_t computed) const {
    return error(Code::kCorrupted,
                 "{}: the {} segment of {} bytes at {} has CRC-32C {:08x}, stored is {:08x}: copy "
                 "the file again, or write it again with `corelane compile model.onnx -o "
                 "model.rknn`",
                 name, segment_kind_name(s.kind), s.size, s.offset, computed, s.crc32c);
  }

  /// Of bytes that check_kind() took.
  Status parse() {
    CORELANE_ASSIGN(const auto fixed, format::decode_fixed_header(bytes, name));
    const ByteSpan header = bytes.subspan(format::kFixedHeaderBytes, fixed.header_size);
    if (const std::uint32_t computed = crc32c(header); computed != fixed.header_crc32c) {
      return error(Code::kCorrupted,
                   "{}: its description has CRC-32C {:08x}, stored is {:08x}: copy the file "
                   "again, or write it again with `corelane compile model.onnx -o model.rknn`",
                   name, computed, fixed.header_crc32c);
    }
    CORELANE_ASSIGN(DecodedHeader decoded, decode_header(header, name));
    const std::size_t begin = format::kFixedHeaderBytes + fixed.header_size;
    Status places = check_segment_kinds(decoded.segments, fixed.newer());
    if (places.ok()) places = check_segment_places(decoded.segments, bytes, begin);
    if (!places.ok()) {
      return places.wrap(Code::kMalformed,
                         fmt::format("{}: its segment table is not valid: write it again with "
                                     "`corelane compile model.onnx -o model.rknn`",
                                     name));
    }
    description = std::move(decoded.description);
    segments = std::move(decoded.segments);
    checks = std::make_unique<SegmentCheck[]>(segments.size());
    content_key = content_hash(bytes.first(begin));
    return {};
  }
};

namespace {

Status verify_all(const ProgramFile& file) {
  for (std::size_t i = 0; i < file.segments().size(); ++i)
    if (auto segment = file.segment(i); !segment) return segment.error();
  return {};
}

}  // namespace

ProgramFile::ProgramFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ProgramFile::~ProgramFile() = default;

Result<std::shared_ptr<const ProgramFile>> ProgramFile::open(
    const std::filesystem::path& path, Verify verify, std::span<const ForeignMagic> foreign) {
  const std::string name = fmt::format("'{}'", path.string());
  return no_throw(name, [&]() -> Result<std::shared_ptr<const ProgramFile>> {
    CORELANE_ASSIGN(MappedFile mapped, MappedFile::open(path));
    auto owner = std::make_shared<const MappedFile>(std::move(mapped));
    auto impl = std::make_unique<Impl>();
    impl->name = name;
    impl->bytes = owner->bytes();
    impl->owner = owner;
    CORELANE_TRY(check_kind(impl->bytes, name, path.string(), foreign));
    CORELANE_TRY(impl->parse());
    std::shared_ptr<const ProgramFile> file(new ProgramFile(std::move(impl)));
    if (verify == Verify::kEverything) CORELANE_TRY(verify_all(*file));
    return file;
  });
}

Result<std::shared_ptr<const ProgramFile>> ProgramFile::from_bytes(
    ByteSpan bytes, std::shared_ptr<const void> keep_alive, Verify verify,
    std::span<const ForeignMagic> foreign) {
  constexpr std::string_view kName = "the program in memory";
  return no_throw(kName, [&]() -> Result<std::shared_ptr<const ProgramFile>> {
    auto impl = std::make_unique<Impl>();
    impl->name = kName;
    impl->bytes = bytes;
    impl->owner = std::move(keep_alive);
    // Checked before it is copied: what is not a program file costs no memory.
    CORELANE_TRY(check_kind(bytes, kName, "model.onnx", foreign));
    if (impl->owner == nullptr) {
      CORELANE_ASSIGN(auto copy, copy_aligned(bytes));
      impl->bytes = {copy->data, bytes.size()};
      impl->owner = std::move(copy);
    }
    CORELANE_TRY(impl->parse());
    std::shared_ptr<const ProgramFile> file(new ProgramFile(std::move(impl)));
    if (verify == Verify::kEverything) CORELANE_TRY(verify_all(*file));
    return file;
  });
}

const ProgramDescription& ProgramFile::description() const noexcept { return impl_->description; }
const std::vector<SegmentInfo>& ProgramFile::segments() const noexcept { return impl_->segments; }
std::size_t ProgramFile::file_size() const noexcept { return impl_->bytes.size(); }
ByteSpan ProgramFile::bytes() const noexcept { return impl_->bytes; }
const std::string& ProgramFile::content_key() const noexcept { return impl_->content_key; }

Result<ByteSpan> ProgramFile::segment(std::size_t index) const {
  if (index >= impl_->segments.size()) {
    return error(Code::kOutOfRange, "{}: segment {} of {}", impl_->name, index,
                 impl_->segments.size());
  }
  const SegmentInfo& info = impl_->segments[index];
  const ByteSpan content = impl_->span(info);
  SegmentCheck& check = impl_->checks[index];
  std::call_once(check.once, [&] { check.computed = crc32c(content); });
  if (check.computed != info.crc32c) return error(impl_->corrupted(info, check.computed));
  return content;
}

Result<std::optional<ByteSpan>> ProgramFile::find(SegmentKind kind, std::string_view tag) const {
  for (std::size_t i = 0; i < impl_->segments.size(); ++i) {
    const SegmentInfo& s = impl_->segments[i];
    if (s.kind != kind || (!tag.empty() && s.tag != tag)) continue;
    CORELANE_ASSIGN(const ByteSpan content, segment(i));
    return std::optional<ByteSpan>(content);
  }
  return std::optional<ByteSpan>();
}

}  // namespace corelane
