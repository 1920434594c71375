#include "adapters/rknn/model/rknn_frame.h"

#include "base/guard.h"
#include "base/later.h"
#include "base/thread.h"

namespace corelane::rknn {

/// The time of the run begins here, so that waiting for the fence counts.
Result<std::unique_ptr<DeferredRun>> DeferredRun::start(Context context, RunOptions options,
                                                        const Clock& clock) {
  const TimePoint until =
      options.timeout == Duration{0} ? kNever : later(clock.now(), options.timeout);
  std::unique_ptr<DeferredRun> made(new DeferredRun(options.wait));
  auto body = [run = made.get(), context = std::move(context), options = std::move(options),
               until]() mutable {
    const std::vector<std::shared_ptr<device::Fence>> out = options.signal;
    Status status = no_throw("a run after a fence",
                             [&] { return run->run(context, std::move(options), until); });
    for (const auto& fence : out) fence->signal(status);
    run->over_.signal(std::move(status));
  };
  CORELANE_ASSIGN(made->thread_, start_thread("rknn fence", std::move(body)));
  return made;
}

Status DeferredRun::run(Context& context, RunOptions options, TimePoint until) {
  for (const auto& fence : in_) {
    if (!fence->wait(until))
      return error(Code::kTimeout, "the fence was not signalled within the run's time");
    CORELANE_TRY(fence->status());
  }
  // The device counts the whole time anew: the fence was signalled within it.
  options.wait.clear();
  options.signal.clear();
  CORELANE_ASSIGN(Inference inference, context.submit(options));
  Status status = inference.wait();
  if (!status.ok()) abandoned_ = std::move(inference);
  return status;
}

std::optional<Inference> DeferredRun::stop() {
  for (const auto& fence : in_)
    fence->signal(
        error(Code::kCancelled, "the context was destroyed before the fence was signalled"));
  over_.wait();
  return std::move(abandoned_);
}

DeferredRun::~DeferredRun() {
  if (!thread_.joinable()) return;  // It was never started.
  (void)stop();
  thread_.join();
}

}  // namespace corelane::rknn
