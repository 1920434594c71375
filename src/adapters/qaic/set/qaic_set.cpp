#include "adapters/qaic/set/qaic_set.h"

#include <algorithm>
#include <utility>

#include "adapters/qaic/context/qaic_context.h"
#include "adapters/qaic/profiling/qaic_profile_tap.h"
#include "adapters/qaic/program/qaic_buffer_owner.h"
#include "adapters/qaic/program/qaic_time.h"
#include "adapters/qaic/qpc/qaic_qpc.h"
#include "corelane/base/log.h"
#include "corelane/device/device.h"

namespace corelane::qaic {
namespace {

/// What a handle's inferences use.
struct Kept {
  std::shared_ptr<const void> owner;  ///< Of the user's memory; may be null.
  Paddings paddings;
};

/// Records that may wait for a profiling handle.
constexpr std::size_t kProfileRing = 8192;

/// More cores than the device has can never be free; whether those it has are free, it says itself.
Status check_cores(const ProgramParts& parts, std::uint32_t activations) {
  const std::uint64_t wish = std::max<std::uint32_t>(parts.qpc->description(parts.index).cores, 1);
  const std::size_t there = parts.on.cores;
  if (wish * activations <= there) return {};
  return error(Code::kOutOfCores,
               "{} activations of '{}' with {} cores each need {} cores; device '{}' has {}",
               activations, parts.name, wish, wish * activations, parts.on.device->info().instance,
               there);
}

SetOptions options_of(const ProgramParts& parts, std::uint32_t size, std::uint32_t activations) {
  SetOptions options;
  options.size = size;
  options.activations = activations;
  options.activate = ActivateOptions{};
  options.attempt_time = parts.rules.time;
  options.retries = parts.rules.retries;
  options.room_time = kRoomTime;
  options.on_failure = [context = parts.context,
                        clock = parts.on.device->clock()](const Status& why) {
    // The context tells of a lost device itself, once.
    if (why.code() != Code::kDeviceLost)
      context->report_by_post(*clock, QIAC_ERROR_EXECOBJ_RUNTIME, why);
  };
  return options;
}

}  // namespace

Result<std::shared_ptr<SetObject>> SetObject::create(ProgramParts parts, std::uint32_t size,
                                                     std::uint32_t activations) {
  CORELANE_TRY(check_cores(parts, activations));
  CORELANE_ASSIGN(const Program loaded, load_program(parts));
  CORELANE_ASSIGN(InferenceSet set,
                  InferenceSet::create(loaded, options_of(parts, size, activations)));
  std::shared_ptr<SetObject> made(
      new SetObject(std::make_shared<ProgramObject>(std::move(parts)), std::move(set)));
  CORELANE_TRY(made->fill());
  made->program_->tap()->set_source(
      [weak = std::weak_ptr(made)](std::function<void(const SetRecord&)> on_record)
          -> Result<std::shared_ptr<device::Observation>> {
        const auto object = weak.lock();
        if (object == nullptr) return std::shared_ptr<device::Observation>();
        SetObserverOptions options;
        options.on_record = std::move(on_record);
        options.ring = kProfileRing;
        options.at_completion = true;
        return object->set_.observe(std::move(options));
      });
  return made;
}

SetObject::SetObject(std::shared_ptr<ProgramObject> program, InferenceSet set)
    : Object(kKind),
      program_(std::move(program)),
      clock_(program_->parts().on.device->clock()),
      set_(std::move(set)) {}

SetObject::Item::Item(SetHandle of, const ProgramObject& program)
    : handle(std::move(of)),
      context(handle.context()),
      buffers(program.plan(), program.parts().on.device) {}

/// The handles are those of the set, by their index.
Status SetObject::fill() {
  for (std::size_t left = set_.figures().available; left > 0; --left) {
    // Nobody else has the set yet, so that none of them is taken.
    CORELANE_ASSIGN(SetHandle handle, set_.acquire(clock_->now()));
    items_.push_back(std::make_unique<Item>(std::move(handle), *program_));
  }
  std::ranges::sort(items_, {}, [](const auto& item) { return item->handle.index(); });
  for (const auto& item : items_) CORELANE_TRY(set_.release(item->handle));
  return {};
}

Result<SetObject::Item*> SetObject::item(std::uint32_t handle) {
  if (handle < items_.size()) return items_[handle].get();
  return error(Code::kInvalidArgument, "handle {}; the set has {}, numbered from 0", handle,
               items_.size());
}

Status SetObject::not_collected(std::uint32_t handle) {
  return error(Code::kBusy,
               "handle {} is in flight, or completed and not collected; collect it first", handle);
}

TimePoint SetObject::until(std::uint64_t us) const {
  return us == QAIC_WAIT_FOREVER ? kNever : after_us(clock_->now(), us);
}

Outcome SetObject::acquire(std::uint64_t us, std::uint32_t& handle) {
  for (bool warned = false;; warned = true) {
    const auto taken = set_.acquire(until(us));
    if (taken) {
      handle = static_cast<std::uint32_t>(taken->index());
      check::handle_taken(this, handle);
      return {};
    }
    if (taken.error().code() != Code::kWrongState) return taken.error();
    // It seems to wait for itself. Another thread that has not used the set yet may be about to put
    // a handle back, all the same.
    if (check::enabled()) return {QS_AGAIN, taken.error()};
    if (!warned) log::warn("qaic", "{}", taken.error().message());
  }
}

Outcome SetObject::set_data(std::uint32_t handle, std::size_t count, const QBuffer* buffers,
                            const QBufferDimensions* dims,
                            std::shared_ptr<const BufferOwner> owner) {
  CORELANE_ASSIGN(Item * one, item(handle));
  const OneUser user(one->busy);
  if (!user)
    return error(Code::kBusy,
                 "handle {} is in flight, or completed and not collected; collect it before its "
                 "buffers are set",
                 handle);
  Outcome taken = one->buffers.set(count, buffers, dims, &one->context);
  if (taken.code() != QS_SUCCESS) return taken;
  Paddings paddings = one->buffers.paddings();
  std::shared_ptr<const void> kept = std::move(owner);
  if (!paddings.empty()) kept = std::make_shared<Kept>(Kept{std::move(kept), std::move(paddings)});
  if (kept == nullptr && !one->owned) return taken;
  one->owned = kept != nullptr;
  one->handle.keep(std::move(kept));
  return taken;
}

Outcome SetObject::set_covering(std::uint32_t handle, bool on) {
  CORELANE_ASSIGN(Item * one, item(handle));
  const OneUser user(one->busy);
  if (!user) return not_collected(handle);
  one->buffers.set_covering(on);
  return {};
}

Result<std::uint32_t> SetObject::specialization(std::uint32_t handle) {
  CORELANE_ASSIGN(Item * one, item(handle));
  const OneUser user(one->busy);
  if (!user) return error(not_collected(handle));
  return static_cast<std::uint32_t>(one->buffers.specialization());
}

Outcome SetObject::submit(std::uint32_t handle, std::uint64_t id) {
  CORELANE_ASSIGN(Item * one, item(handle));
  // Not a OneUser: it stays taken until collected().
  if (one->busy.exchange(true))
    return error(Code::kBusy,
                 "handle {} is in flight, or completed and not collected; collect it before it is "
                 "submitted again",
                 handle);
  const std::uint64_t before = one->id.exchange(id);
  Status sent = one->buffers.complete()
                    ? one->buffers.copy_in(one->context)
                    : error(Code::kWrongState,
                            "handle {} has no buffers; set them before it is submitted", handle);
  if (sent.ok()) {
    one->buffers.mark_outputs();
    one->outputs = one->buffers.begin_outputs(program_.get());
  }
  // Before it begins: its collector may have it at once.
  const bool was_taken = check::handle_back(this, handle);
  bool full = false;
  if (sent.ok()) {
    sent = set_.submit(one->handle, id);
    full = sent.code() == Code::kBusy;
  }
  // Another thread may have collected it by now: nothing of it is touched.
  if (sent.ok()) return {};
  if (was_taken) check::handle_taken(this, handle);
  one->outputs_known();
  one->id = before;
  // The submission failed: the handle is the user's again.
  one->busy = false;
  // As for an execution object, where the full line refuses it.
  if (full) program_->parts().context->report(QAIC_ERROR_QUEUE_RUNTIME, sent);
  return sent;
}

Outcome SetObject::collected(Result<SetHandle> done, std::uint32_t& handle) {
  handle = kNone;
  if (!done) return done.error();
  Item& one = *items_[done->index()];
  handle = static_cast<std::uint32_t>(done->index());
  check::handle_taken(this, handle);
  Status status = done->status();
  if (status.ok())
    for (const Cut& cut : one.buffers.cuts()) cut.from->cut(cut.to);
  one.outputs_known();
  // Last: from here on another thread may set its buffers and submit it again.
  one.busy = false;
  return status;
}

Outcome SetObject::collect(std::uint64_t us, std::uint32_t& handle) {
  if (us != QAIC_WAIT_FOREVER) return collected(set_.collect(until(us)), handle);
  Result<SetHandle> done = set_.collect_in_flight();
  if (done || done.error().code() != Code::kNotFound) return collected(std::move(done), handle);
  handle = kNone;
  return error(Code::kWrongState,
               "nothing is in flight or completed, so that this would wait forever; submit first, "
               "or give a time limit");
}

Outcome SetObject::collect_id(std::uint64_t id, std::uint64_t us, std::uint32_t& handle) {
  return collected(set_.collect_id(id, until(us)), handle);
}

Outcome SetObject::release(std::uint32_t handle) {
  CORELANE_ASSIGN(const Item* one, item(handle));
  CORELANE_TRY(set_.release(one->handle));
  check::handle_back(this, handle);
  return {};
}

Outcome SetObject::wait(std::uint64_t us) {
  CORELANE_TRY(set_.wait_idle(until(us)));
  // Results may be read before they are collected. What another thread submitted meanwhile has no
  // status yet.
  if (check::enabled())
    for (const auto& one : items_)
      if (one->handle.status().code() != Code::kWrongState) one->outputs_known();
  return {};
}

Outcome SetObject::cancel(std::uint64_t id) {
  if (set_.cancel(id)) return {};
  // A handle in flight has no status yet.
  for (const auto& one : items_)
    if (one->busy && one->id == id && one->handle.status().code() == Code::kWrongState)
      return error(Code::kBusy, "the inference with id {} runs already; collect it", id);
  return error(Code::kNotFound, "no inference with id {} is in flight", id);
}

QAicProgramInfoV2 SetObject::info() const {
  const ProgramParts& parts = program_->parts();
  QAicProgramInfoV2 info;
  info.programInfo = program_->info();
  const bool lost = parts.on.device->health() == device::Health::kLost;
  info.programInfo.status = lost ? QAIC_PROGRAM_ERROR : QAIC_PROGRAM_FULLY_ACTIVATED;
  info.programInfo.loadedID = lost ? 0 : info.programInfo.programID;
  // The structure has room for 16.
  const std::size_t shown = std::min(parts.on.numbers.size(), std::size(info.qid));
  info.numQids = static_cast<std::uint32_t>(shown);
  std::copy_n(parts.on.numbers.begin(), shown, info.qid);
  return info;
}

}  // namespace corelane::qaic
