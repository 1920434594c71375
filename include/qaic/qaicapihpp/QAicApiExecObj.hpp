/// ExecObj: the buffers of one inference at a time, and its runs. One user at a time; a second one
/// gets QS_BUSY.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "QAicApiInferenceVector.hpp"
#include "QAicApiProgram.hpp"

namespace qaic::rt {

class ExecObj : public Logger {
 public:
  /// An execution object. Null `properties`: its first run loads and activates the program where
  /// that was not done. Throws CoreExceptionInit: QS_INVAL, QS_NOMEM.
  static shExecObj Factory(const shContext& context, const shProgram& program,
                           const QAicExecObjProperties* properties = nullptr) {
    detail::checkGiven("ExecObj", context != nullptr, "context");
    detail::checkGiven("ExecObj", program != nullptr, "program");
    return shExecObj(new ExecObj(context, program, properties));
  }
  /// The same with the buffers of its first run. Throws also where setData() refuses them.
  static shExecObj Factory(const shContext& context, const shProgram& program,
                           const std::vector<QBuffer>& buffers,
                           const QAicExecObjProperties* properties = nullptr) {
    shExecObj object = Factory(context, program, properties);
    detail::checkInit("ExecObj", object->setData(buffers));
    return object;
  }
  ~ExecObj() override { static_cast<void>(library().qaicReleaseExecObj(execObj_)); }

  /// The buffers of the next runs, inputs first; their memory must stay until a run has completed.
  /// QS_INVAL (a size that does not fit), QS_BUSY (in flight), QS_UNSUPPORTED (PMEM), QS_BADFD; a
  /// failure changes nothing.
  QStatus setData(const std::vector<QBuffer>& buffers) { return set(buffers, nullptr, nullptr); }
  /// With dimensions, one entry for each buffer; all together must be one specialization.
  QStatus setData(const std::vector<QBuffer>& buffers, const BufferDimensions& dimensions) {
    if (dimensions.empty()) return setData(buffers);
    if (dimensions.size() != buffers.size())
      return refuse(QS_INVAL, std::to_string(dimensions.size()) + " dimensions for " +
                                  std::to_string(buffers.size()) +
                                  " buffers; pass one entry for each");
    return set(buffers, detail::dimensionsOf(dimensions).data(), nullptr);
  }
  /// The buffers of a vector, which is kept while they are set, and until each inference with them
  /// has ended, whatever goes first. QS_INVAL where it is null.
  QStatus setData(const shInferenceVector& vector) {
    if (vector == nullptr) return refuse(QS_INVAL, "the InferenceVector is null");
    return set(vector->give(), nullptr, vector);
  }
  /// Some of the buffers, by their index; the others stay, and may follow where they were never
  /// set: a run is QS_INVAL until all are there. QS_INVAL also for an index that is none.
  QStatus setData(const std::vector<std::pair<uint32_t, QBuffer>>& buffers) {
    return setSome(buffers, nullptr, {}, {});
  }
  /// The same, and those that `spec` names are slices, which begin where it and the parameters say:
  /// one of an input is written to its place before each run, into state on the device, too, and
  /// what is around it stays; one of an output is cut out of the result. Dimensions, one entry for
  /// each buffer given, are extents of slices; where there is none, or an empty one, a slice goes
  /// to the end of each dimension. QS_INVAL names the buffer, the dimension, its start and extent,
  /// and what is allowed.
  QStatus setDataWithSlices(const std::vector<std::pair<uint32_t, QBuffer>>& buffers,
                            const shSlicingSpec& spec, const SlicingParameters& parameters,
                            const BufferDimensions& dimensions = {}) {
    if (spec == nullptr) return refuse(QS_INVAL, "the slicing specification is null");
    if (!dimensions.empty() && dimensions.size() != buffers.size())
      return refuse(QS_INVAL, std::to_string(dimensions.size()) + " dimensions for " +
                                  std::to_string(buffers.size()) +
                                  " buffers; pass one entry for each");
    return setSome(buffers, spec->get(), parameters, dimensions);
  }
  /// The buffers that it works with: those that were set, or its own with
  /// QAIC_EXECOBJ_PROPERTIES_ZERO_COPY_BUFFERS.
  QStatus getData(std::vector<QBuffer>& buffers) const {
    uint32_t count = 0;
    QBuffer* found = nullptr;
    const QStatus status = library().qaicExecObjGetIoBuffers(execObj_, &count, &found);
    if (status == QS_SUCCESS) buffers.assign(found, found + count);
    return status;
  }

  /// Whether dimensions are taken that are those of no specialization, where one covers them: it
  /// runs with its inputs padded with zeros and its results cut. Not in the vendor's classes.
  QStatus setCovering(bool on) { return library().qaicExecObjSetCovering(execObj_, on); }
  /// Which specialization the buffers that are set run in: its place in the mappings' ioShapes.
  QStatus getSpecialization(uint32_t& specialization) const {
    return library().qaicExecObjGetSpecialization(execObj_, &specialization);
  }

