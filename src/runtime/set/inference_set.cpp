#include "corelane/runtime/inference_set.h"

#include "base/guard.h"
#include "corelane/device/observer.h"
#include "runtime/set/set_core.h"

namespace corelane {
namespace {

Status no_set() {
  return error(Code::kWrongState,
               "this handle stands for no inference set; see "
               "InferenceSet::create");
}

}  // namespace

Context SetHandle::context() const { return core_ != nullptr ? core_->context(index_) : Context(); }

std::uint64_t SetHandle::id() const { return core_ != nullptr ? core_->id(index_) : 0; }

Status SetHandle::status() const { return core_ != nullptr ? core_->status(index_) : no_set(); }

std::uint32_t SetHandle::attempts() const { return core_ != nullptr ? core_->attempts(index_) : 0; }

void SetHandle::keep(std::shared_ptr<const void> owner) const {
  if (core_ != nullptr) core_->keep(index_, std::move(owner));
}

/// Handles and work in flight keep the core; the set ends with its user's last reference.
struct InferenceSet::Owner {
  explicit Owner(std::shared_ptr<runtime::SetCore> made) : core(std::move(made)) {}
  ~Owner() { core->shutdown(); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  const std::shared_ptr<runtime::SetCore> core;
};

Result<InferenceSet> InferenceSet::create(const Program& program, const SetOptions& options) {
  return no_throw("making an inference set", [&]() -> Result<InferenceSet> {
    CORELANE_ASSIGN(auto core, runtime::SetCore::create(program, options));
    return InferenceSet(std::make_shared<Owner>(std::move(core)));
  });
}

Result<SetHandle> InferenceSet::acquire(TimePoint until) {
  if (owner_ == nullptr) return error(no_set());
  return owner_->core->acquire(until);
}

Status InferenceSet::submit(const SetHandle& handle, std::uint64_t id) {
  return submit(handle, id, nullptr);
}

Status InferenceSet::submit(const SetHandle& handle, std::uint64_t id, SetCallback done) {
  if (owner_ == nullptr) return no_set();
  return owner_->core->submit(handle, id, std::move(done));
}

Result<std::future<SetHandle>> InferenceSet::submit_future(const SetHandle& handle,
                                                           std::uint64_t id) {
  if (owner_ != nullptr) owner_->core->expect_other_users();  // Any thread may wait for the future.
  auto promise = std::make_shared<std::promise<SetHandle>>();
  std::future<SetHandle> future = promise->get_future();
  CORELANE_TRY(
      submit(handle, id, [promise](SetHandle done) { promise->set_value(std::move(done)); }));
  return future;
}

Result<SetHandle> InferenceSet::submit(const SetTensors& tensors, std::uint64_t id,
                                       TimePoint until) {
  if (owner_ == nullptr) return error(no_set());
  return owner_->core->submit(tensors, id, until);
}

Result<SetHandle> InferenceSet::collect(TimePoint until) {
  if (owner_ == nullptr) return error(no_set());
  return owner_->core->collect(std::nullopt, until);
}

Result<SetHandle> InferenceSet::collect_in_flight(TimePoint until) {
  if (owner_ == nullptr) return error(no_set());
  return owner_->core->collect(std::nullopt, until, true);
}

Result<SetHandle> InferenceSet::collect_id(std::uint64_t id, TimePoint until) {
  if (owner_ == nullptr) return error(no_set());
  return owner_->core->collect(id, until);
}

Status InferenceSet::release(const SetHandle& handle) {
  return owner_ == nullptr ? no_set() : owner_->core->release(handle);
}

Result<int> InferenceSet::fd() {
  if (owner_ == nullptr) return error(no_set());
  return owner_->core->fd();
}

bool InferenceSet::cancel(std::uint64_t id) {
  return owner_ != nullptr && owner_->core->cancel(id);
}

bool InferenceSet::drain(TimePoint until) {
  return owner_ == nullptr || owner_->core->drain(until);
}

Status InferenceSet::wait_idle(TimePoint until) {
  return owner_ == nullptr ? no_set() : owner_->core->wait_idle(until);
}

void InferenceSet::shutdown() {
  if (owner_ != nullptr) owner_->core->shutdown();
}

SetFigures InferenceSet::figures() const {
  return owner_ != nullptr ? owner_->core->figures() : SetFigures{};
}

Result<std::shared_ptr<device::Observation>> InferenceSet::observe(SetObserverOptions options) {
  if (owner_ == nullptr) return error(no_set());
  return owner_->core->observe(std::move(options));
}

}  // namespace corelane
