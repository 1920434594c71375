/// Qpc, QpcFile: a program container, and a file of one. `corelane compile --target aic100` writes
/// containers. All methods of Qpc from any thread; a QpcFile has one user at a time.
#pragma once

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "QAicApiContext.hpp"
#include "QAicApiDataTypes.hpp"
#include "QAicApiLibrary.hpp"

namespace qaic::rt {

namespace detail {

inline uint8_t*& bytesOf(QBuffer& buffer) { return buffer.buf; }
inline uint8_t*& bytesOf(QData& buffer) { return buffer.data; }

inline BufferMappings mappingsOf(const QAicIoBufferInfo& info) {
  BufferMappings mappings;
  for (uint32_t i = 0; i < info.numBufferMappings; ++i) {
    const QAicBufferMappings& one = info.bufferMappings[i];
    mappings.emplace_back(one.bufferName != nullptr ? one.bufferName : "", one.index, one.ioType,
                          one.size, one.isPartialBufferAllowed, one.dataType);
  }
  return mappings;
}

}  // namespace detail

/// Memory with its description: `T` is QBuffer or QData. One user at a time.
template <class T>
class DataBuffer {
 public:
  DataBuffer() = default;
  DataBuffer(const DataBuffer&) = delete;
  DataBuffer& operator=(const DataBuffer&) = delete;
  /// The other one has nothing afterwards.
  DataBuffer(DataBuffer&& other) noexcept
      : buffer_(std::exchange(other.buffer_, T{})), data_(std::exchange(other.data_, {})) {}
  /// Frees what it has and takes the memory of the other one, which has nothing afterwards.
  DataBuffer& operator=(DataBuffer&& other) noexcept {
    DataBuffer taken(std::move(other));
    std::swap(buffer_, taken.buffer_);
    data_.swap(taken.data_);
    return *this;
  }

  /// The description for the C functions: the address, and the size in bytes. allocate(), release()
  /// and a move replace it; shrinkBuffer() changes the size.
  const T& getBuffer() const noexcept { return buffer_; }
  /// Bytes.
  size_t size() const noexcept { return buffer_.size; }
  /// Null while nothing is allocated.
  uint8_t* dataPtr() noexcept { return detail::bytesOf(buffer_); }
  /// `size` bytes of 0; what it held before is gone. Throws std::bad_alloc.
  void allocate(size_t size) {
    data_.assign(size, 0);
    show(size);
  }
  /// Keeps the first `size` bytes. QS_INVAL where it has fewer.
  QStatus shrinkBuffer(size_t size) {
    if (size > buffer_.size)
      return library().qaicSetLastErrorText(
          QS_INVAL, ("DataBuffer: it has " + std::to_string(buffer_.size) + " bytes, " +
                     std::to_string(size) + " are to be kept; allocate() makes it larger")
                        .c_str());
    show(size);
    return QS_SUCCESS;
  }
  /// Frees the memory: size() is 0 and dataPtr() null afterwards.
  void release() noexcept {
    std::vector<uint8_t>().swap(data_);
    buffer_ = T{};
  }

 private:
  void show(size_t size) {
    buffer_ = T{};
    buffer_.size = size;
    detail::bytesOf(buffer_) = data_.data();
  }

  T buffer_{};
  std::vector<uint8_t> data_;
};

namespace detail {
/// No base path: the working folder, as std::filesystem has it.
inline std::string pathOf(const std::string& basePath, const std::string& file) {
  return basePath.empty() ? file : basePath + "/" + file;
}
}  // namespace detail

/// A file with a container, read into memory. No base path: in the working folder.
class QpcFile {
 public:
  /// Names the file `basePath`/`qpcFilename`, and does not look at it: load() reads it.
  explicit QpcFile(const std::string& basePath, const std::string& qpcFilename = "programqpc.bin")
      : path_(detail::pathOf(basePath, qpcFilename)) {}
  QpcFile(const QpcFile&) = delete;
  QpcFile& operator=(const QpcFile&) = delete;

  /// Reads the file; true. Throws CoreExceptionInit where it cannot be opened or read.
  bool load() {
    std::error_code why;
    const auto size = std::filesystem::file_size(path_, why);  // Of what is no file: none.
    std::ifstream file;
    if (!why) file.open(path_, std::ios::binary);  // A pipe would wait for its writer.
    if (!why && !file) why.assign(errno, std::generic_category());
    if (why)
      throw CoreExceptionInit("QpcFile", "cannot open '" + path_ + "': " + why.message(), QS_ERROR);
    buffer_.allocate(static_cast<size_t>(size));
    if (!file.read(reinterpret_cast<char*>(buffer_.dataPtr()),
                   static_cast<std::streamsize>(size))) {
      buffer_.release();
      throw CoreExceptionInit("QpcFile", "cannot read '" + path_ + "'", QS_ERROR);
    }
    return true;
  }
  /// Empty before load().
  const QData& getBuffer() const noexcept { return buffer_.getBuffer(); }
  /// The size() bytes that load() read; null before. Valid until the next load().
  const uint8_t* data() const noexcept { return buffer_.getBuffer().data; }
  /// Bytes.
  size_t size() const noexcept { return buffer_.size(); }

