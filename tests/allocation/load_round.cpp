#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/trust/file_names.h"
#include "corelane/base/file.h"
#include "corelane/base/log.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/program/program_file.h"
#include "corelane/runtime/activation.h"
#include "corelane/runtime/program.h"
#include "failing_new.h"
#include "round.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::allocation {
namespace {

namespace fs = std::filesystem;

constexpr int kThreads = 3;
constexpr int kCalls = 60;

struct Files {
  std::string onnx = testing::relu_model({std::int64_t{1}, std::int64_t{4}});
  ByteVector program = compile_bytes(as_byte_span(onnx), {}).value();
};

/// The compile cache of a round, and the files of models that it is to hold.
class Cache {
 public:
  Cache() {
    fs::create_directories(folder_);
    for (int i = 0; i < 4; ++i) {
      const std::string model = testing::OnnxBuilder()
                                    .input("x", {1, 4})
                                    .output("y", {1, 4})
                                    .node("Relu", {"x"}, {"y"})
                                    .build("relu" + std::to_string(i));
      models_.push_back(folder_ / ("relu" + std::to_string(i) + ".onnx"));
      if (!write_file_atomic(models_.back(), as_byte_span(model)).ok()) std::abort();
    }
    ::setenv("CORELANE_CACHE_DIR", (folder_ / "cache").c_str(), 1);
    log::set_level(log::Level::kOff);  // A line for each failure of the cache.
  }
  ~Cache() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  const fs::path& model(int i) const { return models_[static_cast<std::size_t>(i) % 4]; }
  std::vector<std::string> entries() const { return file_names(folder_ / "cache" / "programs"); }
  /// So that the next load of a model writes one again.
  void remove_one(int i) const {
    const std::vector<std::string> there = entries();
    std::error_code gone;
    if (!there.empty())
      fs::remove(folder_ / "cache" / "programs" / there[static_cast<std::size_t>(i) % there.size()],
                 gone);
  }
  /// Nothing half written, and nothing damaged.
  void check(Tally& tally) const {
    for (const std::string& name : entries()) {
      tally.expect(name.ends_with(".rknn"), "no unfinished entry is left");
      tally.expect(
          ProgramFile::open(folder_ / "cache" / "programs" / name, Verify::kEverything).has_value(),
          "an entry is whole");
    }
  }

 private:
  const fs::path folder_ =
      fs::temp_directory_path() / ("corelane-allocation-" + std::to_string(::getpid()));
  std::vector<fs::path> models_;
};

std::size_t threads_now() { return file_names("/proc/self/task").size(); }
std::size_t descriptors_now() { return file_names("/proc/self/fd").size(); }

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

/// One load through the cache, of a file, and one run.
Status load_cached_once(const Plan& plan, const Cache& cache, int i, Tally& tally) {
  LoadOptions options;
  options.device = plan.device;
  if (i % 5 == 4) cache.remove_one(i);
  CORELANE_ASSIGN(const Program program,
                  exposed([&] { return Program::load(cache.model(i), options); }));
  CORELANE_ASSIGN(Context context, exposed([&] { return program.new_context(); }));
  return use(context, static_cast<float>(i), tally);
}

/// Calls `once(number)` again and again.
template <class F>
void repeat(const Plan& plan, int thread, Tally& tally, const F& once) {
  const Shielded test;
  for (int i = 0; i < kCalls; ++i) {
    try {
      const Status status = once(thread + i);
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

template <class F>
void repeat_in_threads(const Plan& plan, Tally& tally, const F& once) {
  begin_failing(plan.share, plan.seed);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { repeat(plan, t, tally, once); });
  for (std::thread& thread : threads) thread.join();
  end_failing();
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
  repeat_in_threads(plan, tally, [&](int i) { return load_once(plan, files, i, tally); });
  if (plan.device.starts_with("null"))
    tally.expect(threads_now() == before, "no thread of a device is left");
  check_device(plan, files, tally);
}

void cache_round(const Plan& plan, Tally& tally) {
  const Files files;
  const Cache cache;
  for (int i = 0; i < 4; ++i)
    tally.expect(load_cached_once(plan, cache, i, tally).ok(), "a program loads");
  tally.expect(cache.entries().size() == 4, "each model has an entry");
  const std::size_t before = descriptors_now();
  repeat_in_threads(plan, tally, [&](int i) { return load_cached_once(plan, cache, i, tally); });
  tally.expect(descriptors_now() == before, "no file is left open");
  cache.check(tally);
  for (int i = 0; i < 4; ++i)
    tally.expect(load_cached_once(plan, cache, i, tally).ok(), "a model loads afterwards");
  tally.expect(cache.entries().size() == 4, "each model has an entry afterwards");
  check_device(plan, files, tally);
}

}  // namespace corelane::allocation
