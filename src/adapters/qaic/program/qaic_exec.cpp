#include "adapters/qaic/program/qaic_exec.h"

#include <algorithm>
#include <utility>

#include "adapters/qaic/checks/qaic_check.h"
#include "adapters/qaic/context/qaic_context.h"
#include "adapters/qaic/profiling/qaic_profile_tap.h"
#include "adapters/qaic/program/qaic_buffer_owner.h"
#include "adapters/qaic/program/qaic_buffer_plan.h"
#include "adapters/qaic/program/qaic_event.h"
#include "adapters/qaic/program/qaic_group_gate.h"
#include "adapters/qaic/program/qaic_late_inputs.h"
#include "adapters/qaic/program/qaic_one_user.h"
#include "adapters/qaic/program/qaic_program.h"
#include "adapters/qaic/program/qaic_queue.h"
#include "adapters/qaic/program/qaic_time.h"
#include "base/guard.h"
#include "base/later.h"
#include "base/reserve.h"
#include "corelane/device/device.h"

namespace corelane::qaic {
namespace {

QAicExecObjID next_exec_number() noexcept {
  static std::atomic<std::uint32_t> last{0};
  return ++last;
}

}  // namespace

Flight::~Flight() { check::outputs_known(outputs_); }

bool Flight::done() const {
  const MutexLock lock(mutex_);
  return done_;
}

void Flight::outputs_there() {
  if (told_)
    check::outputs_known(outputs_);
  else
    check::outputs_there(outputs_);
}

void Flight::finish(const Status& status) {
  const MutexLock lock(mutex_);
  done_ = true;
  outcome_ = status;
  changed_.notify_all();
}

void Flight::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

Status Flight::wait(TimePoint until) {
  MutexLock lock(mutex_);
  for (bool in_time = true; !done_;) {
    if (closed_)
      return error(Code::kCancelled,
                   "the execution object was released while its inference was in flight");
    if (!in_time)
      return error(Code::kTimeout, "the inference is not done yet; it goes on, wait for it again");
    // When the time is up `done_` is looked at once more: it may have ended just then.
    in_time = clock_->wait_until(lock.native(), changed_, until);
  }
  check::outputs_known(outputs_);
  return outcome_;
}

Result<std::shared_ptr<ExecObjObject>> ExecObjObject::create(std::shared_ptr<ProgramObject> program,
                                                             QAicExecObjProperties_t properties) {
  constexpr QAicExecObjProperties_t kBits =
      QAIC_EXECOBJ_PROPERTIES_AUTO_LOAD_ACTIVATE | QAIC_EXECOBJ_PROPERTIES_ZERO_COPY_BUFFERS;
  if ((properties & ~kBits) != 0)
    return error(Code::kInvalidArgument,
                 "properties of the execution object are {:#x}; of their bits {:#x} are defined",
                 properties, kBits);
  std::shared_ptr<ExecObjObject> made(new ExecObjObject(std::move(program), properties));
  if ((properties & QAIC_EXECOBJ_PROPERTIES_ZERO_COPY_BUFFERS) != 0)
    CORELANE_TRY(made->buffers_.make_own());
  return made;
}

ExecObjObject::ExecObjObject(std::shared_ptr<ProgramObject> program,
                             QAicExecObjProperties_t properties)
    : Object(kKind),
      program_(std::move(program)),
      automatic_((properties & QAIC_EXECOBJ_PROPERTIES_AUTO_LOAD_ACTIVATE) != 0),
      id_(next_exec_number()),
      buffers_(program_->plan(), program_->parts().on.device) {
  // Keeps the program's activation until close().
  program_->add_exec();
}

ExecObjObject::~ExecObjObject() { close(); }

void ExecObjObject::close() {
  if (closed_->exchange(true)) return;
  if (const auto last = flight()) {
    if (!last->done()) check::released_in_flight(id_);
    last->close();
  }
  program_->remove_exec();
}

std::shared_ptr<Flight> ExecObjObject::flight() const {
  const MutexLock lock(mutex_);
  return flight_;
}

Status ExecObjObject::busy() const {
  return error(Code::kBusy,
               "execution object {} is used by another thread; it has one user at a "
               "time",
               id_);
}

bool ExecObjObject::in_flight() const {
  const auto last = flight();
  return last != nullptr && !last->done();
}

Outcome ExecObjObject::set_data(std::size_t count, const QBuffer* buffers,
                                const QBufferDimensions* dims,
                                std::shared_ptr<const BufferOwner> owner) {
  const OneUser call(in_call_);
  if (!call) return busy();
  if (in_flight())
    return error(Code::kBusy,
                 "execution object {} is in flight; wait for it before its buffers are set", id_);
  // Without a context they are only kept: renew() binds them to the one that it makes.
  Outcome taken = buffers_.set(count, buffers, dims, generation_ != 0 ? &context_ : nullptr);
  if (taken.code() == QS_SUCCESS) owner_ = std::move(owner);
  return taken;
}

Outcome ExecObjObject::set_slices(SomeBuffers some, const SlicingObject* spec,
                                  const SlicingObject::Values& values) {
  const OneUser call(in_call_);
  if (!call) return busy();
  if (in_flight())
    return error(Code::kBusy,
                 "execution object {} is in flight; wait for it before its buffers are set", id_);
  if (spec != nullptr && spec->plan() != program_->plan())
    return error(Code::kInvalidArgument,
                 "the slicing specification is of another program than '{}', which the execution "
                 "object runs; make one of that program",
                 program_->parts().name);
  some.starts.resize(some.indices.size());
  for (std::size_t at = 0; at < some.indices.size() && spec != nullptr; ++at) {
    const std::size_t buffer = some.indices[at];
    if (buffer >= program_->plan()->count() || !spec->slices(buffer)) continue;
    const QBufferDimensions* const dims = some.dims == nullptr ? nullptr : &some.dims[at];
    if (BufferPlan::left_out(some.buffers[at], dims)) continue;
    CORELANE_ASSIGN(some.starts[at], spec->start_of(buffer, values));
  }
  return buffers_.set_some(some, generation_ != 0 ? &context_ : nullptr);
}

Outcome ExecObjObject::set_covering(bool on) {
  const OneUser call(in_call_);
  if (!call) return busy();
  buffers_.set_covering(on);
  return {};
}

Result<std::uint32_t> ExecObjObject::specialization() {
  const OneUser call(in_call_);
  if (!call) return error(busy());
  return static_cast<std::uint32_t>(buffers_.specialization());
}

Result<std::span<QBuffer>> ExecObjObject::io_buffers() {
  const OneUser call(in_call_);
  if (!call) return error(busy());
  check::buffers_asked(buffers_.given());
  return buffers_.given();
}

Status ExecObjObject::renew() {
  CORELANE_ASSIGN(const ProgramObject::Active now, program_->active(automatic_));
  if (now.generation == generation_) return {};
  generation_ = 0;
  // `generation_` says that there is none, so that after a failure below the next call tries again.
  context_ = {};
  Result<Context> context = now.activation.new_context();
  if (!context) return refusal(context.error(), now.generation);
  Context made = *std::move(context);
  CORELANE_TRY(buffers_.bind_all(made));
  context_ = std::move(made);
  generation_ = now.generation;
  return {};
}

/// Buffers may follow.
Status ExecObjObject::ready_for_states(const OneUser& call) {
  if (!call) return busy();
  if (in_flight())
    return error(Code::kBusy,
                 "execution object {} is in flight; wait for it before its state is looked at",
                 id_);
  return renew();
}

Outcome ExecObjObject::enqueue(QueueObject* queue, const std::shared_ptr<EventObject>& event) {
  OneUser call(in_call_);
  if (!call) return busy();
  if (in_flight())
    return error(Code::kBusy, "execution object {} is in flight; wait for it before it is enqueued",
                 id_);
  if (!buffers_.complete())
    return error(Code::kWrongState, "execution object {} {}; set all buffers before it is enqueued",
                 id_, buffers_.lack());
  const auto& devices = program_->parts().on.devices;
  if (queue != nullptr && std::ranges::find(devices, queue->device()) == devices.end())
    return error(Code::kInvalidArgument,
                 "the queue is on device '{}', program '{}' on '{}'; use a queue of that device",
                 queue->device()->info().instance, program_->parts().name,
                 program_->parts().on.device->info().instance);
  const std::shared_ptr<GroupGate>& gate = program_->parts().gate;
  if (gate == nullptr) return begin(queue, event, call);
  // Counted before it begins: from here on the group's disable() waits for it.
  CORELANE_TRY(gate->enter(program_->parts().name));
  Outcome begun =
      no_throw("the submission", [&]() -> Outcome { return begin(queue, event, call); });
  if (begun.code() != QS_SUCCESS) gate->leave();
  return begun;
}

Outcome ExecObjObject::begin(QueueObject* queue, const std::shared_ptr<EventObject>& event,
                             OneUser& call) {
  CORELANE_TRY(renew());
  // With an event, or in a queue's order, its user may learn of its end elsewhere.
  const bool told = event != nullptr || (queue != nullptr && queue->one_at_a_time());
  return submit(queue, event,
                std::make_shared<Flight>(program_->parts().on.device->clock(),
                                         buffers_.begin_outputs(program_.get()), told),
                call);
}

/// The end of an inference, in the thread that completes it: waiters first. The execution object
/// may be gone.
struct Ending {
  std::shared_ptr<Flight> flight;
  std::shared_ptr<ProgramObject> program;
  std::shared_ptr<EventObject> event;
  QueueObject::Turn turn;
  Cuts cuts = {};
  Paddings paddings = {};                    ///< What the device uses.
  std::shared_ptr<const BufferOwner> owner;  ///< Of the memory; may be null.
  std::shared_ptr<LateInputs> late;          ///< Null: nothing is copied late.
  SetRecord record;                          ///< Where the program is profiled.
  Inference inference;                       ///< Likewise.

