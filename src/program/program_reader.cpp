#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <new>

#include "base/guard.h"
#include "corelane/base/file.h"
#include "corelane/program/program_file.h"
#include "program/description_check.h"
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
  // A page, as a mapping has it.
  static constexpr std::align_val_t kAlignment{format::kConstantsAlignment};
  explicit AlignedCopy(std::byte* p) : data(p) {}
  AlignedCopy(const AlignedCopy&) = delete;
  AlignedCopy& operator=(const AlignedCopy&) = delete;
  ~AlignedCopy() { ::operator delete(data, kAlignment); }
  std::byte* data;
};

Result<std::shared_ptr<const AlignedCopy>> copy_aligned(ByteSpan bytes) {
  // The size is the caller's, so a lack of memory is an error to return, not to throw.
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
      CORELANE_TRY(check_foreign(bytes, *find_foreign(bytes, foreign), name));
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
  std::vector<ProgramDescription> parts;
  bool chain = false;
  std::vector<SegmentInfo> segments;
  // By segment; once_flag can be neither moved nor copied, hence no vector.
  std::unique_ptr<SegmentCheck[]> checks;
  std::string content_key;
  std::filesystem::path path;  ///< Absolute; empty for bytes from memory.
  FileIdentity identity;
  mutable std::atomic<std::int64_t> unchanged_at{0};  ///< `modified` of a file that was compared.

  /// Parses bytes that check_kind() took.
  Status parse() {
    CORELANE_ASSIGN(const auto fixed, format::decode_fixed_header(bytes, name));
    // decode_fixed_header() has made sure that the file has that many bytes.
    const ByteSpan header = bytes.subspan(format::kFixedHeaderBytes, fixed.header_size);
    if (const std::uint32_t computed = crc32c(header); computed != fixed.header_crc32c) {
      return error(
          Code::kCorrupted,
          "{}: its description has CRC-32C {:08x}, stored is {:08x}: copy the file again, or "
          "{}",
          name, computed, fixed.header_crc32c, format::kRecompile);
    }
    CORELANE_ASSIGN(DecodedHeader decoded, decode_header(header, name));
    const std::size_t begin = format::kFixedHeaderBytes + fixed.header_size;
    // Kinds before places, whose alignment depends on them.
    Status places =
        check_segment_kinds(decoded.segments, fixed.newer(), decoded.parts.size(), decoded.chain);
    if (places.ok()) places = check_segment_places(decoded.segments, bytes, begin);
    if (!places.ok()) {
      return places.wrap(Code::kMalformed, fmt::format("{}: its segment table is not valid: {}",
                                                       name, format::kRecompile));
    }
    // A reader before 1.3 goes by the flag, this one by the names: both must say the same.
    if (has_parts(decoded.parts) != ((fixed.flags & format::kHasParts) != 0)) {
      return error(Code::kMalformed, "{}: its flags 0x{:08x} do not fit its {} parts{}: {}", name,
                   fixed.flags, decoded.parts.size(),
                   has_parts(decoded.parts) ? " with names" : " without a name",
                   format::kRecompile);
    }
    if (has_opaque_types(decoded.parts) != ((fixed.flags & format::kHasOpaqueTypes) != 0)) {
      return error(Code::kMalformed, "{}: its flags 0x{:08x} do not fit its element types: {}",
                   name, fixed.flags, format::kRecompile);
    }
    if (has_values(decoded.parts) != ((fixed.flags & format::kHasValues) != 0)) {
      return error(Code::kMalformed, "{}: its flags 0x{:08x} do not fit its values: {}", name,
                   fixed.flags, format::kRecompile);
    }
    if (decoded.chain != ((fixed.flags & format::kHasChain) != 0)) {
      return error(Code::kMalformed, "{}: its flags 0x{:08x} do not fit its chain: {}", name,
                   fixed.flags, format::kRecompile);
    }
    chain = decoded.chain;
    parts = std::move(decoded.parts);
    segments = std::move(decoded.segments);
    checks = std::make_unique<SegmentCheck[]>(segments.size());
    // The segment table has every segment's checksum: its hash stands for the whole content, and
    // the segments need not be read for it.
    content_key = content_hash(bytes.first(begin));
    return {};
  }

  static Result<std::shared_ptr<const ProgramFile>> opened(std::unique_ptr<Impl> impl,
                                                           Verify verify) {
    CORELANE_TRY(impl->parse());
    // make_shared cannot reach the private constructor.
    std::shared_ptr<const ProgramFile> file(new ProgramFile(std::move(impl)));
    if (verify == Verify::kEverything) CORELANE_TRY(file->verify_segments());
    return file;
  }

  /// "the graph segment of part 'x'".
  std::string segment_text(const SegmentInfo& info) const {
    const std::string kind = segment_kind_name(info.kind);
    if (!has_parts(parts) || info.kind == SegmentKind::kConstants)
      return fmt::format("the {} segment", kind);
    return fmt::format("the {} segment of part '{}'", kind, parts[info.part].part);
  }
};

ProgramFile::ProgramFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ProgramFile::~ProgramFile() = default;

