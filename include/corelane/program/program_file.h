/// The program file: what `corelane compile` writes and every door opens.
///
/// Format: docs/formats/program-file.md. "RKNN", then "CLP1"; a FlatBuffers header; aligned
/// segments with a CRC-32C each. A reader never trusts an offset, a length or a count.
///
/// A file holds one network, or several with names: its parts. Each has its own description and
/// segments; the constants are one segment, which all of them point into.
#pragma once

#include <concepts>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/file.h"
#include "corelane/base/status.h"
#include "corelane/program/description.h"
#include "corelane/program/verify.h"

namespace corelane {

/// What a file is by its first bytes.
enum class FileKind : std::uint8_t {
  kProgram,        ///< A program file.
  kOnnx,           ///< Looks like an ONNX protobuf.
  kVendor,         ///< Of a driver's kind: opaque.
  kVendorCrypted,  ///< The encrypted form of one.
  kUnknown,
};

/// How files of a driver's kind begin. Drivers bring these; corelane/runtime/file_kind.h lists
/// them.
using ForeignMagic = FileMagic;

/// The kind by the first bytes, of which there may be few: a program file, else ONNX, else a row of
/// `foreign`. Any thread.
CORELANE_API FileKind detect_file_kind(ByteSpan bytes,
                                       std::span<const ForeignMagic> foreign = {}) noexcept;
/// The row that fits with the smallest offset, whatever the bytes may be besides; null when none
/// does. Any thread.
CORELANE_API const ForeignMagic* find_foreign(ByteSpan bytes,
                                              std::span<const ForeignMagic> foreign) noexcept;

/// kMalformed where `bytes`, the whole of a file that begins as `magic` says, cannot have the
/// header of such a file: it is damaged or cut. `name` is what the message calls it. Any thread.
CORELANE_API Status check_foreign(ByteSpan bytes, const ForeignMagic& magic, std::string_view name);
/// "program", "onnx", "vendor", "vendor-crypted", "unknown". Any thread.
CORELANE_API std::string_view file_kind_name(FileKind kind) noexcept;

/// docs/formats/program-file.md says what each holds.
enum class SegmentKind : std::uint8_t {
  kGraph = 1,        ///< The network as it was given.
  kConstants = 2,    ///< Its large initialisers.
  kPrecompiled = 3,  ///< What an engine made of it.
  kForeign = 4,      ///< An image for another device.
  kLowered = 5,      ///< The network as one engine is given it; empty: as it was given.
  kVerdict = 6,      ///< Why one engine would compute it wrongly even so: a line of text.
  kTrial = 7,        ///< Which of a device's engines computes it faster: a line of text.
};

/// "graph", "constants", "precompiled", "foreign", "lowered", "verdict", "trial"; "kind 8" for
/// others. Any thread.
CORELANE_API std::string segment_kind_name(SegmentKind kind);

/// One entry of the segment table.
struct SegmentInfo {
  SegmentKind kind{};
  /// kPrecompiled: engine tag. kForeign: device kind. kLowered, kVerdict: Lowering::tag(). kTrial:
  /// engine, library and instruction set.
  std::string tag;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint32_t crc32c = 0;
  std::uint32_t part = 0;  ///< Whose it is. The constants are with the first part, for all.
};

/// An open program file. Immutable; any thread; shared by shared_ptr. Spans live as long as it.
class CORELANE_API ProgramFile {
 public:
  /// Maps the file. kForeignImage for a file that `foreign` knows, kMalformed / kCorrupted /
  /// kVersionMismatch else; the message names the file and the next step.
  static Result<std::shared_ptr<const ProgramFile>> open(
      const std::filesystem::path& path, Verify verify = Verify::kHeader,
      std::span<const ForeignMagic> foreign = {});
  /// From memory, which `keep_alive` holds (null: the bytes are copied).
  static Result<std::shared_ptr<const ProgramFile>> from_bytes(
      ByteSpan bytes, std::shared_ptr<const void> keep_alive = nullptr,
      Verify verify = Verify::kHeader, std::span<const ForeignMagic> foreign = {});
  /// From a file that is mapped already, which the program file keeps; `path` is its name, for
  /// messages and check_unchanged().
  static Result<std::shared_ptr<const ProgramFile>> from_mapped(
      std::shared_ptr<const MappedFile> mapped, const std::filesystem::path& path,
      Verify verify = Verify::kHeader, std::span<const ForeignMagic> foreign = {});
  ~ProgramFile();

