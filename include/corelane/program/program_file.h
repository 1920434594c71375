/// The program file: what `corelane compile` writes and every door opens.
///
/// Format: docs/formats/program-file.md. "RKNN", then "CLP1"; a FlatBuffers header; aligned
/// segments with a CRC-32C each. A reader never trusts an offset, a length or a count.
#pragma once

#include <concepts>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/program/description.h"

namespace corelane {

/// What a file is by its first bytes.
enum class FileKind : std::uint8_t {
  kProgram,        ///< Ours.
  kOnnx,           ///< Looks like an ONNX protobuf.
  kVendor,         ///< A vendor-compiled .rknn: opaque.
  kVendorCrypted,  ///< The vendor's encrypted form.
  kUnknown,
};
CORELANE_API FileKind detect_file_kind(ByteSpan bytes) noexcept;
CORELANE_API std::string_view file_kind_name(FileKind kind) noexcept;

/// How deeply a file is verified when opened.
enum class Verify : std::uint8_t {
  kHeader,      ///< Header, descriptors, segment table; segments' CRC when first read.
  kEverything,  ///< And the CRC of every segment.
};

enum class SegmentKind : std::uint8_t {
  kGraph = 1,
  kConstants = 2,
  kPrecompiled = 3,
  kForeign = 4,
};

/// One entry of the segment table.
struct SegmentInfo {
  SegmentKind kind{};
  std::string tag;  ///< kPrecompiled: engine tag. kForeign: device kind.
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint32_t crc32c = 0;
};

/// An open program file. Immutable; any thread; shared by shared_ptr. Spans live as long as it.
class CORELANE_API ProgramFile {
 public:
  /// Maps the file. kForeignImage for a vendor file, kMalformed / kCorrupted / kVersionMismatch
  /// else; the message names the file and the next step.
  static Result<std::shared_ptr<const ProgramFile>> open(const std::filesystem::path& path,
                                                         Verify verify = Verify::kHeader);
  /// From memory, which `keep_alive` holds (null: the bytes are copied).
  static Result<std::shared_ptr<const ProgramFile>> from_bytes(
      ByteSpan bytes, std::shared_ptr<const void> keep_alive = nullptr,
      Verify verify = Verify::kHeader);
  ~ProgramFile();

  const ProgramDescription& description() const noexcept;
  const std::vector<SegmentInfo>& segments() const noexcept;
  std::size_t file_size() const noexcept;
  /// The whole file as it is, for those who hand it on; CRCs are checked by whoever opens it there.
  ByteSpan bytes() const noexcept;
  /// The bytes of segment `index`, its CRC checked once: kCorrupted when it does not match.
  Result<ByteSpan> segment(std::size_t index) const;
  /// The first segment of a kind (and tag, unless empty); nullopt inside when there is none.
  Result<std::optional<ByteSpan>> find(SegmentKind kind, std::string_view tag = {}) const;
  /// Hex hash over header and segment CRCs: the same content, the same key.
  const std::string& content_key() const noexcept;

 private:
  struct Impl;
  explicit ProgramFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Puts a program file together.
class CORELANE_API ProgramWriter {
 public:
  explicit ProgramWriter(ProgramDescription description);
  ~ProgramWriter();
  ProgramWriter(ProgramWriter&&) noexcept;
  ProgramWriter& operator=(ProgramWriter&&) noexcept;
  /// Borrowed until finish().
  void add_segment(SegmentKind kind, std::string tag, ByteSpan bytes);
  /// A temporary would be gone before finish().
  template <std::same_as<ByteVector> T>
  void add_segment(SegmentKind kind, std::string tag, T&& bytes) = delete;
  /// The whole file. kInvalidArgument when the description is inconsistent (duplicate names, empty
  /// graph, custom string over 1024 bytes).
  Result<ByteVector> finish() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace corelane