 private:
  std::string path_;
  DataBuffer<QData> buffer_;
};

class Qpc {
 public:
  /// A container in memory. With `makeCopy` the bytes are copied; else they must stay as they are
  /// until the Qpc, and all that was made of it, has gone. Throws CoreExceptionInit: QS_INVAL (no
  /// container), QS_DATA_CRC_ERROR, QS_UNSUPPORTED (one of the vendor's).
  static shQpc Factory(const uint8_t* qpcBuf, size_t qpcSize, bool makeCopy = false) {
    QAicQpcObj* qpc = nullptr;
    detail::checkInit("Qpc", library().qaicOpenQpc(&qpc, qpcBuf, qpcSize, makeCopy));
    return shQpc(new Qpc(qpc));
  }
  /// The container in the file `basePath`/`qpcFilename`; no base path: in the working folder.
  /// Throws as the other, and QS_ERROR where the file cannot be read.
  static shQpc Factory(const std::string& basePath,
                       const std::string& qpcFilename = "programqpc.bin") {
    QAicQpcObj* qpc = nullptr;
    const std::string path = detail::pathOf(basePath, qpcFilename);
    detail::checkInit("Qpc", library().qaicOpenQpcFile(&qpc, path.c_str()));
    return shQpc(new Qpc(qpc));
  }
  ~Qpc() { static_cast<void>(library().qaicCloseQpc(qpc_)); }
  Qpc(const Qpc&) = delete;
  Qpc& operator=(const Qpc&) = delete;

  /// Its programs and constants. Shared by all who ask: not to be changed.
  shQpcInfo getInfo() const { return info_; }
  /// The buffers of a program as the user gives them, inputs first. Throws CoreExceptionRuntime,
  /// QS_INVAL, where there is no such program.
  const BufferMappings& getBufferMappings(uint32_t programIndex = 0) const {
    return programAt(programIndex).bufferMappings;
  }
  /// The buffers of a program as they are transferred: the same.
  const BufferMappings& getBufferMappingsDma(uint32_t programIndex = 0) const {
    return programAt(programIndex).bufferMappingsDma;
  }
  /// With the shapes of each specialization.
  const v2::BufferMappings& getBufferMappingsV2(uint32_t programIndex = 0) const {
    static_cast<void>(programAt(programIndex));
    return mappings_[programIndex];
  }
  /// The bytes of an aicapi.IoDesc (QAicApi.proto); valid as long as the Qpc.
  QStatus getIoDescriptor(QData* ioDesc, uint32_t programIndex = 0) const {
    return library().qaicQpcGetIoDescriptor(qpc_, programIndex, ioDesc);
  }

  /// For the C functions.
  QAicQpcObj* get() const noexcept { return qpc_; }
  /// Its bytes: the user's where they were not copied. Valid as long as the Qpc.
  const uint8_t* buffer() const noexcept { return bytes_.data; }
  /// Bytes.
  size_t size() const noexcept { return bytes_.size; }

 private:
  explicit Qpc(QAicQpcObj* qpc) : qpc_(qpc) {
    try {
      read();
    } catch (...) {
      static_cast<void>(library().qaicCloseQpc(qpc_));
      throw;
    }
  }

  void read() {
    const QAicApiFunctionTable& api = library();
    detail::checkInit("Qpc", api.qaicQpcGetBytes(qpc_, &bytes_));
    const QAicQpcInfo* info = nullptr;
    detail::checkInit("Qpc", api.qaicQpcGetInfo(qpc_, &info));
    info_ = std::make_shared<QpcInfo>();
    for (uint32_t i = 0; i < info->numPrograms; ++i) readProgram(info->programInfo[i], i);
    for (uint32_t i = 0; i < info->numConstants; ++i) {
      const QAicQpcConstantsInfo& from = info->constantsInfo[i];
      info_->constants.push_back({from.name, from.constantsIndex, from.size});
    }
  }

  void readProgram(const QAicQpcProgramInfo& from, uint32_t index) {
    QpcProgramInfo program;
    program.bufferMappings = detail::mappingsOf(from.ioBufferInfo);
    program.bufferMappingsDma = detail::mappingsOf(from.ioBufferInfoDma);
    program.name = from.name;
    program.numCores = from.numCores;
    program.programIndex = from.programIndex;
    program.size = from.size;
    program.batchSize = from.batchSize;
    program.numSemaphores = from.numSemaphores;
    program.numMcids = from.numMcids;
    program.reqMem = from.reqMem;
    uint32_t count = 0;
    const QAicBufferShapes* shapes = nullptr;
    detail::checkInit("Qpc", library().qaicQpcGetBufferShapes(qpc_, index, &count, &shapes));
    v2::BufferMappings mappings;
    for (uint32_t i = 0; i < program.bufferMappings.size(); ++i) {
      v2::BufferMapping mapping;
      mapping.bufferMapping = program.bufferMappings[i];
      for (uint32_t s = 0; i < count && s < shapes[i].numShapes; ++s) {
        const QAicBufferShape& shape = shapes[i].shapes[s];
        mapping.ioShapes.push_back({{shape.dims, shape.dims + shape.numDims}, shape.dataType});
      }
      mappings.push_back(std::move(mapping));
    }
    info_->program.push_back(std::move(program));
    mappings_.push_back(std::move(mappings));
  }

  const QpcProgramInfo& programAt(uint32_t index) const {
    if (index < info_->program.size()) return info_->program[index];
    throw CoreExceptionRuntime("Qpc: program " + std::to_string(index) + " of " +
                                   std::to_string(info_->program.size()) +
                                   "; take an index below that",
                               QS_INVAL);
  }

  QAicQpcObj* qpc_;
  QData bytes_{};
  shQpcInfo info_;
  std::vector<v2::BufferMappings> mappings_;  ///< By program.
};

inline QStatus Context::findDevice(const shQpc& qpc, QID& device, uint32_t programIndex) const {
  return library().qaicContextFindDevice(context_, qpc ? qpc->get() : nullptr, programIndex,
                                         &device);
}
inline QID Context::findDevice(const shQpc& qpc, uint32_t programIndex) const {
  QID device = -1;
  detail::checkRun(findDevice(qpc, device, programIndex));
  return device;
}

}  // namespace qaic::rt
