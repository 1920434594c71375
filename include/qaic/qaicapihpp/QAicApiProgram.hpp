/// Program: a program of a container on one device. It is loaded and activated by the first
/// inference, or by load() and activate(). All methods from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "QAicApiLogger.hpp"
#include "QAicApiQpc.hpp"

namespace qaic::rt {

/// Which buffers of a program are given in slices; of Program::createSlicingSpecHandle(). It may
/// outlive its program. Any thread.
class SlicingSpec {
 public:
  ~SlicingSpec() { static_cast<void>(library().qaicReleaseSlicingSpec(spec_)); }
  SlicingSpec(const SlicingSpec&) = delete;
  SlicingSpec& operator=(const SlicingSpec&) = delete;
  /// For the C functions.
  QAicSlicingSpec* get() const noexcept { return spec_; }

 private:
  friend class Program;
  explicit SlicingSpec(QAicSlicingSpec* spec) noexcept : spec_(spec) {}
  QAicSlicingSpec* spec_;
};
/// Values for the names that a specification has as starts.
using SlicingParameters = std::vector<std::pair<std::string, int64_t>>;

class Program : public Logger {
 public:
  /// The first program of `qpc`, on a device of the context; not loaded yet. `name` is for
  /// messages. Null `properties`: the defaults. devMapping is for a program that was cut into
  /// parts, and names the device of each; `dev` is not looked at then. Throws CoreExceptionInit:
  /// QS_INVAL, QS_NODEV, QS_UNSUPPORTED (devMapping of a program that was not cut).
  static shProgram Factory(const shContext& context, QID dev, const char* name, const shQpc& qpc,
                           const QAicProgramProperties* properties = nullptr) {
    detail::checkGiven("Program", context != nullptr, "context");
    detail::checkGiven("Program", qpc != nullptr, "Qpc");
    return shProgram(
        new Program(context, dev, name != nullptr ? name : "Program", qpc, properties));
  }
  ~Program() override {
    if (group_ == nullptr) static_cast<void>(library().qaicReleaseProgram(program_));
  }

  /// Loads it; nothing where it is loaded. QS_NOMEM, QS_DEV_ERROR, QS_UNSUPPORTED (the device
  /// cannot run the network), QS_DATA_CRC_ERROR.
  QStatus load() { return library().qaicLoadProgram(program_); }
  /// Gives its memory back. QS_BUSY while it is active or execution objects of it live.
  QStatus unload() { return library().qaicUnloadProgram(program_); }
  /// Takes its cores, after loading it where that was not done; it keeps them until deactivate().
  /// QS_NOSPC (no cores are left), and those of load().
  QStatus activate() {
    return library().qaicRunActivationCmd(program_, QAIC_PROGRAM_CMD_ACTIVATE_FULL);
  }
  /// Gives its cores back. QS_BUSY while execution objects of it live.
  QStatus deactivate() {
    return library().qaicRunActivationCmd(program_, QAIC_PROGRAM_CMD_DEACTIVATE_FULL);
  }
  /// Throws CoreExceptionRuntime.
  bool isLoaded() const {
    const QAicProgramStatus status = now().status;
    return status == QAIC_PROGRAM_LOADED || status == QAIC_PROGRAM_FULLY_ACTIVATED;
  }
  /// Throws CoreExceptionRuntime.
  bool isActivated() const { return now().status == QAIC_PROGRAM_FULLY_ACTIVATED; }

