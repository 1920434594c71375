/// ProgramGroup: programs that share the cores of a device. All methods from any thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "QAicApiProgram.hpp"
#include "QAicApiQueue.hpp"

namespace qaic::rt {

class ProgramGroup;
using shProgramGroup = std::shared_ptr<ProgramGroup>;

/// With oversubscription, the default, its programs take turns on the cores of the device, so that
/// they may want more together than there are; without, each holds its own.
class ProgramGroup : public Logger {
 public:
  /// A group without programs, not enabled. Null `properties`: the defaults. Throws
  /// CoreExceptionInit: QS_INVAL, QS_NODEV.
  static shProgramGroup Factory(const shContext& context, QID dev, const char* name,
                                const QAicProgramGroupProperties* properties = nullptr) {
    detail::checkGiven("ProgramGroup", context != nullptr, "context");
    return shProgramGroup(
        new ProgramGroup(context, dev, name != nullptr ? name : "ProgramGroup", properties));
  }

  /// The first program of `qpc`, which enable() loads and activates; it keeps the group. Null
  /// `properties`: the defaults. Throws CoreExceptionInit: QS_BUSY (the group is enabled),
  /// QS_INVAL, QS_UNSUPPORTED (devMapping).
  shProgram addProgram(const shQpc& qpc, const QAicProgramProperties* properties = nullptr) {
    detail::checkGiven("ProgramGroup", qpc != nullptr, "Qpc");
    QAicProgram* made = nullptr;
    detail::checkInit("ProgramGroup", library().qaicProgramGroupAddProgram(
                                          owner_->group, qpc->get(), &made, properties));
    return shProgram(new Program(context_, device_, qpc, made, owner_));
  }
  /// How a program of this group takes its turns. QS_INVAL (of another group, null, a number out of
  /// its range), QS_BUSY (the group is enabled).
  QStatus setTurn(const shProgram& program, const QAicProgramGroupTurn& turn) {
    if (program == nullptr) return refuse(QS_INVAL, "the Program is null");
    return library().qaicProgramGroupSetTurn(owner_->group, program->get(), &turn);
  }
  /// Loads and activates all programs, or none. QS_INVAL (there are none), QS_NOSPC (without
  /// oversubscription: not enough cores), QS_BUSY (another thread changes the group), and those of
  /// Program::load().
  QStatus enable() { return library().qaicProgramGroupEnable(owner_->group); }
  /// Takes no further inference, and gives the cores back. `wait`: once all that were enqueued have
  /// ended, at most `timeout` (0: as long as they may take), else QS_TIMEDOUT and the group stays
  /// enabled; not in a callback. Without: those that wait for a turn end with QS_ERROR.
  template <class Rep = int64_t, class Period = std::micro>
  QStatus disable(bool wait = false, std::chrono::duration<Rep, Period> timeout = {}) {
    return library().qaicProgramGroupDisable(owner_->group, wait, detail::microseconds(timeout));
  }
  /// The same with a limit in microseconds.
  QStatus disable(bool wait, uint64_t timeoutUs) {
    return library().qaicProgramGroupDisable(owner_->group, wait, timeoutUs);
  }
  /// What became of a program's turns since it was activated; zeros where it takes none.
  QStatus getTurnFigures(const shProgram& program, QAicProgramTurnFigures& figures) const {
    if (program == nullptr) return refuse(QS_INVAL, "the Program is null");
    return library().qaicProgramGetTurnFigures(program->get(), &figures);
  }
  /// The group's own queue; any queue of the device serves as well.
  const shQueue& getQueue() const noexcept { return queue_; }
  /// Its device.
  QID getQid() const noexcept { return device_; }
  /// For the C functions.
  QAicProgramGroup* get() const noexcept { return owner_->group; }

  /// Fills in the defaults: control path, oversubscription.
  static void initProperties(QAicProgramGroupProperties& properties) {
    detail::checkInit("ProgramGroup", library().qaicProgramGroupPropertiesInitDefault(&properties));
  }

 private:
  /// The handle, which the programs and the queue of the group keep too.
  struct Owner {
    Owner() = default;
    ~Owner() {
      if (group != nullptr) static_cast<void>(library().qaicReleaseProgramGroup(group));
    }
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    QAicProgramGroup* group = nullptr;
  };

  ProgramGroup(const shContext& context, QID device, const char* name,
               const QAicProgramGroupProperties* properties)
      : Logger(context, name),
        context_(context),
        device_(device),
        owner_(std::make_shared<Owner>()) {
    QAicQueue* queue = nullptr;
    detail::checkInit("ProgramGroup",
                      library().qaicCreateProgramGroup(context->get(), &owner_->group, &queue,
                                                       properties, name, device));
    queue_ = shQueue(new Queue(context, queue, owner_));
  }

  shContext context_;
  QID device_;
  std::shared_ptr<Owner> owner_;
  shQueue queue_;
};

}  // namespace qaic::rt
