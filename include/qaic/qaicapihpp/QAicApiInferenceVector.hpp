/// InferenceVector: the buffers of one inference, with memory of their own or the user's. It must
/// live until the inference has completed; ExecObj and InferenceHandle keep it. One user at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "QAicApiLogger.hpp"
#include "QAicApiQpc.hpp"

namespace qaic::rt {

namespace detail {

/// Dimensions as the table takes them; valid as long as `from`.
inline std::vector<QBufferDimensions> dimensionsOf(const BufferDimensions& from) {
  std::vector<QBufferDimensions> dimensions(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    dimensions[i].count = static_cast<uint32_t>(from[i].second.size());
    dimensions[i].sizeOfElem = from[i].first;
    // The table reads them; its structure is as clients know it.
    dimensions[i].dims = const_cast<uint32_t*>(from[i].second.data());
  }
  return dimensions;
}

}  // namespace detail

namespace detail {

/// Whether a buffer may have so many bytes: as many as one of its shapes, or fewer of a partial
/// one.
inline bool fits(const BufferMapping& buffer, const std::vector<v2::BufferShape>& shapes,
                 size_t size) {
  if (size == buffer.size || (size < buffer.size && buffer.isPartialBufferAllowed)) return true;
  if (shapes.size() < 2) return false;
  for (const v2::BufferShape& shape : shapes) {
    size_t bytes = bytesOfElement(shape.dataType);
    for (const uint32_t dim : shape.dims) bytes *= dim;
    if (bytes == size) return true;
  }
  return false;
}

/// A user asks `method` for buffers. The library is loaded.
inline void buffersAsked(const char* method, const std::vector<QBuffer>& buffers) noexcept {
  static_cast<void>(
      library().qaicBuffersAsked(method, static_cast<uint32_t>(buffers.size()), buffers.data()));
}

}  // namespace detail

class InferenceVector : public Logger {
 public:
  /// What the inputs hold at first. Outputs are 0.
  enum DataSourceType { ZERO_FILL, RANDOM, FILESET };

  /// Memory for each buffer. RANDOM: any bytes, the same in each process. Throws CoreExceptionInit
  /// (FILESET without files), std::bad_alloc.
  static shInferenceVector Factory(const BufferMappings& mappings, DataSourceType source = RANDOM) {
    if (source == FILESET)
      throw CoreExceptionInit("InferenceVector", "FILESET without files; pass their names instead",
                              QS_INVAL);
    shInferenceVector vector(new InferenceVector(mappings));
    if (source == RANDOM) vector->fillRandom();
    return vector;
  }
  /// For the first program of a container.
  static shInferenceVector Factory(const shQpc& qpc, DataSourceType source = RANDOM) {
    detail::checkGiven("InferenceVector", qpc != nullptr, "Qpc");
    shInferenceVector vector = Factory(qpc->getBufferMappings(), source);
    vector->shapes_ = qpc->getBufferMappingsV2();
    return vector;
  }
  /// Inputs from files: one for each input, or for each buffer, whose outputs are not read. No
  /// files: RANDOM. Throws CoreExceptionInit as loadFromFileSet().
  static shInferenceVector Factory(const BufferMappings& mappings,
                                   const std::vector<std::string>& fileSet) {
    return fileSet.empty() ? Factory(mappings) : ofFiles(mappings, {}, fileSet);
  }
  /// The same for the first program of a container. A file may have the size of any shape of its
  /// buffer. QS_INVAL also where `qpc` is null.
  static shInferenceVector Factory(const shQpc& qpc, const std::vector<std::string>& fileSet) {
    detail::checkGiven("InferenceVector", qpc != nullptr, "Qpc");
    if (fileSet.empty()) return Factory(qpc);
    return ofFiles(qpc->getBufferMappings(), qpc->getBufferMappingsV2(), fileSet);
  }

  /// The buffers, inputs first. What an inference writes is there once it has completed; the
  /// checking mode reports a call before.
  const std::vector<QBuffer>& getVector() const& noexcept {
    if (given_.load(std::memory_order_relaxed))
      detail::buffersAsked("InferenceVector::getVector", buffers_);
    return buffers_;
  }
  /// Of a vector that goes: a copy.
  std::vector<QBuffer> getVector() && {
    return static_cast<const InferenceVector&>(*this).getVector();
  }

  /// The user's memory instead of its own, for the first buffers. QS_INVAL: more than there are, or
  /// a size that does not fit (of a vector that was made with a Qpc, any of the buffer's shapes
  /// does); then nothing changes.
  QStatus setBuffers(const std::vector<QBuffer>& buffers) {
    if (buffers.size() > buffers_.size())
      return refuse(QS_INVAL, std::to_string(buffers.size()) + " buffers given, at most " +
                                  std::to_string(buffers_.size()) + " are taken");
    return put(buffers, 0);
  }
  /// The same for all inputs. QS_INVAL also for another number of them.
  QStatus setInputBuffers(const std::vector<QBuffer>& buffers) {
    if (buffers.size() != inputs_) return wrongCount("inputs", inputs_, buffers.size());
    return put(buffers, 0);
  }
  /// The same for all outputs.
  QStatus setOutputBuffers(const std::vector<QBuffer>& buffers) {
    const size_t outputs = buffers_.size() - inputs_;
    if (buffers.size() != outputs) return wrongCount("outputs", outputs, buffers.size());
    return put(buffers, inputs_);
  }
  /// Reads files into its own memory, which becomes the inputs'. QS_INVAL: another number of files
  /// than inputs, or than buffers; a file that cannot be read, or whose size does not fit; then
  /// nothing changes. A partial buffer takes a shorter one.
  QStatus loadFromFileSet(const std::vector<std::string>& fileSet) {
    const std::string why = read(fileSet);
    return why.empty() ? QS_SUCCESS : refuse(QS_INVAL, why);
  }