  /// As it was made, with the id of setId().
  const ProgramInfo& getProgramInfo() const noexcept { return info_; }
  /// As it stands.
  QStatus getAicProgramInfo(QAicProgramInfo& info) const {
    return library().qaicProgramGetInfo(program_, &info);
  }
  /// The user's number of it. Not while another thread asks for it.
  void setId(QAicProgramID id) noexcept { info_.userDefinedProgramID = id; }
  /// That number; unique in the process where setId() was not called.
  QAicProgramID getId() const noexcept { return info_.userDefinedProgramID; }
  /// Inferences of it that completed, with any outcome. Throws CoreExceptionRuntime.
  uint64_t getInferenceCompleteCount() const {
    uint64_t count = 0;
    detail::checkRun(library().qaicProgramGetInferenceCompletedCount(program_, &count));
    return count;
  }
  /// Its buffers, inputs first.
  const BufferMappings& getBufferMappings() const noexcept { return mappings_; }
  /// A specification for ExecObj::setDataWithSlices(), as JSON: {"BufferSpecs": [{"Name": an
  /// ECMAScript expression for whole names of buffers, "ElemSize": bytes, "DimSpecs": [{"start": a
  /// number, or the name of a parameter}, ...]}, ...]}. QS_INVAL where it does not fit the program.
  QStatus createSlicingSpecHandle(const std::string& json, shSlicingSpec& spec) const {
    QAicSlicingSpec* made = nullptr;
    const QStatus status =
        library().qaicCreateSlicingSpec(program_, &made, json.data(), json.size());
    if (status == QS_SUCCESS) spec.reset(new SlicingSpec(made));
    return status;
  }
  /// The bytes of an aicapi.IoDesc (QAicApi.proto); valid as long as the program.
  QStatus getIoDescriptor(QData* ioDesc) const {
    return library().qaicProgramGetIoDescriptor(program_, ioDesc);
  }
  /// Its device, as passed; devMapping names several.
  QID getQid() const noexcept { return device_; }
  /// The context that it was made in, which it keeps; never null.
  const shContext& getContext() const noexcept { return context_; }
  /// For the C functions.
  QAicProgram* get() const noexcept { return program_; }

  /// Fills in the defaults: 5 retries, a timeout of 0, which stands for 5000 ms, no devMapping.
  static void initProperties(QAicProgramProperties& properties) {
    detail::checkInit("Program", library().qaicProgramPropertiesInitDefault(&properties));
  }

 private:
  friend class InferenceSet;
  friend class ProgramGroup;
  /// Takes a handle over.
  Program(const shContext& context, QID device, const std::string& name, const shQpc& qpc,
          QAicProgram* program)
      : Logger(context, name), context_(context), qpc_(qpc), device_(device), program_(program) {
    describe();
  }
  Program(const shContext& context, QID device, const char* name, const shQpc& qpc,
          const QAicProgramProperties* properties)
      : Logger(context, name), context_(context), qpc_(qpc), device_(device) {
    detail::checkInit("Program", library().qaicCreateProgram(context->get(), &program_, properties,
                                                             device, name, qpc->get()));
    describe();
  }
  /// One that ends with `group`, which it keeps.
  Program(const shContext& context, QID device, const shQpc& qpc, QAicProgram* program,
          std::shared_ptr<void> group)
      : Logger(context, "Program"),
        context_(context),
        qpc_(qpc),
        device_(device),
        program_(program),
        group_(std::move(group)) {
    describe();
  }

  void describe() {
    const QAicApiFunctionTable& api = library();
    QAicProgramInfo now{};
    QAicIoBufferInfo* buffers = nullptr;
    QStatus status = api.qaicProgramGetInfo(program_, &now);
    if (status == QS_SUCCESS) status = api.qaicProgramGetIoBufferInfo(program_, &buffers);
    if (status != QS_SUCCESS) {
      const std::string why = detail::lastError();
      if (group_ == nullptr) static_cast<void>(api.qaicReleaseProgram(program_));
      throw CoreExceptionInit("Program", why, status);
    }
    mappings_ = detail::mappingsOf(*buffers);
    info_.uniqueProgramID = info_.userDefinedProgramID = now.programID;
    info_.numNsp = now.numNsp;
    info_.numMcid = now.numMcid;
    info_.batchSize = now.batchSize;
    info_.isAicStatsAvailable = now.isAicStatsAvailable != 0;
  }

  QAicProgramInfo now() const {
    QAicProgramInfo info{};
    detail::checkRun(getAicProgramInfo(info));
    return info;
  }

  shContext context_;
  shQpc qpc_;
  QID device_;
  QAicProgram* program_ = nullptr;
  std::shared_ptr<void> group_;  ///< That releases it; null: it does so itself.
  BufferMappings mappings_;
  ProgramInfo info_;
};

}  // namespace qaic::rt
