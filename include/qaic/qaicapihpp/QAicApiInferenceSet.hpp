/// InferenceSet: activations of a program with handles for inferences that run at the same time.
///
/// getAvailable() -> setBuffers() -> submit() -> getCompletedId() -> read the outputs ->
/// putCompleted(). One thread may submit while another collects: all methods from any thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "QAicApiInferenceHandle.hpp"
#include "QAicApiProgram.hpp"

namespace qaic::rt {

/// The device of a set: a number, a text with a number, or none (-1), for the first of the
/// context's devices that has room and takes the program. Of a program that was cut into parts also
/// a text with a number for each part, "0:1", which is its devMapping where the properties have
/// none.
class DeviceChoice {
 public:
  /// No device is named, as with -1.
  DeviceChoice(std::nullopt_t = std::nullopt) noexcept {}
  /// The device with this number; -1 names none. The set's factory throws, with QS_NODEV, where the
  /// context does not have it.
  DeviceChoice(QID device) noexcept : device_(device) {}
  /// The same; an empty optional names none.
  DeviceChoice(std::optional<QID> device) noexcept : device_(device.value_or(-1)) {}
  /// Throws CoreExceptionInit, QS_INVAL, for a text of anything but numbers.
  DeviceChoice(const std::string& device)
      : mapping_(isMapping(device) ? device : std::string()),
        device_(mapping_.empty() ? parse(device) : -1) {}
  /// The same; an empty optional names none.
  DeviceChoice(const std::optional<std::string>& device)
      : DeviceChoice(device ? DeviceChoice(*device) : DeviceChoice()) {}
  /// -1: none, or several.
  QID get() const noexcept { return device_; }
  /// "0:1"; empty: not several.
  const std::string& mapping() const noexcept { return mapping_; }

 private:
  static bool isMapping(const std::string& text) {
    return text.find(':') != std::string::npos &&
           text.find_first_not_of("0123456789:") == std::string::npos;
  }
  static QID parse(const std::string& text) {
    const bool digits = !text.empty() && text.size() < 10 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
    if (digits) return static_cast<QID>(std::stol(text));
    throw CoreExceptionInit("InferenceSet",
                            "device '" + text +
                                "' is not a number of one device; pass one of "
                                "Util::getDeviceIds, or none",
                            QS_INVAL);
  }

  std::string mapping_;
  QID device_ = -1;
};

class InferenceSet : public Logger {
 public:
  /// `setSize` x `numActivations` handles, all available. `dmaVectors`: none, or the buffers that
  /// each handle begins with, one vector for each. Null `properties`: the defaults. Throws
  /// CoreExceptionInit: QS_INVAL, QS_NODEV, QS_NOSPC (cores), QS_NOMEM, QS_UNSUPPORTED
  /// (devMapping). `enableProfiling` is accepted: a set that nobody profiles pays nothing, so that
  /// each can be profiled, through getProgram().
  static shInferenceSet Factory(const shContext& context, const shQpc& qpc,
                                const DeviceChoice& device, uint32_t setSize,
                                uint32_t numActivations,
                                const std::vector<shInferenceVector>& dmaVectors,
                                const InferenceSetProperties* properties = nullptr,
                                bool enableProfiling = false) {
    detail::checkGiven("InferenceSet", context != nullptr, "context");
    detail::checkGiven("InferenceSet", qpc != nullptr, "Qpc");
    static_cast<void>(enableProfiling);
    const InferenceSetProperties defaults;
    shInferenceSet set(new InferenceSet(context, qpc, device, setSize, numActivations,
                                        properties != nullptr ? *properties : defaults));
    set->begin(static_cast<size_t>(setSize) * numActivations, dmaVectors);
    return set;
  }
  /// The same without buffers: those of a handle are set before its first submit(). By default one
  /// activation with 10 handles, on the first device that has room.
  static shInferenceSet Factory(const shContext& context, const shQpc& qpc,
                                const DeviceChoice& device = {}, uint32_t setSize = 10,
                                uint32_t numActivations = 1,
                                const InferenceSetProperties* properties = nullptr) {
    return Factory(context, qpc, device, setSize, numActivations, NoVectors{}, properties, false);
  }
  /// The same with properties by reference. Handles have no buffers at first.
  static shInferenceSet Factory(const shContext& context, const shQpc& qpc,
                                const DeviceChoice& device, uint32_t setSize,
                                uint32_t numActivations, const InferenceSetProperties& properties) {
    return Factory(context, qpc, device, setSize, numActivations, NoVectors{}, &properties, false);
  }
  /// `Flag` is bool; nothing converts to it.
  template <class Flag, std::enable_if_t<std::is_same_v<Flag, bool>, int> = 0>
  static shInferenceSet Factory(const shContext& context, const shQpc& qpc,
                                const DeviceChoice& device, uint32_t setSize,
                                uint32_t numActivations, const InferenceSetProperties* properties,
                                Flag enableProfiling) {
    return Factory(context, qpc, device, setSize, numActivations, NoVectors{}, properties,
                   static_cast<bool>(enableProfiling));
  }
  /// As shutdown(): calls that wait return QS_ERROR. No call may begin after this.
  ~InferenceSet() override { static_cast<void>(library().qaicReleaseInferenceSet(state_->set)); }

