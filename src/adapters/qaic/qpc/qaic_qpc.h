/// A container: a program file under the name that clients look for, with what they ask of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "adapters/qaic/api/qaic_handle.h"
#include "corelane/base/bytes.h"
#include "corelane/tensor/desc.h"

namespace corelane {
class ProgramFile;
struct ProgramDescription;
}  // namespace corelane

namespace corelane::qaic {

/// One input or output as clients see it.
struct IoMapping {
  std::string name;
  QAicBufferIoTypeEnum direction = BUFFER_IO_TYPE_INVAL;
  QAicBufferDataTypeEnum type = BUFFER_DATA_TYPE_INVAL;
  std::uint32_t bytes = 0;         ///< Of the largest specialization.
  std::uint32_t element_size = 0;  ///< Bytes.
  bool partial = false;
  DType dtype = DType::kUndefined;  ///< Of the memory that clients bring.
  /// Its dimensions in each specialization; one where there are no specializations.
  std::vector<std::vector<std::uint32_t>> shapes;
};

/// One program of a container. Inputs first.
struct QpcProgram {
  std::vector<IoMapping> mappings;
  std::size_t inputs = 0;  ///< How many of them are inputs.
  std::size_t specializations = 1;
  std::vector<std::uint8_t> io_descriptor;  ///< Bytes of an aicapi.IoDesc.
};

/// Immutable; any thread. What its infos point to lives as long as it.
class QpcObject : public Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kQpc;
  using Handle = QAicQpcObj;

  /// `copy` false: the caller keeps the bytes as long as this object.
  static Result<std::shared_ptr<QpcObject>> open(ByteSpan bytes, bool copy);
  static Result<std::shared_ptr<QpcObject>> open_file(const char* path);
  ~QpcObject() override;

  const std::shared_ptr<const ProgramFile>& file() const noexcept;
  std::size_t program_count() const noexcept;
  /// `index` is below program_count().
  const QpcProgram& program(std::size_t index) const noexcept;
  const ProgramDescription& description(std::size_t index) const noexcept;
  /// As the API shows it: names, buffers, figures.
  const QAicQpcInfo& info() const noexcept;
  /// The shapes of a program's buffers, one entry for each mapping.
  std::span<const QAicBufferShapes> shapes(std::size_t index) const noexcept;

 private:
  struct State;
  explicit QpcObject(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace corelane::qaic
