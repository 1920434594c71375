#include <thread>

#include "corelane/device/registry.h"
#include "corelane/session/session.h"
#include "failing_new.h"
#include "round.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::allocation {
namespace {

constexpr int kThreads = 4;
constexpr int kCalls = 200;

/// What went in is in every element.
void note(Tally& tally, const Result<Outputs>& outputs, float sent) {
  const Shielded test;
  ++tally.answered;
  if (!outputs) return;
  const auto* y = static_cast<const float*>(outputs->front().data.get());
  for (int i = 0; i < 4; ++i) tally.wrong += y[i] != sent;
}

/// `f` gives whether the library took the call; what it throws is a refusal too.
template <class F>
void count(Tally& tally, F&& f) {
  bool taken = false;
  try {
    taken = exposed(f);
  } catch (const std::bad_alloc&) {
  }
  ++(taken ? tally.taken : tally.refused);
}

struct Caller {
  Session& session;
  Tally& tally;

  RunCallback callback(float sent) const {
    return [&all = tally, sent](std::uint64_t, const Result<Outputs>& y) { note(all, y, sent); };
  }
  void blocking(const Feed& feed, float sent, bool batch) const {
    count(tally, [&] {
      const auto y = batch ? session.run_batch(feed) : session.run(feed);
      note(tally, y, sent);
      return true;
    });
  }
  void with_callback(const Feed& feed, float sent, bool batch) const {
    count(tally, [&] {
      auto f = [&] {
        const Shielded test;
        return callback(sent);
      }();
      const auto id = batch ? session.run_batch_async(feed, std::move(f))
                            : session.run_async(feed, std::move(f));
      return id.has_value();
    });
  }
  void with_future(const Feed& feed, float sent, bool batch) const {
    std::optional<Future> future;
    count(tally, [&] {
      auto made = batch ? session.submit_batch(feed) : session.submit(feed);
      if (made) future = *std::move(made);
      return future.has_value();
    });
    if (future && future->wait()) note(tally, future->get(), sent);
  }
};

void call_all(Session& session, int thread, Tally& tally) {
  const Shielded test;
  const Caller caller{session, tally};
  for (int i = 0; i < kCalls; ++i) {
    const auto sent = static_cast<float>(thread * kCalls + i);
    const std::vector<float> one(4, sent), three(12, sent);
    const TensorView view{one.data(), 16, DType::kF32, Shape{1, 4}, {}, {}};
    const TensorView views{three.data(), 48, DType::kF32, Shape{3, 4}, {}, {}};
    const bool batch = i % 2 != 0;
    const Feed feed = {{"x", batch ? views : view, nullptr}};
    switch (i / 2 % 3) {
      case 0:
        caller.blocking(feed, sent, batch);
        break;
      case 1:
        caller.with_callback(feed, sent, batch);
        break;
      default:
        caller.with_future(feed, sent, batch);
    }
  }
}

}  // namespace

void session_round(const Plan& plan, Tally& tally) {
  const std::string model = testing::relu_model({std::int64_t{1}, std::int64_t{4}});
  SessionOptions options;
  options.load.device = plan.device;
  options.load.cache = false;
  options.schedule = {0, 1, 2};
  options.threads_per_core = 1 + static_cast<int>(plan.seed % 2);
  options.sequential_callbacks = plan.seed % 4 < 2;
  auto session = Session::create(as_byte_span(model), options);
  if (!session) {
    ++tally.wrong;
    return;
  }
  begin_failing(plan.share, plan.seed);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { call_all(*session, t, tally); });
  for (std::thread& thread : threads) thread.join();
  // What has its answer only in a callback is waited for while allocations fail.
  session->wait_callbacks();
  while (session->statistics().completed < session->statistics().accepted)
    std::this_thread::yield();
  session->wait_callbacks();
  end_failing();
  const std::vector<float> x(4, 5);
  const Feed feed = {{"x", {x.data(), 16, DType::kF32, Shape{1, 4}, {}, {}}, nullptr}};
  for (int i = 0; i < 12; ++i) tally.wrong += !session->run(feed).has_value();
  tally.wrong += !session->close().ok();
}

}  // namespace corelane::allocation
