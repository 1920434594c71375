#include <chrono>
#include <cstdio>
#include <thread>

#include "base/trust/file_names.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/runtime/activation.h"
#include "corelane/runtime/program.h"
#include "failing_new.h"
#include "round.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::allocation {
namespace {

constexpr int kThreads = 3;
constexpr int kCalls = 60;

struct Files {
  std::string onnx = testing::relu_model({std::int64_t{1}, std::int64_t{4}});
  ByteVector program = compile_bytes(as_byte_span(onnx), {}).value();
};

std::size_t threads_now() { return file_names("/proc/self/task").size(); }

/// Of ours: the code says what was missing. An engine may name a failure of its own.
void refuse(const Plan& plan, const Status& status, Tally& tally) {
  ++tally.refused;
  if (!plan.device.starts_with("null") || status.code() == Code::kOutOfMemory) return;
  tally.expect(false, "a load fails with out_of_memory");
  std::printf("%s\n", status.to_string().c_str());
}

/// One run on a context: right, or a failure.
Status use(Context& context, float sent, Tally& tally) {
  const std::vector<float> x(4, sent);
  const TensorView view{x.data(), 16, DType::kF32, Shape{1, 4}, {}, {}};
  CORELANE_TRY(exposed([&] { return context.set_input(0, view); }));
  CORELANE_TRY(exposed([&] { return context.run(); }));
  CORELANE_ASSIGN(const TensorView y, exposed([&] { return context.output(0); }));
  for (int i = 0; i < 4; ++i)
    tally.expect(static_cast<const float*>(y.data)[i] == sent, "a program computes");
  return {};
}

/// From the device to a run, in one of several ways; all that it makes is gone afterwards.
Status load_once(const Plan& plan, const Files& files, int i, Tally& tally) {
  LoadOptions options;
  options.device = plan.device;
  options.cache = false;
  if (i % 3 == 0) {
    device::OpenOptions own;
    own.own_instance = true;
    CORELANE_ASSIGN(options.on, exposed([&] { return device::open_device(plan.device, own); }));
  }
  const ByteSpan bytes = i % 2 == 0 ? as_byte_span(files.onnx) : ByteSpan(files.program);
  CORELANE_ASSIGN(const Program program, exposed([&] { return Program::load(bytes, options); }));
  if (i % 4 == 1) {
    // Of the shared device's three cores; other threads may hold them all.
    const auto activation = exposed([&] { return Activation::create(program); });
    if (!activation)
      return activation.error().code() == Code::kOutOfCores ? Status() : activation.error();
    CORELANE_ASSIGN(Context context, exposed([&] { return activation->new_context(); }));
    return use(context, static_cast<float>(i), tally);
  }
  CORELANE_ASSIGN(Context context, exposed([&] { return program.new_context(); }));
  return use(context, static_cast<float>(i), tally);
}

void load_all(const Plan& plan, const Files& files, int thread, Tally& tally) {
  const Shielded test;
  for (int i = 0; i < kCalls; ++i) {
    try {
      const Status status = load_once(plan, files, thread + i, tally);
      if (!status.ok()) {
        refuse(plan, status, tally);
        continue;
      }
      ++tally.taken;
      ++tally.answered;
    } catch (const std::exception& thrown) {
      tally.expect(false, thrown.what());
    }
  }
}

/// All cores of the device can be held at once, and nothing of it is in use afterwards.
void check_device(const Plan& plan, const Files& files, Tally& tally) {
  const auto opened = device::open_device(plan.device);
  tally.expect(opened.has_value(), "the device opens afterwards");
  if (!opened) return;
  // A core that has ended a job lets go of the job's memory a moment later.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while ((*opened)->memory().total() != 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  tally.expect((*opened)->memory().total() == 0, "the device's memory is free");
  LoadOptions options;
  options.on = *opened;
  options.cache = false;
  const auto program = Program::load(as_byte_span(files.onnx), options);
  tally.expect(program.has_value(), "a program loads afterwards");
  if (!program) return;
  std::vector<Activation> held;
  for (std::size_t i = 0; i < (*opened)->info().cores.size(); ++i) {
    auto activation = Activation::create(*program);
    tally.expect(activation.has_value(), "each core can be held afterwards");
    if (activation) held.push_back(*std::move(activation));
  }
  for (Activation& activation : held) {
    auto context = activation.new_context();
    tally.expect(context && use(*context, 7, tally).ok(), "each core runs afterwards");
  }
}

}  // namespace

void load_round(const Plan& plan, Tally& tally) {
  const Files files;
  // What a process makes once, the device's module among it, is there before.
  tally.expect(load_once(plan, files, 0, tally).ok(), "a program loads");
  const std::size_t before = threads_now();
  begin_failing(plan.share, plan.seed);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] { load_all(plan, files, t, tally); });
  for (std::thread& thread : threads) thread.join();
  end_failing();
  if (plan.device.starts_with("null"))
    tally.expect(threads_now() == before, "no thread of a device is left");
  check_device(plan, files, tally);
}

}  // namespace corelane::allocation
