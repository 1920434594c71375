#include "mutant_trial.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <vector>

#include "corelane/runtime/program.h"
#include "corelane/tensor/value.h"
#include "values_of.h"

namespace corelane::robustness {
namespace {

using node_tests::CaseTensor;

constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 30;
constexpr std::size_t kMostInput = std::size_t{64} << 20;

/// "VmHWM" or "VmRSS", in bytes.
std::size_t of_status(std::string_view key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) return std::stoul(line.substr(key.size() + 1)) * 1024;
  return 0;
}

/// The largest resident size since construction, above the one at construction.
class PeakResident {
 public:
  PeakResident() : before_(of_status("VmRSS")) {
    std::ofstream("/proc/self/clear_refs") << 5;  // Resets VmHWM.
  }
  std::size_t bytes() const {
    const std::size_t most = of_status("VmHWM");
    return most > before_ ? most - before_ : 0;
  }

 private:
  std::size_t before_;
};

/// Two of each open dimension, zeros; none where it would be too large.
std::optional<CaseTensor> tensor_for(const TensorDesc& desc) {
  CaseTensor t;
  t.onnx_type = 1;
  t.dtype = desc.dtype;
  std::vector<std::int64_t> dims(desc.shape.dims().begin(), desc.shape.dims().end());
  for (auto& d : dims)
    if (d == Shape::kOpen) d = 2;
  t.shape = Shape(std::move(dims));
  const auto elements = t.shape.elements();
  if (!elements || *elements > kMostInput) return std::nullopt;
  const std::size_t bytes = (*elements * dtype_bits(desc.dtype) + 7) / 8;
  if (bytes > kMostInput) return std::nullopt;
  t.data.resize(bytes);
  return t;
}

/// Strings; an input of other values refuses them.
CaseTensor value_of_strings() {
  static constexpr std::array<std::string_view, 4> kWords = {"", "a", "\xff", "word"};
  CaseTensor t;
  t.data = ValueBuilder().strings(Shape{4}, kWords).finish().value_or(ByteVector());
  return t;
}

std::optional<std::vector<CaseTensor>> inputs_for(const Context& context) {
  std::vector<CaseTensor> inputs;
  for (const TensorDesc& desc : context.inputs()) {
    auto t = desc.value.empty() ? tensor_for(desc) : value_of_strings();
    if (!t) return std::nullopt;
    inputs.push_back(std::move(*t));
  }
  return inputs;
}

Status run_once(const Program& program, std::size_t pattern) {
  CORELANE_ASSIGN(Context context, program.new_context());
  auto inputs = inputs_for(context);
  if (!inputs) return error(Code::kOutOfMemory, "inputs of more than 64 MiB");
  *inputs = node_tests::with_values(std::move(*inputs), pattern);
  for (std::size_t i = 0; i < inputs->size(); ++i) {
    const CaseTensor& t = (*inputs)[i];
    static const std::byte kNothing{};
    const TensorView view{
        t.data.empty() ? &kNothing : t.data.data(), t.data.size(), t.dtype, t.shape, {}, {}};
    CORELANE_TRY(context.set_input(i, t.onnx_type == 0 ? flat_view(t.data) : view));
  }
  RunOptions limits;
  limits.timeout = std::chrono::seconds(5);
  CORELANE_TRY(context.run(limits));
  for (std::size_t i = 0; i < context.outputs().size(); ++i) {
    // The macro is two statements.
    CORELANE_ASSIGN(const auto view, context.output(i));
  }
  return {};
}

LoadOptions options_for(std::uint64_t number) {
  LoadOptions options;
  constexpr const char* kEngines[] = {"auto", "auto", "auto", "openvino", "onnxruntime"};
  options.device = std::string("virtual:generic:1?engine=") + kEngines[number / 2 % 5];
  options.cache = false;
  options.load_memory = kMostMemory;
  // Off: OpenVINO goes first. On: the second engine, which compiles little.
  options.time_engines = number / 2 % 5 == 0;
  return options;
}

}  // namespace

Trial try_file(ByteSpan file, std::uint64_t number) {
  Trial trial;
  const PeakResident memory;
  const auto program = Program::load(file, options_for(number));
  trial.loaded = program.has_value();
  if (!program) trial.text = program.error().to_string();
  if (program) trial.engine = program->engine().engine;
  trial.load_peak = memory.bytes();
  for (std::size_t i = 0; program && i < 3; ++i) {
    const Status ran = run_once(*program, (number / 2 + i * 5) % node_tests::kPatterns);
    trial.ran += ran.ok() ? 1 : 0;
    if (!ran.ok() && trial.text.empty()) trial.text = ran.to_string();
  }
  trial.peak = memory.bytes();
  return trial;
}

}  // namespace corelane::robustness