  /// What stays on the device while its buffers are left out (size 0, or the dimensions `{0}`), of
  /// the program's activation: all its execution objects share it, and one inference at a time uses
  /// it. QS_BUSY (in flight), QS_INVAL (the program is not active). Not in the vendor's classes.
  QStatus getStates(std::vector<QAicStateInfo>& states) const {
    uint32_t count = 0;
    QStatus status = library().qaicExecObjGetStates(execObj_, &count, nullptr);
    if (status != QS_SUCCESS) return status;
    states.resize(count);
    status = library().qaicExecObjGetStates(execObj_, &count, states.data());
    return status;
  }
  /// Makes one zeros, by its place in getStates(), or all. QS_BUSY, QS_INVAL.
  QStatus resetState(uint32_t state = QAIC_ALL_STATES) {
    return library().qaicExecObjResetState(execObj_, state);
  }
  /// Copies one in; `size` is its size. QS_INVAL, QS_BUSY.
  QStatus setState(uint32_t state, const void* data, size_t size) {
    return library().qaicExecObjSetState(execObj_, state, data, size);
  }
  /// Copies one out, as the last run that ended well left it. QS_INVAL, QS_BUSY.
  QStatus copyState(uint32_t state, void* data, size_t size) const {
    return library().qaicExecObjCopyState(execObj_, state, data, size);
  }

  /// Runs it and waits. QS_TIMEDOUT after timeout x (retries + 1) of the program's properties,
  /// QS_BUSY, QS_INVAL (no buffers), QS_DEV_ERROR.
  QStatus run() { return library().qaicRunExecObj(execObj_); }
  /// Waits for the inference that was enqueued last, and gives its outcome. QS_INVAL where none was
  /// enqueued.
  QStatus waitForCompletion() { return library().qaicExecObjWaitForCompletion(execObj_, 0); }
  /// Waits no longer than this; then QS_TIMEDOUT, and the inference goes on.
  template <class Rep, class Period>
  QStatus waitForCompletion(std::chrono::duration<Rep, Period> timeout) {
    const uint64_t limit = detail::microseconds(timeout);
    // 0 stands for the time of all attempts in the table.
    return library().qaicExecObjWaitForCompletion(execObj_, limit == 0 ? 1 : limit);
  }

  /// 1 while an inference of it is in flight, whether or not a thread waits for it; else 0. Not in
  /// the vendor's classes.
  uint32_t getInFlight() const noexcept {
    uint32_t count = 0;
    static_cast<void>(library().qaicExecObjGetInFlight(execObj_, &count));
    return count;
  }

  /// Unique in the process, unless setId() gave another. Not while another thread asks for it.
  void setId(QAicExecObjID id) noexcept { id_ = id; }
  /// The number that setId() gave, else the library's, which is unique in the process. Not while
  /// another thread sets it.
  QAicExecObjID getId() const noexcept { return id_; }
  /// The program that it was made with, which it keeps; never null. Any thread.
  const shProgram& getProgram() const noexcept { return program_; }
  /// For the C functions.
  QAicExecObj* get() const noexcept { return execObj_; }

 private:
  ExecObj(const shContext& context, const shProgram& program,
          const QAicExecObjProperties* properties)
      : Logger(context, "ExecObj"), context_(context), program_(program) {
    const QAicApiFunctionTable& api = library();
    detail::checkInit("ExecObj", api.qaicCreateExecObj(context->get(), &execObj_, properties,
                                                       program->get(), nullptr, nullptr, nullptr));
    static_cast<void>(api.qaicExecObjGetId(execObj_, &id_));
  }

  QStatus set(const std::vector<QBuffer>& buffers, const QBufferDimensions* dimensions,
              shInferenceVector vector) {
    const auto count = static_cast<uint32_t>(buffers.size());
    if (vector == nullptr)
      return library().qaicExecObjSetDataExt(execObj_, count, buffers.data(), dimensions);
    return InferenceVector::giveOwned(std::move(vector), [&](void* owner, auto release) {
      return library().qaicExecObjSetOwnedData(execObj_, count, buffers.data(), dimensions, owner,
                                               release);
    });
  }

  /// A vector that was set before stays, since others of its buffers may.
  QStatus setSome(const std::vector<std::pair<uint32_t, QBuffer>>& buffers, QAicSlicingSpec* spec,
                  const SlicingParameters& parameters, const BufferDimensions& dimensions) {
    std::vector<uint32_t> indices;
    std::vector<QBuffer> given;
    for (const auto& [index, buffer] : buffers) {
      indices.push_back(index);
      given.push_back(buffer);
    }
    std::vector<QAicSlicingParameter> values;
    for (const auto& [name, value] : parameters) values.push_back({name.c_str(), value});
    const std::vector<QBufferDimensions> sizes = detail::dimensionsOf(dimensions);
    return library().qaicExecObjSetDataWithSlices(
        execObj_, static_cast<uint32_t>(given.size()), indices.data(), given.data(),
        sizes.empty() ? nullptr : sizes.data(), spec, static_cast<uint32_t>(values.size()),
        values.data());
  }

  shContext context_;
  shProgram program_;
  QAicExecObj* execObj_ = nullptr;
  QAicExecObjID id_ = 0;
};

}  // namespace qaic::rt
