/// A group of programs on one device: side by side, or in turns on cores that are fewer than they
/// want together.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "adapters/qaic/api/qaic_handle.h"
#include "corelane/device/residence.h"
#include "corelane/runtime/turn_group.h"

namespace corelane::qaic {

class ContextObject;
class GroupGate;
class ProgramObject;
class QueueObject;

/// What a group is made of.
struct GroupParts {
  std::shared_ptr<ContextObject> context;
  QID number = 0;
  std::shared_ptr<device::Device> device;  ///< Of that number.
  std::string name;
  bool in_turns = true;
};

/// All functions from any thread. One thread at a time changes it, a second one gets kBusy.
class ProgramGroupObject : public Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kProgramGroup;
  using Handle = QAicProgramGroup;

  explicit ProgramGroupObject(GroupParts parts);
  /// As end().
  ~ProgramGroupObject() override;

  const GroupParts& parts() const noexcept { return parts_; }
  /// Programs are made with it.
  const std::shared_ptr<GroupGate>& gate() const noexcept { return gate_; }
  /// The handle of the group's queue, which ends with the group.
  void own_queue(QAicQueue* queue) noexcept { queue_ = queue; }

  /// A program that was made with this group's gate; gives its handle, which ends with the group.
  /// kBusy while the group is enabled.
  Result<QAicProgram*> add(const std::shared_ptr<ProgramObject>& program);
  /// Sets the turn of a program of this group. kInvalidArgument, kBusy (enabled).
  Status set_turn(const ProgramObject& program, const QAicProgramGroupTurn& turn);
  /// All programs or none. kWrongState (no programs, or enabled and without its activations).
  Status enable();
  /// `us` 0: without a limit. kTimeout: it stays enabled.
  Status disable(bool wait, std::uint64_t us);
  /// Disables it without waiting, and ends the handles of its programs and its queue.
  void end();

 private:
  struct Member {
    std::shared_ptr<ProgramObject> program;
    QAicProgram* handle = nullptr;
    TurnOptions turn;
  };
  Status in_use() const;
  Status activate_all();
  void deactivate_all();

  const GroupParts parts_;
  const std::shared_ptr<GroupGate> gate_;
  std::atomic<bool> in_call_{false};

  // Of the call that holds `in_call_`.
  std::vector<Member> members_;
  TurnGroup turns_;
  bool enabled_ = false;
  QAicQueue* queue_ = nullptr;
};

}  // namespace corelane::qaic