 private:
  friend class ExecObj;
  friend class InferenceHandle;
  friend class InferenceSet;

  /// As a QAicOwnerRelease, of a `new shInferenceVector`.
  static void release(void* owner) { delete static_cast<shInferenceVector*>(owner); }

  /// Calls `set` with an owner of the vector and its QAicOwnerRelease. They are the library's where
  /// it succeeds.
  template <class Set>
  static QStatus giveOwned(shInferenceVector vector, Set&& set) {
    auto owner = std::make_unique<shInferenceVector>(std::move(vector));
    const QStatus status = set(owner.get(), &InferenceVector::release);
    if (status == QS_SUCCESS) static_cast<void>(owner.release());
    return status;
  }

  /// For those that run inferences with them.
  const std::vector<QBuffer>& give() noexcept {
    given_.store(true, std::memory_order_relaxed);
    return buffers_;
  }

  explicit InferenceVector(const BufferMappings& mappings)
      : Logger(nullptr, "InferenceVector"), mappings_(mappings), memory_(mappings.size()) {
    for (size_t i = 0; i < mappings_.size(); ++i) {
      memory_[i].allocate(mappings_[i].size);
      buffers_.push_back(memory_[i].getBuffer());
      if (mappings_[i].ioType == BUFFER_IO_TYPE_INPUT) ++inputs_;
    }
  }

  static shInferenceVector ofFiles(const BufferMappings& mappings, v2::BufferMappings shapes,
                                   const std::vector<std::string>& files) {
    shInferenceVector vector(new InferenceVector(mappings));
    vector->shapes_ = std::move(shapes);
    const std::string why = vector->read(files);
    if (!why.empty()) throw CoreExceptionInit("InferenceVector", why, QS_INVAL);
    return vector;
  }

  bool fits(size_t buffer, size_t size) const {
    const std::vector<v2::BufferShape> none;
    return detail::fits(mappings_[buffer], shapes_.empty() ? none : shapes_[buffer].ioShapes, size);
  }

  void fillRandom() {
    std::minstd_rand engine;
    for (size_t i = 0; i < inputs_; ++i)
      for (size_t k = 0; k < memory_[i].size(); ++k)
        memory_[i].dataPtr()[k] = static_cast<uint8_t>(engine() >> 8);
  }

  QStatus wrongCount(const char* what, size_t wanted, size_t given) const {
    return refuse(QS_INVAL, std::to_string(given) + " buffers given for " + std::to_string(wanted) +
                                " " + what + "; pass one for each");
  }

  /// Replaces the buffers from `first` on.
  QStatus put(const std::vector<QBuffer>& buffers, size_t first) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      const BufferMapping& mapping = mappings_[first + i];
      if (fits(first + i, buffers[i].size)) continue;
      return refuse(QS_INVAL, "buffer '" + mapping.bufferName + "' takes " +
                                  std::to_string(mapping.size) + " bytes, given " +
                                  std::to_string(buffers[i].size) + "; pass a buffer of that size" +
                                  (shapes_.empty() ? "" : ", or of one of its shapes"));
    }
    std::copy(buffers.begin(), buffers.end(),
              buffers_.begin() + static_cast<std::ptrdiff_t>(first));
    return QS_SUCCESS;
  }

  /// Why the files cannot be taken; "" when they were.
  std::string read(const std::vector<std::string>& files) {
    if (files.size() != inputs_ && files.size() != buffers_.size())
      return std::to_string(files.size()) + " files given; pass " + std::to_string(inputs_) +
             ", one for each input, or " + std::to_string(buffers_.size()) +
             ", one for each buffer";
    std::vector<std::string> contents(inputs_);
    for (size_t i = 0; i < inputs_; ++i) {
      const std::string why = readInput(files[i], i, contents[i]);
      if (!why.empty()) return why;
    }
    for (size_t i = 0; i < inputs_; ++i) {
      memory_[i].allocate(mappings_[i].size);
      std::copy(contents[i].begin(), contents[i].end(), memory_[i].dataPtr());
      static_cast<void>(memory_[i].shrinkBuffer(contents[i].size()));
      buffers_[i] = memory_[i].getBuffer();
    }
    return {};
  }

  std::string readInput(const std::string& name, size_t input, std::string& content) const {
    const BufferMapping& mapping = mappings_[input];
    std::error_code error;
    if (std::filesystem::is_directory(name, error))
      return "'" + name + "' for input '" + mapping.bufferName + "' is a folder; pass a file";
    std::ifstream file(name, std::ios::binary | std::ios::ate);
    const std::streamoff end = file ? static_cast<std::streamoff>(file.tellg()) : -1;
    if (end < 0) return "cannot open '" + name + "' for input '" + mapping.bufferName + "'";
    const auto size = static_cast<size_t>(end);
    if (!fits(input, size))
      return "'" + name + "' holds " + std::to_string(size) + " bytes, input '" +
             mapping.bufferName + "' takes " + std::to_string(mapping.size);
    content.resize(size);
    file.seekg(0);
    if (size > 0 && !file.read(content.data(), end)) return "cannot read '" + name + "'";
    return {};
  }

  BufferMappings mappings_;
  v2::BufferMappings shapes_;  ///< Empty where it was made without a Qpc.
  size_t inputs_ = 0;
  std::vector<DataBuffer<QBuffer>> memory_;
  std::vector<QBuffer> buffers_;
  std::atomic<bool> given_{false};  ///< An ExecObj or a handle got them.
};

}  // namespace qaic::rt
