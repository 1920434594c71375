/// InferenceHandle: one inference of an InferenceSet: its buffers, its id, how it ended. A set
/// makes its handles; a user gets them of getAvailable() and getCompleted(). One user at a time: a
/// call that sets something, or submits, while another one does is QS_BUSY. What the methods that
/// return references refer to is the user's who has the handle.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "QAicApiInferenceVector.hpp"

namespace qaic::rt {

class InferenceHandle : public Logger {
 public:
  /// All buffers, inputs first; their memory must stay until the inference has completed. They stay
  /// set until others are. QS_INVAL: another number of them, a size that fits no shape of the
  /// buffer, or a type that is none; QS_UNSUPPORTED: PMEM; QS_BADFD: a descriptor below 0; QS_BUSY:
  /// in flight, completed and not collected, or used by another thread; then nothing changes. What
  /// only the device can say, submit() gives.
  QStatus setBuffers(const std::vector<QBuffer>& buffers) { return setAll(buffers, nullptr); }
  /// The same for all inputs.
  QStatus setInputBuffers(const std::vector<QBuffer>& buffers) {
    const OneUser user(busy_);
    return user ? put(buffers, 0, inputs_, "inputs") : inUse();
  }
  /// The same for all outputs.
  QStatus setOutputBuffers(const std::vector<QBuffer>& buffers) {
    const OneUser user(busy_);
    return user ? put(buffers, inputs_, mappings().size() - inputs_, "outputs") : inUse();
  }
  /// The buffers of a vector, which is kept. QS_INVAL also where it is null.
  QStatus setBuffers(const shInferenceVector& vector) {
    if (vector == nullptr) return refuse(QS_INVAL, "the InferenceVector is null");
    return setAll(vector->give(), vector);
  }
  /// Dimensions of each buffer; all together must be one specialization, which submit() checks.
  /// They stay set until others are; no entries: those of the program. QS_INVAL: another number.
  QStatus setBufferDimensions(const BufferDimensions& dimensions) {
    const OneUser user(busy_);
    if (!user) return inUse();
    if (!dimensions.empty() && dimensions.size() != mappings().size())
      return wrongCount(dimensions.size(), mappings().size(), "dimensions");
    dimensions_ = dimensions;
    changed_ = true;
    return QS_SUCCESS;
  }
  /// Those that were set; a buffer that never was has neither size nor memory. What an inference
  /// writes is there once it has completed; the checking mode reports a call before.
  const std::vector<QBuffer>& getBuffers() const noexcept {
    if (busy_) detail::buffersAsked("InferenceHandle::getBuffers", buffers_);
    return buffers_;
  }
  /// What setBufferDimensions() set: bytes of an element and dimensions of each buffer. Empty, as
  /// at first and after InferenceSet::submit() of a vector: the program's own.
  const BufferDimensions& getBufferDimensions() const noexcept { return dimensions_; }

  /// The id of the last submit().
  uint64_t getId() const noexcept { return id_.load(std::memory_order_relaxed); }
  /// How its last inference ended; QS_SUCCESS before one did.
  QStatus getStatus() const noexcept { return status_; }
  /// Why it failed; "" where it did not.
  const std::string& getErrorText() const noexcept { return error_; }
  /// Its number in the set, from 0.
  uint32_t getIndex() const noexcept { return index_; }

 private:
  friend class InferenceSet;

  InferenceHandle(const shContext& context, std::shared_ptr<const v2::BufferMappings> mappings,
                  uint32_t index)
      : Logger(context, "InferenceHandle"),
        mappings_(std::move(mappings)),
        buffers_(mappings_->size()),
        index_(index) {
    for (const v2::BufferMapping& mapping : *mappings_)
      if (mapping.bufferMapping.ioType == BUFFER_IO_TYPE_INPUT) ++inputs_;
  }

  /// The right to change a handle, for one call.
  class OneUser {
   public:
    /// Takes the right where no other call, and no inference, has it.
    explicit OneUser(std::atomic<bool>& busy) noexcept
        : busy_(busy), alone_(!busy.exchange(true)) {}
    ~OneUser() {
      if (alone_) busy_ = false;
    }
    OneUser(const OneUser&) = delete;
    OneUser& operator=(const OneUser&) = delete;
    /// Whether this call has the right; without it the handle must not be changed.
    explicit operator bool() const noexcept { return alone_; }

