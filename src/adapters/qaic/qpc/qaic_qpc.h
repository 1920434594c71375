/// A container: a program file under the name that clients look for, with what they ask of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "adapters/qaic/api/qaic_handle.h"
#include "adapters/qaic/qpc/qaic_mapping.h"
#include "corelane/base/bytes.h"

namespace corelane {
class ProgramFile;
struct ProgramDescription;
}  // namespace corelane

namespace corelane::qaic {

/// Bytes of a container as the API gives them, which can be written to: a client that does so harms
/// this container alone.
inline QData writable(std::span<const std::uint8_t> bytes) noexcept {
  return {bytes.size(), const_cast<std::uint8_t*>(bytes.data())};
}

/// Immutable; any thread. What its infos point to lives as long as it.
class QpcObject : public Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kQpc;
  using Handle = QAicQpcObj;

  /// `copy` false: the caller keeps the bytes as long as this object.
  /// kMalformed, kCorrupted, kVersionMismatch, kForeignImage (the vendor's container),
  /// kUnsupportedModel (what the API has no form for: open dimensions, an element type).
  static Result<std::shared_ptr<QpcObject>> open(ByteSpan bytes, bool copy);
  /// The mapped file is kept. As open(), and kIo where the file cannot be read.
  static Result<std::shared_ptr<QpcObject>> open_file(const char* path);
  ~QpcObject() override;

  const std::shared_ptr<const ProgramFile>& file() const noexcept;
  std::size_t program_count() const noexcept;
  /// kOutOfRange, with the programs there are, unless there is a program `index`.
  Status check_program(std::size_t index) const;
  /// `index` is below program_count().
  const QpcProgram& program(std::size_t index) const noexcept;
  const ProgramDescription& description(std::size_t index) const noexcept;
  /// Into how many parts a program was cut; 1: it was not.
  std::size_t parts_of(std::size_t index) const noexcept;
  /// As the API shows it: names, buffers, figures.
  const QAicQpcInfo& info() const noexcept;
  /// The shapes of a program's buffers, one entry for each mapping.
  std::span<const QAicBufferShapes> shapes(std::size_t index) const noexcept;

 private:
  struct State;
  explicit QpcObject(std::unique_ptr<State> state);
  static Result<std::shared_ptr<QpcObject>> of_file(std::shared_ptr<const ProgramFile> file);
  std::unique_ptr<State> state_;
};

}  // namespace corelane::qaic