Result<std::shared_ptr<const ProgramFile>> ProgramFile::open(
    const std::filesystem::path& path, Verify verify, std::span<const ForeignMagic> foreign) {
  const auto map = [&]() -> Result<std::shared_ptr<const ProgramFile>> {
    CORELANE_ASSIGN(MappedFile mapped, MappedFile::open(path));
    // The mapping lives as long as the holders of the program.
    return from_mapped(std::make_shared<const MappedFile>(std::move(mapped)), path, verify,
                       foreign);
  };
  return no_throw(fmt::format("'{}'", path.string()), map);
}

Result<std::shared_ptr<const ProgramFile>> ProgramFile::from_mapped(
    std::shared_ptr<const MappedFile> mapped, const std::filesystem::path& path, Verify verify,
    std::span<const ForeignMagic> foreign) {
  const std::string name = fmt::format("'{}'", path.string());
  return no_throw(name, [&]() -> Result<std::shared_ptr<const ProgramFile>> {
    auto impl = std::make_unique<Impl>();
    impl->name = name;
    std::error_code unknown;  // The path as it is, then.
    impl->path = std::filesystem::absolute(path, unknown);
    impl->bytes = mapped->bytes();
    impl->identity = mapped->identity();
    impl->unchanged_at = impl->identity.modified;
    impl->owner = std::move(mapped);
    CORELANE_TRY(check_kind(impl->bytes, name, path.string(), foreign));
    return Impl::opened(std::move(impl), verify);
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
    return Impl::opened(std::move(impl), verify);
  });
}

std::size_t ProgramFile::part_count() const noexcept { return impl_->parts.size(); }
bool ProgramFile::is_chain() const noexcept { return impl_->chain; }
const ProgramDescription& ProgramFile::description(std::size_t part) const noexcept {
  return impl_->parts[part];
}
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
  const ByteSpan content = impl_->bytes.subspan(info.offset, info.size);
  SegmentCheck& check = impl_->checks[index];
  // The first thread to ask computes; the others wait for it. A segment nobody reads costs nothing.
  std::call_once(check.once, [&] { check.computed = crc32c(content); });
  if (check.computed == info.crc32c) return content;
  return error(
      Code::kCorrupted,
      "{}: {} of {} bytes at {} has CRC-32C {:08x}, stored is {:08x}: copy the file again, or {}",
      impl_->name, impl_->segment_text(info), info.size, info.offset, check.computed, info.crc32c,
      format::kRecompile);
}

Status ProgramFile::verify_segments() const {
  for (std::size_t i = 0; i < impl_->segments.size(); ++i)
    if (auto content = segment(i); !content) return content.error();
  return {};
}

Status ProgramFile::check_unchanged() const {
  struct stat now {};
  if (impl_->path.empty() || ::stat(impl_->path.c_str(), &now) != 0) return {};
  if (now.st_dev != impl_->identity.device || now.st_ino != impl_->identity.inode) return {};
  const std::int64_t modified =
      std::int64_t{now.st_mtim.tv_sec} * 1'000'000'000 + now.st_mtim.tv_nsec;
  const bool same_size = static_cast<std::uint64_t>(now.st_size) == impl_->identity.size;
  if (same_size && modified == impl_->unchanged_at.load(std::memory_order_relaxed)) return {};
  // Copied over itself, or its time was set.
  const auto is_same = [this](const SegmentInfo& info) {
    return crc32c(impl_->bytes.subspan(info.offset, info.size)) == info.crc32c;
  };
  if (same_size && std::ranges::all_of(impl_->segments, is_same)) {
    impl_->unchanged_at.store(modified, std::memory_order_relaxed);
    return {};
  }
  return error(
      Code::kCorrupted,
      "{} was written to while it is open: it had {} bytes, now it has {}{}; load it again, "
      "and replace such a file by renaming the new one to its name",
      impl_->name, impl_->identity.size, now.st_size, same_size ? ", which are others" : "");
}

Result<std::size_t> ProgramFile::find_part(std::string_view name) const {
  if (name.empty()) return std::size_t{0};
  const std::vector<ProgramDescription>& parts = impl_->parts;
  const auto found = std::ranges::find(parts, name, &ProgramDescription::part);
  if (found != parts.end()) return static_cast<std::size_t>(found - parts.begin());
  if (!has_parts(parts)) {
    return error(Code::kNotFound,
                 "{} has no part '{}': it holds one network without a name; load it without a part",
                 impl_->name, name);
  }
  std::string names;
  for (const ProgramDescription& d : parts)
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", d.part);
  return error(Code::kNotFound, "{} has no part '{}'; it has {}", impl_->name, name, names);
}

Result<std::optional<ByteSpan>> ProgramFile::find(SegmentKind kind, std::string_view tag,
                                                  std::size_t part) const {
  if (kind == SegmentKind::kConstants) part = 0;
  for (std::size_t i = 0; i < impl_->segments.size(); ++i) {
    const SegmentInfo& s = impl_->segments[i];
    // "" is any tag, for kinds of which there is one.
    if (s.kind != kind || s.part != part || (!tag.empty() && s.tag != tag)) continue;
    CORELANE_ASSIGN(const ByteSpan content, segment(i));
    return std::optional<ByteSpan>(content);
  }
  return std::optional<ByteSpan>();
}

}  // namespace corelane