   private:
    std::atomic<bool>& busy_;
    const bool alone_;
  };

  const v2::BufferMappings& mappings() const noexcept { return *mappings_; }

  QStatus inUse() const {
    return refuse(QS_BUSY,
                  "the handle is in flight, completed and not collected, or used by another "
                  "thread; take it with getCompleted first");
  }
  QStatus wrongCount(size_t given, size_t wanted, const char* what) const {
    return refuse(QS_INVAL, std::to_string(given) + " entries given for " + std::to_string(wanted) +
                                " " + what + "; pass one for each");
  }

  QStatus setAll(const std::vector<QBuffer>& buffers, const shInferenceVector& owner) {
    const OneUser user(busy_);
    if (!user) return inUse();
    const QStatus status = put(buffers, 0, mappings().size(), "buffers");
    if (status == QS_SUCCESS) vector_ = owner;
    return status;
  }

  QStatus put(const std::vector<QBuffer>& buffers, size_t first, size_t count, const char* what) {
    if (buffers.size() != count) return wrongCount(buffers.size(), count, what);
    for (size_t i = 0; i < count; ++i) {
      if (!covering_ && !detail::fits(mappings()[first + i].bufferMapping,
                                      mappings()[first + i].ioShapes, buffers[i].size))
        return refuse(QS_INVAL, "buffer '" + mappings()[first + i].bufferMapping.bufferName +
                                    "' takes " +
                                    std::to_string(mappings()[first + i].bufferMapping.size) +
                                    " bytes, given " + std::to_string(buffers[i].size) +
                                    "; pass a buffer of that size, or of one of its shapes");
      const QStatus status = checkMemory(buffers[i], first + i);
      if (status != QS_SUCCESS) return status;
    }
    std::copy(buffers.begin(), buffers.end(),
              buffers_.begin() + static_cast<std::ptrdiff_t>(first));
    changed_ = true;
    return QS_SUCCESS;
  }

  /// What the library would refuse at submit(), with its code and in its words.
  QStatus checkMemory(const QBuffer& buffer, size_t index) const {
    if (buffer.type == QBUFFER_TYPE_HEAP || buffer.type == QBUFFER_TYPE_INVAL) return QS_SUCCESS;
    const BufferMapping& mapping = mappings()[index].bufferMapping;
    // Dimensions may leave a partial buffer out, whatever its descriptor.
    if (buffer.type == QBUFFER_TYPE_DMABUF &&
        (buffer.handle <= INT32_MAX || buffer.size == 0 || mapping.isPartialBufferAllowed))
      return QS_SUCCESS;
    const std::string name = "buffer " + std::to_string(index) + " ('" + mapping.bufferName + "') ";
    if (buffer.type == QBUFFER_TYPE_DMABUF)
      return refuse(QS_BADFD, name + "is descriptor " +
                                  std::to_string(static_cast<int64_t>(buffer.handle)) +
                                  ", which is not open");
    if (buffer.type == QBUFFER_TYPE_PMEM)
      return refuse(QS_UNSUPPORTED,
                    name +
                        "is QBUFFER_TYPE_PMEM, which is not supported; use memory of the process "
                        "or a descriptor (QBUFFER_TYPE_DMABUF)");
    return refuse(QS_INVAL, name + "has the type " +
                                std::to_string(static_cast<uint32_t>(buffer.type)) +
                                ", which is none of QBufferType");
  }

  std::shared_ptr<const v2::BufferMappings> mappings_;  ///< Shared by the handles of a set.
  size_t inputs_ = 0;
  std::vector<QBuffer> buffers_;
  BufferDimensions dimensions_;
  shInferenceVector vector_;           ///< The owner of buffers_, where one was given.
  std::atomic<bool> covering_{false};  ///< See InferenceSet::setCovering().
  bool changed_ = true;                ///< The library has not these buffers and dimensions yet.
  uint32_t index_;
  std::atomic<uint64_t> id_{0};
  std::atomic<bool> busy_{false};  ///< From submit() until it was collected, and while it is set.
  QStatus status_ = QS_SUCCESS;
  std::string error_;
};

}  // namespace qaic::rt
