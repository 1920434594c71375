/// A pipeline on a virtual clock: its threads are real, its times exact.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "corelane/scheduler/scheduler.h"
#include "scheduler/node/chain.h"

namespace corelane::scheduler {

/// What a scripted backend saw of one call.
struct SeenCall {
  std::string model;
  std::string index;
  std::thread::id thread;
  std::uint32_t items = 0;
  TimePoint begin{};
  TimePoint end{};
  std::vector<int> data;
};

/// What all scripted backends of a bench share.
struct SharedScript {
  std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>();
  /// Time of a call.
  std::function<Duration(const std::string& model, std::uint32_t items)> time =
      [](const std::string&, std::uint32_t) { return Duration{}; };
  /// Runs in forward() after its time; sets results.
  std::function<Status(std::span<const RequestPtr>)> body = [](std::span<const RequestPtr> batch) {
    for (const RequestPtr& request : batch) request->values[kResult] = request->values.at(kData);
    return Status();
  };
  std::function<Status(const Config&)> on_init = [](const Config&) { return Status(); };
  bool repeatable = false;

  std::mutex mutex;
  std::condition_variable woken;
  std::vector<SeenCall> calls;
  std::vector<std::thread::id> inits;
  std::uint64_t sleeping = 0;

  /// Sleeps until the test has moved the clock so far.
  void sleep(Duration how_long) {
    if (how_long <= Duration{}) return;
    bool done = false;
    clock->call_at(clock->now() + how_long, [&] {
      const std::lock_guard lock(mutex);
      done = true;
      --sleeping;
      woken.notify_all();
    });
    std::unique_lock lock(mutex);
    ++sleeping;
    woken.wait(lock, [&] { return done; });
  }
};

/// A backend that does what the script says; settings model, min, max.
class Scripted final : public Backend {
 public:
  explicit Scripted(std::shared_ptr<SharedScript> script) : script_(std::move(script)) {}
  Status init(const Config& config, const SharedDict& /*shared*/) override {
    const auto text = [&](const char* key, const char* otherwise) {
      const auto found = config.find(key);
      return found == config.end() ? std::string(otherwise) : found->second;
    };
    model_ = text("model", "");
    index_ = text(kThreadIndex, "");
    min_ = static_cast<std::uint32_t>(std::stoul(text("min", "1")));
    max_ = static_cast<std::uint32_t>(std::stoul(text("max", "1")));
    {
      const std::lock_guard lock(script_->mutex);
      script_->inits.push_back(std::this_thread::get_id());
    }
    return script_->on_init(config);
  }
  Status forward(std::span<const RequestPtr> batch) override {
    SeenCall call;
    call.model = model_;
    call.index = index_;
    call.thread = std::this_thread::get_id();
    call.begin = script_->clock->now();
    for (const RequestPtr& request : batch) {
      call.items += request->options.items;
      if (const int* const data = std::any_cast<int>(&request->values.at(kData)))
        call.data.push_back(*data);
    }
    script_->sleep(script_->time(model_, call.items));
    call.end = script_->clock->now();
    {
      const std::lock_guard lock(script_->mutex);
      script_->calls.push_back(call);
    }
    return script_->body(batch);
  }
  std::uint32_t min() const noexcept override { return min_; }
  std::uint32_t max() const noexcept override { return max_; }
  bool repeatable() const noexcept override { return script_->repeatable; }

 private:
  const std::shared_ptr<SharedScript> script_;
  std::string model_, index_;
  std::uint32_t min_ = 1, max_ = 1;
};

/// The library's names and "Scripted".
struct VirtualBench {
  VirtualBench() {
    add_chain(registry);
    (void)registry.add("Scripted",
                       [script = script](const BackendSurroundings&) {
                         return std::make_unique<Scripted>(script);
                       },
                       {"model", "min", "max"});
  }

  PipelineOptions options() const {
    PipelineOptions with;
    with.clock = script->clock;
    with.registry = &registry;
    return with;
  }
  /// `config` with backend = Scripted where it says none.
  Status open(Config config) {
    config.try_emplace("backend", "Scripted");
    auto made = Pipeline::create(config, options());
    if (!made) return made.error();
    pipeline = std::move(*made);
    return {};
  }

  static Dict request(int data) { return {{kData, data}}; }
  Ticket submit(int data, const RequestOptions& with = {}) {
    return pipeline.submit(request(data), with);
  }
  /// At `ms`, in the thread that moves the clock.
  void submit_at(double ms, int data, const RequestOptions& with = {}) {
    submit_at(at(ms), data, with);
  }
  void submit_at(TimePoint when, int data, const RequestOptions& with = {}) {
    const std::size_t place = tickets.size();
    tickets.emplace_back();
    script->clock->call_at(when,
                           [this, place, data, with] { tickets[place] = submit(data, with); });
  }
  static TimePoint at(double ms) {
    return TimePoint{} + Duration(static_cast<Duration::rep>(ms * 1e6));
  }
  double now() const {
    return std::chrono::duration<double, std::milli>(script->clock->now() - TimePoint{}).count();
  }

  /// Until each call that runs sleeps on the clock.
  void settle() const {
    for (;;) {
      {
        const std::lock_guard lock(script->mutex);
        if (pipeline.statistics().running_batches == script->sleeping) return;
      }
      std::this_thread::yield();
    }
  }
  /// Moves the clock from event to event, up to `ms`.
  void run_to(double ms) {
    for (;;) {
      settle();
      const TimePoint next = script->clock->next_timer();
      if (next > at(ms)) break;
      script->clock->advance_to(next);
    }
    script->clock->advance_to(at(ms));
    settle();
  }
  /// Until nothing is left to happen.
  void run_all() {
    for (settle(); script->clock->next_timer() != kNever; settle())
      script->clock->advance_to(script->clock->next_timer());
  }
  /// "8 8 4": the items of the calls that have ended.
  std::string sizes() const {
    const std::lock_guard lock(script->mutex);
    std::string text;
    for (const SeenCall& call : script->calls)
      text += (text.empty() ? "" : " ") + std::to_string(call.items);
    return text;
  }
  void adds_up() const {
    const Statistics all = pipeline.statistics();
    EXPECT_EQ(all.submitted, all.done + all.failed + all.rejected + all.cancelled + all.expired +
                                 all.waiting + all.running);
  }

  std::shared_ptr<SharedScript> script = std::make_shared<SharedScript>();
  BackendRegistry registry;
  Pipeline pipeline;
  std::vector<Ticket> tickets;
};

/// S(n) = a + b n ms.
inline std::function<Duration(const std::string&, std::uint32_t)> linear_time(double a, double b) {
  return [a, b](const std::string&, std::uint32_t items) {
    return Duration(static_cast<Duration::rep>((a + b * items) * 1e6));
  };
}

}  // namespace corelane::scheduler