  /// Takes an available handle, waiting for one. QS_ERROR (the set was shut down). With
  /// CORELANE_QAIC_CHECK=1 QS_AGAIN, where the calling thread seems to hold them all, and would
  /// wait forever.
  QStatus getAvailable(shInferenceHandle& handle) {
    return available(state_, handle, QAIC_WAIT_FOREVER);
  }
  /// Waits no longer than this; then QS_TIMEDOUT.
  template <class Rep, class Period>
  QStatus getAvailable(shInferenceHandle& handle, std::chrono::duration<Rep, Period> timeout) {
    return available(state_, handle, detail::microseconds(timeout));
  }

  /// Begins an inference with the handle's buffers. Of a handle that was taken, or that is
  /// available and so is taken by this. Waits for room where the device's line is full, at most
  /// 6.375 s, and never for another handle. QS_BUSY (in flight, or completed and not collected; the
  /// line is full yet), QS_INVAL (null, of another set, buffers that do not fit), QS_DEV_ERROR,
  /// QS_ERROR (shut down or cancelled while it waited); then the handle is taken, or available, as
  /// before.
  QStatus submit(const shInferenceHandle& handle, uint64_t id = 0) {
    return owns(handle) ? submit(*state_, *handle, id) : notOurs(handle);
  }
  /// Waits for an available handle and begins an inference with the vector's buffers, whatever
  /// dimensions and covering the handle had before; the vector is kept. Of a partial input that it
  /// has shorter, or leaves out, the rest is what the handle had there before. The codes of
  /// getAvailable() and submit(); after a failure the handle is available again.
  QStatus submit(const shInferenceVector& vector, uint64_t id = 0) {
    if (vector == nullptr) return refuse(QS_INVAL, "the InferenceVector is null");
    const shState state = state_;
    shInferenceHandle handle;
    QStatus status = available(state, handle, QAIC_WAIT_FOREVER);
    if (status != QS_SUCCESS) return status;
    // What an earlier user left on the handle is not the vector's.
    if (handle->covering_) status = cover(*state, *handle, false);
    if (status == QS_SUCCESS) status = handle->setBufferDimensions({});
    if (status == QS_SUCCESS) status = handle->setBuffers(vector);
    if (status == QS_SUCCESS) status = submit(*state, *handle, id);
    if (status != QS_SUCCESS) static_cast<void>(put(*state, *handle));
    return status;
  }

  /// Takes a completed handle, in no fixed order, waiting for one, and gives the inference's
  /// outcome: the handle is filled also where that is a failure. QS_INVAL as soon as nothing is in
  /// flight or completed, QS_ERROR (the set was shut down); then the handle is null.
  QStatus getCompleted(shInferenceHandle& handle) {
    return completed(state_, handle, QAIC_WAIT_FOREVER);
  }
  /// Waits no longer than this, also with nothing in flight; then QS_TIMEDOUT and a null handle.
  template <class Rep, class Period>
  QStatus getCompleted(shInferenceHandle& handle, std::chrono::duration<Rep, Period> timeout) {
    return completed(state_, handle, detail::microseconds(timeout));
  }
  /// The same for the inference of this id; of several, the one submitted first. QS_INVAL at once
  /// where none with it is in flight or completed.
  QStatus getCompletedId(shInferenceHandle& handle, uint64_t id) {
    return completedId(state_, handle, id, QAIC_WAIT_FOREVER);
  }
  /// Waits no longer than this; then QS_TIMEDOUT and a null handle. QS_INVAL at once, too, where no
  /// inference of the id is in flight or completed.
  template <class Rep, class Period>
  QStatus getCompletedId(shInferenceHandle& handle, uint64_t id,
                         std::chrono::duration<Rep, Period> timeout) {
    return completedId(state_, handle, id, detail::microseconds(timeout));
  }