  void operator()(const Status& status) const {
    // It may have ended before its turn.
    if (late != nullptr) late->drop();
    if (status.ok())
      for (const Cut& cut : cuts) cut.from->cut(cut.to);
    flight->outputs_there();
    if (record.in_flight != 0) note(status);
    program->count_completed();
    flight->finish(status);
    QueueObject::end(turn);
    if (program->parts().gate != nullptr) program->parts().gate->leave();
    if (event != nullptr) event->complete(status);
    // The context tells of a lost device itself, once.
    const bool reported = !status.ok() && status.code() != Code::kDeviceLost;
    if (reported)
      program->parts().context->report_by_post(*program->parts().on.device->clock(),
                                               QIAC_ERROR_EXECOBJ_RUNTIME, status);
  }

 private:
  void note(const Status& status) const noexcept {
    SetRecord ended = record;
    ended.attempts = 1;
    ended.code = status.code();
    ended.run = inference.stamps();
    ended.job = inference.record();
    ended.completed = ended.collected = program->parts().on.device->clock()->now();
    program->tap()->note(ended);
  }
};

/// Now, or when the turn comes: the inference before may write what is read, or read what the marks
/// of the checking mode would overwrite.
Status ExecObjObject::give_inputs(Ending& ending, RunOptions& options) {
  const std::shared_ptr<device::Fence>& after = ending.turn.after;
  if (after == nullptr) {
    CORELANE_TRY(buffers_.copy_in(context_));
    buffers_.mark_outputs();
    return {};
  }
  CORELANE_ASSIGN(Puts puts, buffers_.copy_in_later(context_));
  if (puts.empty()) {
    options.wait.push_back(after);
    return {};
  }
  ending.late = std::make_shared<LateInputs>(std::move(puts));
  auto ready = std::make_shared<device::Fence>(program_->parts().on.device->clock());
  options.wait.push_back(ready);
  after->on_signal(sure_once<void(const Status&)>([late = ending.late, ready](const Status&) {
    late->put();
    ready->signal();
  }));
  return {};
}

/// Another thread that found the device lost may have released the activation meanwhile, and even
/// loaded the program again: the loss is the reason. While execution objects live, nothing but a
/// loss, or the program's group, ends an activation.
Status ExecObjObject::refusal(const Status& said, std::uint64_t generation) const {
  if (said.code() != Code::kWrongState) return said;
  const auto now = program_->active(false);
  if (!now && now.error().code() == Code::kDeviceLost) return now.error();
  const bool ended = !now || now->generation != generation;
  if (!ended || program_->parts().gate != nullptr) return said;
  return error(Code::kDeviceLost,
               "the device of program '{}' was lost, and the program loaded again, while an "
               "inference was enqueued; enqueue it again",
               program_->parts().name);
}

Outcome ExecObjObject::submit(QueueObject* queue, const std::shared_ptr<EventObject>& event,
                              const std::shared_ptr<Flight>& flight, OneUser& call) {
  const std::shared_ptr<Clock>& clock = program_->parts().on.device->clock();
  Ending ending{flight, program_, event, {}, buffers_.cuts(), buffers_.paddings(),
                owner_, nullptr,  {},    {}};
  const bool profiled = program_->tap()->on();
  if (profiled) ending.record.submitted = clock->now();
  RunOptions options;
  options.timeout = program_->parts().rules.whole();
  options.room_until = later(clock->now(), kRoomTime);
  options.give_up = closed_;
  // Callbacks of an event may enqueue again: not in this thread.
  options.here_if_brief = event == nullptr;
  options.state_slices = buffers_.state_slices();
  if (queue != nullptr) ending.turn = queue->next();
  if (event != nullptr) event->begin();
  Result<Inference> inference = no_throw("the submission", [&]() -> Result<Inference> {
    CORELANE_TRY(give_inputs(ending, options));
    return context_.submit(options);
  });
  if (!inference) {
    if (ending.late != nullptr) ending.late->drop();
    QueueObject::end(ending.turn);
    if (event != nullptr) event->refuse();
    if (inference.error().code() == Code::kBusy && *closed_)
      return error(Code::kCancelled,
                   "execution object {} was released while its inference waited for room", id_);
    const Status why = refusal(inference.error(), generation_);
    if (why.code() != Code::kDeviceLost)
      program_->parts().context->report(QAIC_ERROR_QUEUE_RUNTIME, why);
    return why;
  }
  auto before = flight;  // The last one: destroyed after the lock.
  {
    const MutexLock lock(mutex_);
    flight_.swap(before);
  }
  // Released meanwhile, by another thread.
  if (*closed_) flight->close();
  if (profiled) {
    ending.record.id = id_;
    ending.record.in_flight = program_->tap()->begin();
    ending.inference = *inference;
  }
  // It may have ended by now, and whoever learns of that may use the object again.
  call.release();
  inference->on_done(sure_once<void(const Status&)>(std::move(ending)));
  return {};
}

Status ExecObjObject::wait(std::uint64_t us) const {
  const auto last = flight();
  if (last == nullptr)
    return error(Code::kWrongState,
                 "execution object {} was never enqueued; enqueue it before waiting for it", id_);
  const std::shared_ptr<Clock>& clock = program_->parts().on.device->clock();
  return last->wait(us == 0 ? kNever : after_us(clock->now(), us));
}

}  // namespace corelane::qaic
