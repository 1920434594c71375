/// Values of the C++ classes: buffers of a program, what is in a container, properties. Plain
/// structs, to be used by one thread at a time.
#pragma once

// Standard headers that clients take for granted.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "QAicTypes.h"

namespace qaic_fs = std::filesystem;

namespace qaic::rt {

class Context;
class ExecObj;
class FileWriter;
class InferenceBenchmarkSet;
class InferenceHandle;
class InferenceSet;
class InferenceVector;
class Logger;
class ProfilingHandle;
class Program;
class Qpc;
class QpcFile;
class Queue;
class SlicingSpec;
class StreamProfilingHandle;
class Util;
using shContext = std::shared_ptr<Context>;
using shExecObj = std::shared_ptr<ExecObj>;
using shInferenceBenchmarkSet = std::shared_ptr<InferenceBenchmarkSet>;
using shInferenceHandle = std::shared_ptr<InferenceHandle>;
using shInferenceSet = std::shared_ptr<InferenceSet>;
using shInferenceVector = std::shared_ptr<InferenceVector>;
using shLogger = std::shared_ptr<Logger>;
using shProfilingHandle = std::shared_ptr<ProfilingHandle>;
using shProgram = std::shared_ptr<Program>;
using shQpc = std::shared_ptr<Qpc>;
using shQpcFile = std::shared_ptr<QpcFile>;
using shQueue = std::shared_ptr<Queue>;
using shSlicingSpec = std::shared_ptr<SlicingSpec>;
using shStreamProfilingHandle = std::shared_ptr<StreamProfilingHandle>;

/// One input or output of a program.
struct BufferMapping {
  /// A mapping that stands for no buffer.
  BufferMapping() = default;
  /// Fills in all fields and checks none. `place` is the index, `bytes` the size of the largest
  /// specialization.
  BufferMapping(std::string name, uint32_t place, QAicBufferIoTypeEnum direction, uint32_t bytes,
                bool partial, QAicBufferDataTypeEnum type)
      : bufferName(std::move(name)),
        index(place),
        ioType(direction),
        size(bytes),
        isPartialBufferAllowed(partial),
        dataType(type) {}