  /// Makes a handle available that was taken. A user who keeps a pointer may submit it later.
  /// QS_INVAL where it is null, of another set, or not taken; then nothing changes.
  QStatus putCompleted(shInferenceHandle handle) {
    return owns(handle) ? put(*state_, *handle) : notOurs(handle);
  }

  /// Waits until all that was submitted before has completed, whatever others submit meanwhile;
  /// completed handles stay to be collected. At once where nothing was submitted.
  QStatus waitForCompletion() {
    return library().qaicInferenceSetWaitForCompletion(state_->set, QAIC_WAIT_FOREVER);
  }
  /// Waits no longer than this; then QS_TIMEDOUT.
  template <class Rep, class Period>
  QStatus waitForCompletion(std::chrono::duration<Rep, Period> timeout) {
    return library().qaicInferenceSetWaitForCompletion(state_->set, detail::microseconds(timeout));
  }
  /// As waitForCompletion(), and makes every handle available that has completed by then and that
  /// nobody collected. The outcome of the first that failed.
  QStatus drain() { return drainAll(state_, QAIC_WAIT_FOREVER); }
  /// Waits no longer than this; then QS_TIMEDOUT, and collects nothing.
  template <class Rep, class Period>
  QStatus drain(std::chrono::duration<Rep, Period> timeout) {
    return drainAll(state_, detail::microseconds(timeout));
  }
  /// Cancels the inference of this id where it has not started; it completes with QS_ERROR. Of one
  /// whose submit() waits for room that call returns QS_ERROR, unless room came first. QS_BUSY (it
  /// runs), QS_INVAL (there is no such).
  QStatus cancel(uint64_t id) { return library().qaicInferenceSetCancel(state_->set, id); }
  /// Ends the set: calls that wait, and later ones, return QS_ERROR; what has not started is
  /// cancelled, what runs goes on.
  QStatus shutdown() { return library().qaicInferenceSetShutdown(state_->set); }
  /// How many of its inferences are in flight, also after shutdown(). Not in the vendor's classes.
  uint32_t getInFlight() const noexcept {
    uint32_t count = 0;
    static_cast<void>(library().qaicInferenceSetGetInFlight(state_->set, &count));
    return count;
  }
  /// A descriptor that polls readable while getCompleted() would return at once. It belongs to the
  /// set. Throws CoreExceptionRuntime.
  int fd() const {
    int descriptor = -1;
    detail::checkRun(library().qaicInferenceSetGetFd(state_->set, &descriptor));
    return descriptor;
  }

  /// As ExecObj::setCovering() of the handle; results are cut when they are collected.
  QStatus setCovering(const shInferenceHandle& handle, bool on) {
    return owns(handle) ? cover(*state_, *handle, on) : notOurs(handle);
  }
  /// Which specialization the handle's last inference ran in.
  QStatus getSpecialization(const shInferenceHandle& handle, uint32_t& specialization) const {
    if (!owns(handle)) return notOurs(handle);
    return library().qaicInferenceSetGetSpecialization(state_->set, handle->index_,
                                                       &specialization);
  }

  /// What stays on the device while its buffers are left out, of the handle's activation
  /// (`getIndex() % numActivations`), whose handles share it: one inference of them at a time uses
  /// it, others get QS_BUSY. Not in the vendor's classes. QS_BUSY (the handle is in flight, or not
  /// collected), QS_INVAL.
  QStatus getStates(const shInferenceHandle& handle, std::vector<QAicStateInfo>& states) const {
    if (!owns(handle)) return notOurs(handle);
    uint32_t count = 0;
    QStatus status =
        library().qaicInferenceSetGetStates(state_->set, handle->index_, &count, nullptr);
    if (status != QS_SUCCESS) return status;
    states.resize(count);
    status =
        library().qaicInferenceSetGetStates(state_->set, handle->index_, &count, states.data());
    return status;
  }
  /// Makes one zeros, by its place in getStates(), or all.
  QStatus resetState(const shInferenceHandle& handle, uint32_t state = QAIC_ALL_STATES) {
    if (!owns(handle)) return notOurs(handle);
    return library().qaicInferenceSetResetState(state_->set, handle->index_, state);
  }
  /// Copies one in; `size` is its size.
  QStatus setState(const shInferenceHandle& handle, uint32_t state, const void* data, size_t size) {
    if (!owns(handle)) return notOurs(handle);
    return library().qaicInferenceSetSetState(state_->set, handle->index_, state, data, size);
  }
  /// Copies one out, as the last inference that ended well left it.
  QStatus copyState(const shInferenceHandle& handle, uint32_t state, void* data,
                    size_t size) const {
    if (!owns(handle)) return notOurs(handle);
    return library().qaicInferenceSetCopyState(state_->set, handle->index_, state, data, size);
  }

