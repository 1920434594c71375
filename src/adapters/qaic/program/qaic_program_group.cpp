#include "adapters/qaic/program/qaic_program_group.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "adapters/qaic/context/qaic_context.h"
#include "adapters/qaic/profiling/qaic_profile_tap.h"
#include "adapters/qaic/program/qaic_group_gate.h"
#include "adapters/qaic/program/qaic_one_user.h"
#include "adapters/qaic/program/qaic_program.h"
#include "adapters/qaic/program/qaic_time.h"
#include "corelane/device/device.h"

namespace corelane::qaic {
namespace {

Result<TurnOptions> turn_options(const QAicProgramGroupTurn& turn) {
  if (turn.priority < -128 || turn.priority > 127)
    return error(Code::kInvalidArgument, "priority is {}; -128 to 127 are allowed", turn.priority);
  if (turn.threshold == 0 || (turn.threshold > 1 && turn.timeoutUs == 0))
    return error(Code::kInvalidArgument,
                 "threshold is {} with a timeout of {} us; 1 is allowed, and more with a timeout",
                 turn.threshold, turn.timeoutUs);
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max() / 1000;
  if (turn.timeoutUs > kMost)
    return error(Code::kInvalidArgument, "timeoutUs is {}; at most {} is allowed", turn.timeoutUs,
                 kMost);
  if (!(turn.weight > 0 && turn.weight <= 1e6))
    return error(Code::kInvalidArgument, "weight is {}; above 0 and up to 1e6 are allowed",
                 turn.weight);
  return TurnOptions{turn.threshold,
                     std::chrono::microseconds(static_cast<std::int64_t>(turn.timeoutUs)),
                     turn.priority, turn.weight};
}

}  // namespace

ProgramGroupObject::ProgramGroupObject(GroupParts parts)
    : Object(kKind), parts_(std::move(parts)), gate_(std::make_shared<GroupGate>(parts_.name)) {}

ProgramGroupObject::~ProgramGroupObject() { end(); }

Status ProgramGroupObject::in_use() const {
  return error(Code::kBusy, "another thread changes the group '{}'; wait for it", parts_.name);
}

Result<QAicProgram*> ProgramGroupObject::add(const std::shared_ptr<ProgramObject>& program) {
  const OneUser user(in_call_);
  if (!user) return error(in_use());
  if (enabled_)
    return error(Code::kBusy, "the group '{}' is enabled; disable it before a program is added",
                 parts_.name);
  members_.push_back({program, nullptr, {}});  // First: a handle that nobody ends would be left.
  members_.back().handle = publish(program);
  profiled::created(program->tap());
  return members_.back().handle;
}

Status ProgramGroupObject::set_turn(const ProgramObject& program,
                                    const QAicProgramGroupTurn& turn) {
  const OneUser user(in_call_);
  if (!user) return in_use();
  if (enabled_)
    return error(Code::kBusy, "the group '{}' is enabled; disable it before a turn is set",
                 parts_.name);
  const auto member = std::find_if(members_.begin(), members_.end(), [&](const Member& one) {
    return one.program.get() == &program;
  });
  if (member == members_.end())
    return error(Code::kInvalidArgument,
                 "program '{}' is not of the group '{}'; qaicProgramGroupAddProgram makes its "
                 "programs",
                 program.parts().name, parts_.name);
  CORELANE_ASSIGN(member->turn, turn_options(turn));
  return {};
}

/// Programs that fit have cores of their own. Of those that do not, the one that has the turn has
/// all cores: on a part of them each would have the share that its part's others leave.
Status ProgramGroupObject::activate_all() {
  std::size_t wanted = 0;
  for (const Member& member : members_) wanted += member.program->info().numNsp;
  const bool fit = wanted <= parts_.device->info().cores.size();
  for (const Member& member : members_) {
    ActivateOptions how;
    if (parts_.in_turns) {
      how.turns = turns_;
      how.turn = member.turn;
      if (!fit) how.cores = turns_.cores();
    }
    CORELANE_TRY(member.program->activate_as(how));
  }
  return {};
}

void ProgramGroupObject::deactivate_all() {
  for (const Member& member : members_) member.program->deactivate_in_group();
  turns_ = {};
}

Status ProgramGroupObject::enable() {
  const OneUser user(in_call_);
  if (!user) return in_use();
  if (members_.empty())
    return error(Code::kWrongState, "the group '{}' has no programs; add them before it is enabled",
                 parts_.name);
  if (enabled_) {
    const auto inactive = std::find_if(members_.begin(), members_.end(), [](const Member& one) {
      return one.program->info().status != QAIC_PROGRAM_FULLY_ACTIVATED;
    });
    // While a group is enabled, its activations end with the loss of their device alone.
    if (inactive == members_.end()) return {};
    return error(Code::kWrongState,
                 "program '{}' of the group '{}' is not active any more; disable the group before "
                 "it is enabled again",
                 inactive->program->parts().name, parts_.name);
  }
  if (parts_.in_turns) {
    auto made = TurnGroup::create(parts_.device);
    if (!made) return made.error();
    turns_ = *std::move(made);
  }
  Status activated = activate_all();
  if (!activated.ok()) {
    deactivate_all();
    return activated;
  }
  enabled_ = true;
  gate_->open();
  return {};
}

Status ProgramGroupObject::disable(bool wait, std::uint64_t us) {
  const OneUser user(in_call_);
  if (!user) return in_use();
  if (!enabled_) return {};
  gate_->close();
  Clock& clock = *parts_.device->clock();
  const bool empty =
      !wait || gate_->wait_empty(clock, us == 0 ? kNever : after_us(clock.now(), us));
  // end() came meanwhile. It could not disable the group itself, which this call uses.
  const bool released = !empty && gate_->ended();
  if (!empty && !released) {
    gate_->open();
    return error(
        Code::kTimeout,
        "inferences of the group '{}' are in flight after {} us; it stays enabled, disable "
        "it again or without waiting",
        parts_.name, us);
  }
  turns_.shutdown();
  deactivate_all();
  enabled_ = false;
  if (!released) return {};
  return error(Code::kCancelled, "the group '{}' was released while inferences were in flight",
               parts_.name);
}

void ProgramGroupObject::end() {
  gate_->end();
  static_cast<void>(disable(false, 0));  // kBusy: the thread that uses it has a reference.
  const OneUser user(in_call_);
  if (!user) return;
  for (Member& member : members_) {
    if (member.handle == nullptr) continue;
    handles::take(reinterpret_cast<std::uintptr_t>(std::exchange(member.handle, nullptr)));
    profiled::released(member.program->tap());
  }
  if (queue_ != nullptr)
    handles::take(reinterpret_cast<std::uintptr_t>(std::exchange(queue_, nullptr)));
}

}  // namespace corelane::qaic
