#include "adapters/qaic/program/qaic_program.h"

#include <utility>

#include "adapters/qaic/context/qaic_context.h"
#include "adapters/qaic/profiling/qaic_profile_tap.h"
#include "adapters/qaic/program/qaic_buffer_plan.h"
#include "adapters/qaic/program/qaic_group_gate.h"
#include "adapters/qaic/qpc/qaic_qpc.h"
#include "corelane/device/device.h"

namespace corelane::qaic {
namespace {

std::uint32_t next_number() noexcept {
  static std::atomic<std::uint32_t> last{0};
  return ++last;
}

/// Gives the cores back when it goes, even where a context of the activation is left.
struct EndedActivation {
  Activation activation;
  ~EndedActivation() { activation.release(); }
};

}  // namespace

Result<Program> load_program(const ProgramParts& parts) {
  LoadOptions options;
  options.on = parts.on.device;
  options.part = parts.qpc->description(parts.index).part;
  return Program::load(parts.qpc->file(), options);
}

/// The right to load, activate and undo, held by one thread at a time.
class ProgramObject::Change {
 public:
  explicit Change(ProgramObject& program) : program_(program) {
    MutexLock lock(program_.mutex_);
    while (program_.changing_) program_.changed_.wait(lock.native());
    program_.changing_ = true;
  }
  /// The last execution object may have gone meanwhile.
  ~Change() {
    {
      const MutexLock lock(program_.mutex_);
      program_.changing_ = false;
      program_.changed_.notify_all();
    }
    program_.deactivate_if_idle();
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  ProgramObject& program_;
};

ProgramObject::ProgramObject(ProgramParts parts)
    : Object(kKind),
      parts_(std::move(parts)),
      plan_(std::make_shared<BufferPlan>(parts_.qpc, parts_.index)),
      id_(next_number()),
      tap_(std::make_shared<ProfileTap>(ProfiledProgram{id_, parts_.name, parts_.on.device->info(),
                                                        parts_.on.device->clock()})) {}

ProgramObject::~ProgramObject() { activation_.release(); }

/// A loss that is over counts too: nothing is prepared again behind the user's back.
void ProgramObject::look() {
  const std::uint64_t losses = parts_.on.device->counters().losses;
  Program program;  // May be the last references: they go after the lock.
  EndedActivation ended;
  const MutexLock lock(mutex_);
  if (!states_.loaded() || losses == losses_) return;
  states_.advance(ProgramEvent::kLost);
  std::swap(program, program_);
  std::swap(ended.activation, activation_);
}

ProgramObject::Step ProgramObject::load_now() {
  {
    const MutexLock lock(mutex_);
    if (states_.loaded()) return {};
  }
  const std::uint64_t losses = parts_.on.device->counters().losses;
  // The losses were read before: one that comes while it loads counts, see look().
  Result<Program> loaded = load_program(parts_);
  const MutexLock lock(mutex_);
  if (!loaded) {
    const bool lost = loaded.error().code() == Code::kDeviceLost;
    states_.advance(lost ? ProgramEvent::kLost : ProgramEvent::kLoadFailed);
    return {loaded.error(), QAIC_ERROR_PROGRAM_RUNTIME_LOAD_FAILED};
  }
  program_ = *std::move(loaded);
  losses_ = losses;
  loaded_id_ = next_number();
  states_.advance(ProgramEvent::kLoaded);
  return {};
}

ProgramObject::Step ProgramObject::activate_now(const ActivateOptions& how) {
  Program program;
  {
    const MutexLock lock(mutex_);
    if (states_.active()) return {};
    program = program_;
  }
  Result<Activation> made = Activation::create(program, how);
  const MutexLock lock(mutex_);
  if (!made) {
    const bool lost = made.error().code() == Code::kDeviceLost;
    states_.advance(lost ? ProgramEvent::kLost : ProgramEvent::kActivationFailed);
    // The last reference may go with it, after the lock.
    if (lost) std::swap(program, program_);
    return {made.error(), QAIC_ERROR_PROGRAM_RUNTIME_ACTIVATION_FAILED};
  }
  // A look at the device may have found it lost meanwhile.
  if (!states_.advance(ProgramEvent::kActivated))
    return {error(Code::kDeviceLost, "the device was lost while program '{}' was activated",
                  parts_.name),
            QAIC_ERROR_PROGRAM_RUNTIME_ACTIVATION_FAILED};
  activation_ = *std::move(made);
  ++generation_;
  return {};
}

/// Outside of a Change: the error handler may call any function.
Status ProgramObject::told(const Step& step) const {
  if (!step.status.ok()) parts_.context->report(step.type, step.status);
  return step.status;
}

Status ProgramObject::load() {
  look();
  Step step;
  {
    const Change change(*this);
    step = load_now();
  }
  return told(step);
}

/// Nobody but its group takes or gives back its cores.
Status ProgramObject::of_group() const {
  if (parts_.gate == nullptr) return {};
  return error(Code::kWrongState,
               "program '{}' is of the group '{}', which activates and deactivates it; enable or "
               "disable the group",
               parts_.name, parts_.gate->group());
}

Status ProgramObject::activate() {
  CORELANE_TRY(of_group());
  return activate_as({});
}

Status ProgramObject::activate_as(const ActivateOptions& how) {
  look();
  Step step;
  {
    const Change change(*this);
    step = load_now();
    if (step.status.ok()) step = activate_now(how);
    const MutexLock lock(mutex_);
    if (step.status.ok()) by_command_ = true;
  }
  return told(step);
}

void ProgramObject::deactivate_in_group() {
  look();
  const Change change(*this);
  EndedActivation ended;
  const MutexLock lock(mutex_);
  by_command_ = false;
  if (states_.active()) states_.advance(ProgramEvent::kDeactivated);
  std::swap(ended.activation, activation_);
}

TurnFigures ProgramObject::turn_figures() {
  Activation activation;
  {
    const MutexLock lock(mutex_);
    activation = activation_;
  }
  return activation.figures().turn;
}

Status ProgramObject::deactivate() {
  CORELANE_TRY(of_group());
  look();
  const Change change(*this);
  EndedActivation ended;
  const MutexLock lock(mutex_);
  if (!states_.active()) return {};
  if (execs_ != 0)
    return error(Code::kBusy,
                 "program '{}' has {} execution objects; release them before it is deactivated",
                 parts_.name, execs_);
  states_.advance(ProgramEvent::kDeactivated);
  by_command_ = false;
  std::swap(ended.activation, activation_);
  return {};
}

Status ProgramObject::unload() {
  look();
  const Change change(*this);
  Program ended;
  const MutexLock lock(mutex_);
  if (states_.loaded() && execs_ != 0)
    return error(Code::kBusy,
                 "program '{}' has {} execution objects; release them before it is unloaded",
                 parts_.name, execs_);
  if (states_.active())
    return error(Code::kBusy, "program '{}' is active; deactivate it before it is unloaded",
                 parts_.name);
  states_.advance(ProgramEvent::kUnloaded);
  loaded_id_ = 0;
  std::swap(ended, program_);
  return {};
}

Result<ProgramObject::Active> ProgramObject::active(bool automatic) {
  look();
  // Twice at most: what was activated here may be taken away before it is looked at again.
  for (bool tried = false;; tried = true) {
    QAicProgramStatus status{};
    {
      const MutexLock lock(mutex_);
      if (states_.active()) return Active{activation_, generation_};
      status = states_.status();
    }
    if (status == QAIC_PROGRAM_ERROR)
      return error(Code::kDeviceLost,
                   "the device of program '{}' was lost; load the program again once the device is "
                   "back",
                   parts_.name);
    if (parts_.gate != nullptr) return error(parts_.gate->closed_to(parts_.name));
    if (!automatic)
      return error(Code::kWrongState,
                   "program '{}' is not active; activate it, or make its execution objects with "
                   "QAIC_EXECOBJ_PROPERTIES_AUTO_LOAD_ACTIVATE",
                   parts_.name);
    if (tried)
      return error(Code::kBusy, "program '{}' was deactivated while it was about to run",
                   parts_.name);
    Step step;
    {
      const Change change(*this);
      step = load_now();
      if (step.status.ok()) step = activate_now();
    }
    CORELANE_TRY(told(step));
  }
}

void ProgramObject::add_exec() {
  const MutexLock lock(mutex_);
  ++execs_;
}

void ProgramObject::remove_exec() {
  {
    const MutexLock lock(mutex_);
    --execs_;
  }
  deactivate_if_idle();
}

void ProgramObject::deactivate_if_idle() {
  EndedActivation ended;
  const MutexLock lock(mutex_);
  // While `changing_`, the end of that change looks again.
  if (execs_ != 0 || by_command_ || changing_ || !states_.active()) return;
  states_.advance(ProgramEvent::kDeactivated);
  std::swap(ended.activation, activation_);
}

QAicProgramInfo ProgramObject::info() {
  look();
  const ProgramDescription& description = parts_.qpc->description(parts_.index);
  QAicProgramInfo info;
  info.programID = id_;
  info.numNsp = description.cores;
  info.batchSize = description.batch;
  const MutexLock lock(mutex_);
  info.status = states_.status();
  info.loadedID = states_.loaded() ? loaded_id_ : 0;
  return info;
}

}  // namespace corelane::qaic