  /// Its program as it stands, and its device.
  QStatus getAicProgramInfoV2(QAicProgramInfoV2& info) const {
    return library().qaicInferenceSetGetProgramInfo(state_->set, &info);
  }
  /// Its program, for ProfilingHandle and StreamProfilingHandle: those profile the set. What else
  /// it is used for is apart from the set. Throws CoreExceptionRuntime.
  shProgram getProgram() const {
    QAicProgramInfoV2 info{};
    detail::checkRun(getAicProgramInfoV2(info));
    QAicProgram* program = nullptr;
    detail::checkRun(library().qaicInferenceSetGetProgram(state_->set, &program));
    return shProgram(new Program(context_, info.qid[0], objName(), qpc_, program));
  }
  /// The number of InferenceSetProperties.
  uint32_t getId() const noexcept { return id_; }
  /// How many handles it has.
  size_t size() const noexcept { return state_->handles.size(); }

 private:
  using NoVectors = std::vector<shInferenceVector>;
  /// What a call that waits uses. It keeps it: the set may go meanwhile.
  struct State {
    QAicInferenceSet* set = nullptr;
    std::vector<shInferenceHandle> handles;
  };
  using shState = std::shared_ptr<State>;

  InferenceSet(const shContext& context, const shQpc& qpc, const DeviceChoice& device,
               uint32_t setSize, uint32_t numActivations, const InferenceSetProperties& properties)
      : Logger(context, properties.name), context_(context), qpc_(qpc), id_(properties.id) {
    QAicInferenceSetConfig config{};
    QAicProgramProperties program = properties.programProperties;
    if (program.devMapping == nullptr && !device.mapping().empty())
      program.devMapping = device.mapping().c_str();
    config.device = device.get();
    config.setSize = setSize;
    config.numActivations = numActivations;
    config.programProperties = &program;
    config.queueProperties = &properties.queueProperties;
    config.name = properties.name.c_str();
    detail::checkInit("InferenceSet", library().qaicCreateInferenceSet(context->get(), &state_->set,
                                                                       &config, qpc->get()));
  }

  /// Makes the handles; the library has as many.
  void begin(size_t count, const std::vector<shInferenceVector>& vectors) {
    const auto mappings = std::make_shared<const v2::BufferMappings>(qpc_->getBufferMappingsV2());
    if (!vectors.empty() && vectors.size() != count)
      throw CoreExceptionInit("InferenceSet",
                              std::to_string(vectors.size()) + " vectors for " +
                                  std::to_string(count) + " handles; pass one for each, or none",
                              QS_INVAL);
    std::vector<shInferenceHandle>& handles = state_->handles;
    handles.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      handles.push_back(
          shInferenceHandle(new InferenceHandle(context_, mappings, static_cast<uint32_t>(i))));
      if (vectors.empty()) continue;
      detail::checkGiven("InferenceSet", vectors[i] != nullptr,
                         ("vector " + std::to_string(i)).c_str());
      if (handles[i]->setBuffers(vectors[i]) != QS_SUCCESS)
        throw CoreExceptionInit("InferenceSet",
                                "vector " + std::to_string(i) +
                                    " does not fit the program; make "
                                    "it with InferenceVector::Factory(qpc)",
                                QS_INVAL);
    }
  }

  bool owns(const shInferenceHandle& handle) const noexcept {
    return handle != nullptr && handle->index_ < state_->handles.size() &&
           state_->handles[handle->index_] == handle;
  }
  QStatus notOurs(const shInferenceHandle& handle) const {
    return refuse(QS_INVAL, handle == nullptr ? "the handle is null; take one of getAvailable"
                                              : "the handle belongs to another set; take one of "
                                                "this set's getAvailable");
  }