  std::string bufferName;
  uint32_t index = 0;  ///< Its place among the buffers: inputs first.
  QAicBufferIoTypeEnum ioType = BUFFER_IO_TYPE_INVAL;  ///< As the user sees it.
  uint32_t size = 0;                    ///< Bytes: those of the largest specialization.
  bool isPartialBufferAllowed = false;  ///< It may be given shorter, or be left out.
  QAicBufferDataTypeEnum dataType = BUFFER_DATA_TYPE_INVAL;
};
using BufferMappings = std::vector<BufferMapping>;

/// For each buffer the bytes of an element and the dimensions; the single dimension 0 leaves a
/// partial buffer out. No entries: the dimensions of the program.
using BufferDimensions = std::vector<std::pair<uint32_t, std::vector<uint32_t>>>;

namespace v2 {

/// The shape of a buffer in one specialization.
struct BufferShape {
  std::vector<uint32_t> dims;
  QAicBufferDataTypeEnum dataType = BUFFER_DATA_TYPE_INVAL;
};

/// A buffer with its shapes; their place is the number of the specialization.
struct BufferMapping {
  rt::BufferMapping bufferMapping;
  std::vector<BufferShape> ioShapes;  ///< One where a program has no specializations.
};
using BufferMappings = std::vector<BufferMapping>;

}  // namespace v2
using BufferMappingsV2 = v2::BufferMappings;

/// One program of a container.
struct QpcProgramInfo {
  BufferMappings bufferMappings;     ///< As the user gives them: inputs first.
  BufferMappings bufferMappingsDma;  ///< As they are transferred: the same.
  std::string name;
  uint32_t numCores = 0;  ///< Cores that it wants.
  uint32_t programIndex = 0;
  uint64_t size = 0;  ///< Bytes of its network in the container.
  int32_t batchSize = 0;
  uint32_t numSemaphores = 0;  ///< 0: there are none.
  uint32_t numMcids = 0;       ///< 0: there are none.
  uint64_t reqMem = 0;         ///< Bytes: its constants, and the buffers of one inference.
};

/// Constants of a container.
struct QpcConstantsInfo {
  std::string name;
  uint32_t constantsIndex = 0;
  uint64_t size = 0;  ///< Bytes.
};

/// What is in a container.
struct QpcInfo {
  std::vector<QpcProgramInfo> program;
  std::vector<QpcConstantsInfo> constants;
};
using shQpcInfo = std::shared_ptr<QpcInfo>;

/// A program as its object shows it.
struct ProgramInfo {
  QAicProgramID uniqueProgramID = 0;
  QAicProgramID userDefinedProgramID = 0;  ///< What Program::setId() set; else the unique one.
  uint32_t numNsp = 0;                     ///< Cores that it wants.
  uint32_t numMcid = 0;                    ///< 0: there are none.
  uint32_t batchSize = 0;
  bool isAicStatsAvailable = false;
};

/// How an inference set is made.
struct InferenceSetProperties {
  QAicProgramProperties programProperties{};  ///< Of each of its activations.
  QAicQueueProperties queueProperties{};
  std::string name = "InferenceSet";  ///< For messages; InferenceSet::objName().
  uint32_t id = 0;                    ///< The user's number of it; InferenceSet::getId().
};
using shInferenceSetProperties = std::shared_ptr<InferenceSetProperties>;

/// Bytes of an element; 0 for a type that is none.
constexpr uint32_t bytesOfElement(QAicBufferDataTypeEnum type) noexcept {
  switch (static_cast<int>(type)) {
    case BUFFER_DATA_TYPE_FLOAT:
    case BUFFER_DATA_TYPE_INT32Q:
    case BUFFER_DATA_TYPE_INT32I:
      return 4;
    case BUFFER_DATA_TYPE_FLOAT16:
    case BUFFER_DATA_TYPE_INT16Q:
    case BUFFER_DATA_TYPE_BFLOAT16:
      return 2;
    case BUFFER_DATA_TYPE_INT8Q:
    case BUFFER_DATA_TYPE_UINT8Q:
    case BUFFER_DATA_TYPE_INT8:
    case BUFFER_DATA_TYPE_UINT8:
      return 1;
    case BUFFER_DATA_TYPE_INT64I:
    case BUFFER_DATA_TYPE_FLOAT64C:
      return 8;
    default:
      return 0;
  }
}

/// A buffer by its name.
class BufferIdentifier {
 public:
  /// `index` is the place among the buffers: inputs first, from 0. Nothing is checked.
  BufferIdentifier(std::string name, uint32_t index) : name_(std::move(name)), index_(index) {}
  /// The buffer's name in the program. The reference is valid as long as this object.
  const std::string& getBufferName() const noexcept { return name_; }
  /// Its place among the buffers.
  uint32_t getBufferIndex() const noexcept { return index_; }

 private:
  std::string name_;
  uint32_t index_;
};

/// Names and dimensions of a program's buffers, in the order of the mappings.
class BufferIdentifiers {
 public:
  BufferIdentifiers() = default;
  /// Copies what it needs of `mappings` (Qpc::getBufferMappingsV2() gives them). A buffer without
  /// shapes gets no dimensions. Throws std::bad_alloc.
  explicit BufferIdentifiers(const v2::BufferMappings& mappings) {
    for (const v2::BufferMapping& mapping : mappings) {
      identifiers_.emplace_back(mapping.bufferMapping.bufferName, mapping.bufferMapping.index);
      std::vector<uint32_t> dims;
      if (!mapping.ioShapes.empty()) dims = mapping.ioShapes.front().dims;
      dimensions_.emplace_back(bytesOfElement(mapping.bufferMapping.dataType), std::move(dims));
    }
  }
  /// One entry for each buffer, inputs first; empty where no mappings were given. The reference is
  /// valid as long as this object.
  const std::vector<BufferIdentifier>& getBufferIdentifierVec() const noexcept {
    return identifiers_;
  }
  /// Bytes of an element and the dimensions of the first specialization, for
  /// InferenceHandle::setBufferDimensions().
  const BufferDimensions& getBufferSizeDimensionPair() const noexcept { return dimensions_; }

 private:
  std::vector<BufferIdentifier> identifiers_;
  BufferDimensions dimensions_;
};

}  // namespace qaic::rt
