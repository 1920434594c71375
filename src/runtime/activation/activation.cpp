#include "corelane/runtime/activation.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/guard.h"
#include "base/reserve.h"
#include "corelane/runtime/program.h"
#include "runtime/activation/activation_state.h"
#include "runtime/activation/turn_core.h"
#include "runtime/context/context_state.h"
#include "runtime/context/kept_states.h"
#include "runtime/program/program_state.h"

namespace corelane {

Result<Activation> Activation::create(const Program& program, const ActivateOptions& options) {
  if (program.state_ == nullptr)
    return error(Code::kWrongState,
                 "an activation needs a program that is loaded; see "
                 "Program::load");
  return no_throw("activating a program", [&]() -> Result<Activation> {
    Activation activation;
    CORELANE_ASSIGN(activation.state_, ActivationState::create(program.state_, options));
    return activation;
  });
}

device::CoreSet Activation::cores() const noexcept {
  return state_ == nullptr ? device::CoreSet::mask(0) : state_->cores();
}

Result<Context> Activation::new_context() const {
  if (state_ == nullptr)
    return error(Code::kWrongState, "this activation was never made; see Activation::create");
  return no_throw("making a context", [&]() -> Result<Context> {
    Context context;
    CORELANE_ASSIGN(context.state_, ContextState::create(state_->program(), state_));
    return context;
  });
}

void Activation::release() {
  if (state_ != nullptr) state_->release();
}

ActivationFigures Activation::figures() const {
  return state_ == nullptr ? ActivationFigures{} : state_->figures();
}

Result<std::shared_ptr<ActivationState>> ActivationState::create(
    std::shared_ptr<ProgramState> program, const ActivateOptions& options) {
  // What it has by the time of a failure, its destructor gives back.
  std::shared_ptr<ActivationState> state(new ActivationState);
  state->program_ = std::move(program);
  const ProgramDescription& description = state->program_->description;
  if (!description.states.empty())
    state->states_ = runtime::new_state_store(description, state->program_->context_bytes);
  CORELANE_TRY(state->hold(options));
  return state;
}

Status ActivationState::hold(const ActivateOptions& options) {
  const std::shared_ptr<runtime::TurnCore>& turns = options.turns.core_;
  auto first = program_->executables->first();
  if (first.executable != nullptr && first.executable->lost()) {
    // The macro is two statements.
    CORELANE_ASSIGN(first, program_->executables->for_shapes(first.shapes));
  }
  if (first.executable == nullptr)
    return error(Code::kWrongState,
                 "nothing of program '{}' is prepared that could be activated: its dimensions are "
                 "open, and device '{}' wants them fixed; give shape sets, or run a context first",
                 program_->description.name, program_->device->info().instance);
  const bool own_wish = options.cores == device::CoreSet();
  device::CoreSet cores = own_wish ? program_->default_cores : options.cores;
  residency_ = options.residency.value_or(turns != nullptr ? device::Residency::kShared
                                                           : device::Residency::kExclusive);
  if (turns != nullptr) {
    if (residency_ == device::Residency::kExclusive)
      return error(Code::kInvalidArgument,
                   "program '{}' cannot hold cores exclusively on which others have turns; use "
                   "kShared, or leave the turns out",
                   program_->description.name);
    if (turns->device() != program_->device)
      return error(Code::kInvalidArgument,
                   "the turn group is on device '{}', program '{}' on '{}'; make one on that",
                   turns->device()->info().instance, program_->description.name,
                   program_->device->info().instance);
    CORELANE_TRY(cores.check(program_->device->info().cores.size()));
    // The macro is two statements.
    CORELANE_ASSIGN(cores, turns->choose(cores));
  }
  std::shared_ptr<device::Residence> residence;
  CORELANE_ASSIGN(residence, first.executable->make_resident(cores, residency_));
  asked_ = cores;
  const device::CoreSet held = residence->cores();
  {
    const MutexLock lock(mutex_);
    take_up(*residence);
    residence_ = std::move(residence);
    admitted_.push_back(first.executable);
  }
  // What was lost with its device joins when it is prepared again.
  for (const auto& executable : program_->executables->all())
    if (!executable->lost()) CORELANE_TRY(admit(executable));
  if (turns == nullptr) return {};
  // Last: only a member leaves.
  CORELANE_ASSIGN(member_, turns->join(held, options.turn));
  turns_ = turns;
  return {};
}

device::CoreSet ActivationState::cores() const {
  const MutexLock lock(mutex_);
  return cores_;
}

void ActivationState::take_up(const device::Residence& residence) {
  cores_ = residence.cores();
  const std::size_t wish =
      std::min(std::max<std::size_t>(program_->default_cores.count(), 1), cores_.count());
  default_ = device::CoreSet::any_of(cores_, wish);
}

ActivationState::~ActivationState() {
  if (turns_ != nullptr) turns_->leave(member_);
}

Result<device::CoreSet> ActivationState::cores_for(const device::CoreSet& asked) const {
  using device::CoreSet;
  const MutexLock lock(mutex_);
  if (asked == CoreSet()) return default_;
  const bool joins = program_->device->info().capabilities.multi_core_jobs;
  if (asked.kind() == CoreSet::Kind::kPlatform) return joins ? cores_ : CoreSet::any_of(cores_);
  const bool inside = asked.kind() == CoreSet::Kind::kAny
                          ? asked.count() >= 1 && asked.count() <= cores_.count()
                          : (asked.among() & ~cores_.bits()) == 0;
  if (!inside)
    return error(Code::kInvalidArgument,
                 "core set '{}' is not of the cores '{}' of this activation of program '{}'; ask "
                 "for some of these, or for 'any'",
                 asked.to_string(), cores_.to_string(), program_->description.name);
  return asked.kind() == CoreSet::Kind::kAny ? CoreSet::any_of(cores_, asked.count()) : asked;
}

/// The right to change the residence, held by one thread at a time: of two that come back after a
/// loss, one makes it anew, and the other finds it.
class ActivationState::Change {
 public:
  explicit Change(ActivationState& state) CORELANE_REQUIRES(state.mutex_) : state_(state) {
    state_.changing_ = true;
  }
  /// Threads that wait go on whatever ended the change, an exception included.
  ~Change() {
    const MutexLock lock(state_.mutex_);
    state_.changing_ = false;
    state_.changed_.notify_all();
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  ActivationState& state_;
};

/// Another activation that came back first may have the cores. Cores that the user named, and those
/// of a turn group, are not exchanged for others.
Result<std::shared_ptr<device::Residence>> ActivationState::reside_again(
    device::Executable& executable) const {
  auto residence = executable.make_resident(cores(), residency_);
  if (residence || turns_ != nullptr || asked_.is_mask()) return residence;
  if (residence.error().code() != Code::kOutOfCores) return residence;
  return executable.make_resident(asked_, residency_);
}

Status ActivationState::admit(const std::shared_ptr<device::Executable>& executable) {
  const auto resides = [&]() CORELANE_REQUIRES(mutex_) {
    return std::any_of(admitted_.begin(), admitted_.end(),
                       [&](const auto& one) { return one.lock() == executable; });
  };
  std::shared_ptr<device::Residence> residence;
  std::optional<Change> change;
  {
    MutexLock lock(mutex_);
    while (changing_) changed_.wait(lock.native());
    if (released_) return released();
    if (resides()) return {};
    change.emplace(*this);
    residence = residence_;
  }
  const Status added = residence->add(executable);
  if (added.code() == Code::kDeviceLost) {
    // It ended with the device. An earlier executable is refused here too.
    CORELANE_ASSIGN(residence, reside_again(*executable));
  } else {
    CORELANE_TRY(added);
  }
  const MutexLock lock(mutex_);
  if (released_ && runs_ == 0) return released();
  // The one before goes after the lock, with `residence`.
  residence_.swap(residence);
  take_up(*residence_);
  std::erase_if(admitted_, [](const auto& one) { return one.expired(); });
  admitted_.push_back(executable);
  return {};
}

Status ActivationState::released() const {
  return error(Code::kWrongState,
               "the activation of program '{}' was released; make another, and contexts of that",
               program_->description.name);
}

Status ActivationState::begin_run() {
  const MutexLock lock(mutex_);
  if (released_) return released();
  ++runs_;
  return {};
}

/// The residence goes after the lock: the device has one of its own.
void ActivationState::end_run(bool& ended) {
  std::shared_ptr<device::Residence> residence;
  const MutexLock lock(mutex_);
  if (std::exchange(ended, true)) return;
  if (--runs_ == 0 && released_) residence.swap(residence_);
}

void ActivationState::release() {
  std::shared_ptr<device::Residence> residence;
  const MutexLock lock(mutex_);
  released_ = true;
  if (runs_ == 0) residence.swap(residence_);
}

ActivationFigures ActivationState::figures() const {
  ActivationFigures figures;
  // Before the lock, which is a leaf: the group takes its own.
  if (turns_ != nullptr) figures.turn = turns_->figures(member_);
  const MutexLock lock(mutex_);
  figures.executables = static_cast<std::size_t>(std::count_if(
      admitted_.begin(), admitted_.end(), [](const auto& one) { return !one.expired(); }));
  return figures;
}

Result<ActivationRun> ActivationRun::begin(std::shared_ptr<ActivationState> activation,
                                           const device::CoreSet& asked, device::Submission& job) {
  CORELANE_ASSIGN(job.cores, activation->cores_for(asked));
  CORELANE_TRY(activation->begin_run());
  ActivationRun run;
  run.activation_ = std::move(activation);
  if (run.activation_->turns_ == nullptr) return run;
  // Its end signals the fences of other jobs, whose inputs are copied then.
  job.brief_callbacks = false;
  auto entered = run.activation_->turns_->enter(run.activation_->member_, job);
  if (entered) {
    run.job_ = *entered;
    return run;
  }
  bool ended = false;
  std::exchange(run.activation_, nullptr)->end_run(ended);
  return error(std::move(entered).error());
}

ActivationRun& ActivationRun::operator=(ActivationRun&& other) noexcept {
  std::swap(activation_, other.activation_);
  std::swap(job_, other.job_);
  return *this;
}

void ActivationRun::end(const device::JobRecord& record) {
  if (activation_ != nullptr) ActivationEnd(std::exchange(activation_, nullptr), job_).end(record);
}

void ActivationEnd::end(const device::JobRecord& record) {
  if (activation_->turns_ != nullptr) {
    // The completion ends the run, and so does whoever waits for it: the first of them counts.
    if (turn_ended_.exchange(true)) return;
    activation_->turns_->end(activation_->member_, job_, record);
  }
  activation_->end_run(ended_);
}

/// The last reference to the activation may go in the thread that completes the job.
std::weak_ptr<ActivationEnd> ActivationRun::end_with(device::Completion& completion) && {
  if (activation_ == nullptr) return {};
  const auto end = std::allocate_shared<ActivationEnd>(ReserveAllocator<ActivationEnd>(),
                                                       std::move(activation_), job_);
  completion.on_done(sure_once<void(device::Completion&)>(
      [end](device::Completion& done) { end->end(done.record()); }));
  return end;
}

}  // namespace corelane