  /// How many networks it holds, at least 1.
  std::size_t part_count() const noexcept;
  /// Whether the first network was cut into the others (`corelane compile --cut`), which compute it
  /// one after the other. An input of one is the output of that name of an earlier one, or the
  /// input of the first network, which has no segments of its own but the constants.
  bool is_chain() const noexcept;
  /// What the file says of one of them, checked against the rules of the format. `part` is below
  /// part_count().
  const ProgramDescription& description(std::size_t part = 0) const noexcept;
  /// The part of this name, the first one for "". kNotFound names those there are.
  Result<std::size_t> find_part(std::string_view name) const;
  /// The segment table, in the order of the file, which is that of the parts. Kinds that this
  /// version does not know stay in it.
  const std::vector<SegmentInfo>& segments() const noexcept;
  /// Bytes of the whole file.
  std::size_t file_size() const noexcept;
  /// The whole file as it is, to be handed on. Segments whose CRC was not checked here are checked
  /// where the bytes are opened.
  ByteSpan bytes() const noexcept;
  /// The bytes of segment `index`, its CRC checked once: kCorrupted when it does not match.
  Result<ByteSpan> segment(std::size_t index) const;
  /// The first segment of a kind (and tag, unless empty) in a part; nullopt inside when there is
  /// none. kConstants are those of all parts, whichever is asked for.
  Result<std::optional<ByteSpan>> find(SegmentKind kind, std::string_view tag = {},
                                       std::size_t part = 0) const;
  /// The CRC of every segment, as Verify::kEverything checks it. kCorrupted.
  Status verify_segments() const;
  /// Whether the bytes are still those that were opened. kCorrupted when the file was cut or
  /// written to since then: what is not read yet may be gone, and reading it could end the process.
  /// A file that was replaced by a rename, or removed, stays readable and is not a failure. Costs
  /// one question to the file system, and the CRC of all segments where only the file's time is
  /// another.
  Status check_unchanged() const;
  /// Hex hash over header and segment CRCs: the same content, the same key.
  const std::string& content_key() const noexcept;

 private:
  struct Impl;
  explicit ProgramFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Puts a program file together. One thread at a time.
class CORELANE_API ProgramWriter {
 public:
  /// The description is checked by finish().
  explicit ProgramWriter(ProgramDescription description);
  ~ProgramWriter();
  /// The moved-from writer may only be destroyed or assigned to.
  ProgramWriter(ProgramWriter&&) noexcept;
  /// As the move constructor.
  ProgramWriter& operator=(ProgramWriter&&) noexcept;
  /// Begins another network: the segments that are added from here on are its own. Each description
  /// has a name then (ProgramDescription::part). The constants are added before, once for all.
  void add_part(ProgramDescription description);
  /// The first network is a chain of the others, in their order: see ProgramFile::is_chain().
  void set_chain();
  /// To the network that was begun last. Borrowed until finish().
  void add_segment(SegmentKind kind, std::string tag, ByteSpan bytes);
  /// A temporary would be gone before finish().
  template <std::same_as<ByteVector> T>
  void add_segment(SegmentKind kind, std::string tag, T&& bytes) = delete;
  /// The whole file. kInvalidArgument when a description is inconsistent (duplicate names, empty
  /// graph, custom string over 1024 bytes), or a part has no name or that of another.
  Result<ByteVector> finish() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace corelane