  /// Hands over the buffers that the library does not have yet.
  static QStatus give(const State& state, InferenceHandle& handle) {
    if (!handle.changed_) return QS_SUCCESS;
    const auto dimensions = detail::dimensionsOf(handle.dimensions_);
    const QStatus status = give(state, handle, dimensions.empty() ? nullptr : dimensions.data());
    if (status == QS_SUCCESS) handle.changed_ = false;
    return status;
  }
  /// The library keeps a vector until its inference has ended, also where the set goes first.
  static QStatus give(const State& state, const InferenceHandle& handle,
                      const QBufferDimensions* dimensions) {
    const auto count = static_cast<uint32_t>(handle.buffers_.size());
    const QBuffer* const buffers = handle.buffers_.data();
    if (handle.vector_ == nullptr)
      return library().qaicInferenceSetSetData(state.set, handle.index_, count, buffers,
                                               dimensions);
    return InferenceVector::giveOwned(handle.vector_, [&](void* owner, auto release) {
      return library().qaicInferenceSetSetOwnedData(state.set, handle.index_, count, buffers,
                                                    dimensions, owner, release);
    });
  }
  static QStatus submit(const State& state, InferenceHandle& handle, uint64_t id) {
    if (handle.busy_.exchange(true)) return handle.inUse();
    const uint64_t before = handle.id_.exchange(id);
    QStatus status = give(state, handle);
    if (status == QS_SUCCESS)
      status = library().qaicInferenceSetSubmit(state.set, handle.index_, id);
    if (status == QS_SUCCESS) return status;  // Another thread may have the handle by now.
    handle.id_ = before;
    handle.busy_ = false;
    return status;
  }
  static QStatus cover(const State& state, InferenceHandle& handle, bool on) {
    const InferenceHandle::OneUser user(handle.busy_);
    if (!user) return handle.inUse();
    const QStatus status = library().qaicInferenceSetSetCovering(state.set, handle.index_, on);
    if (status == QS_SUCCESS) handle.covering_ = on;
    return status;
  }
  static QStatus put(const State& state, const InferenceHandle& handle) {
    return library().qaicInferenceSetPutCompleted(state.set, handle.index_);
  }

  static QStatus available(const shState state, shInferenceHandle& handle, uint64_t timeoutUs) {
    uint32_t index = kNone;
    const QStatus status = library().qaicInferenceSetGetAvailable(state->set, timeoutUs, &index);
    handle = status == QS_SUCCESS && index != kNone ? state->handles[index] : nullptr;
    return status;
  }
  static QStatus completed(const shState state, shInferenceHandle& handle, uint64_t timeoutUs) {
    uint32_t index = kNone;
    const QStatus status = library().qaicInferenceSetGetCompleted(state->set, timeoutUs, &index);
    return taken(*state, handle, index, status);
  }
  static QStatus completedId(const shState state, shInferenceHandle& handle, uint64_t id,
                             uint64_t timeoutUs) {
    uint32_t index = kNone;
    const QStatus status =
        library().qaicInferenceSetGetCompletedId(state->set, id, timeoutUs, &index);
    return taken(*state, handle, index, status);
  }
  /// `index` is kNone where no inference ended with `status`.
  static QStatus taken(const State& state, shInferenceHandle& handle, uint32_t index,
                       QStatus status) {
    if (index == kNone) {
      handle = nullptr;
      return status;
    }
    handle = state.handles[index];
    handle->status_ = status;
    if (status != QS_SUCCESS)
      handle->error_ = detail::lastError();
    else if (!handle->error_.empty())
      handle->error_.clear();
    handle->busy_ = false;
    return status;
  }

  static QStatus drainAll(const shState state, uint64_t timeoutUs) {
    const QStatus waited = library().qaicInferenceSetWaitForCompletion(state->set, timeoutUs);
    if (waited != QS_SUCCESS) return waited;
    QStatus first = QS_SUCCESS;
    // Others may submit and complete without end.
    for (size_t left = state->handles.size(); left > 0; --left) {
      shInferenceHandle handle;
      const QStatus status = completed(state, handle, 0);
      if (handle == nullptr) return first;
      if (first == QS_SUCCESS) first = status;
      static_cast<void>(put(*state, *handle));
    }
    return first;
  }

  static constexpr uint32_t kNone = UINT32_MAX;

  shContext context_;
  shQpc qpc_;
  uint32_t id_;
  const shState state_ = std::make_shared<State>();
};

}  // namespace qaic::rt
