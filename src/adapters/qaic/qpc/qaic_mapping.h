/// The inputs and outputs of a program as clients see them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "QAicApi.h"
#include "corelane/base/status.h"
#include "corelane/tensor/dtype.h"

namespace corelane {
class ProgramFile;
}

namespace corelane::qaic {

/// One input or output as clients see it.
struct IoMapping {
  std::string name;
  QAicBufferIoTypeEnum direction = BUFFER_IO_TYPE_INVAL;
  QAicBufferDataTypeEnum type = BUFFER_DATA_TYPE_INVAL;
  std::uint32_t bytes = 0;         ///< Of the largest specialization.
  std::uint32_t element_size = 0;  ///< Bytes.
  bool partial = false;
  bool state = false;               ///< Left out, it stays on the device; then it is partial, too.
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

/// The program `part` of a file, which has it. kUnsupportedModel for what the API has no form for:
/// open dimensions without specializations, an output whose shape a run alone decides, an element
/// type without a number, a tensor of 4 GiB or more. Any thread.
Result<QpcProgram> map_program(const ProgramFile& file, std::size_t part);

}  // namespace corelane::qaic
