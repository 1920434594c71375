#include "adapters/ggml/plugin/ggml_few_rows.h"

#include <algorithm>
#include <cstdio>

namespace corelane::ggml {
namespace {

/// More than the caches that a core has to itself.
constexpr std::int64_t kEnoughElements = std::int64_t{1} << 24;
/// So many small weights are enough; a host's graph has room for 2048 nodes.
constexpr std::size_t kEnoughWeights = 128;
constexpr int kRounds = 3;
/// The NPU must need less than this part of the CPU's time: a disturbed round may make a near tie.
constexpr double kClearlyLess = 0.85;

}  // namespace

bool FewRows::go_to_npu(const abi::Tensor& weight) {
  const std::lock_guard<std::mutex> lock(mutex_);
  State& state = states_[weight.type];
  if (state.measured) return state.npu;
  // Hosts ask about one several times in a row, then about the next, then about all again.
  const bool again = state.weights.size() > 1 && state.weights.front().data == weight.data;
  const bool known = std::any_of(state.weights.begin(), state.weights.end(),
                                 [&](const abi::Tensor& one) { return one.data == weight.data; });
  if (!known) {
    state.weights.push_back(weight);
    abi::Tensor& kept = state.weights.back();
    if (kept.view_src != nullptr) kept.buffer = kept.view_src->buffer;
    kept.view_src = nullptr;  // It may go before its buffer does, which forget_weights() tells.
    state.elements += weight.ne[0] * weight.ne[1];
  }
  if (!again && state.elements < kEnoughElements && state.weights.size() < kEnoughWeights)
    return false;
  state.npu = measure(state);
  state.measured = true;
  state.weights.clear();
  return state.npu;
}

/// Rounds alternate, and the best one of each counts: others use the machine, too.
bool FewRows::measure(const State& state) const {
  double npu = -1;
  double cpu = -1;
  for (int round = 0; round <= kRounds; ++round) {
    const double with_cpu = cpu_(state.weights);
    const double with_npu = with_cpu < 0 ? -1 : npu_(state.weights);
    if (with_npu < 0) return false;
    if (round == 0) continue;  // Weights are brought to the NPU, memory to the process.
    npu = round == 1 ? with_npu : std::min(npu, with_npu);
    cpu = round == 1 ? with_cpu : std::min(cpu, with_cpu);
  }
  const bool to_npu = npu < cpu * kClearlyLess;
  char line[200];
  std::snprintf(line, sizeof line,
                "one row with %zu weights: NPU %.2f ms, CPU %.2f ms; fewer rows than 8 %s; "
                "GGML_RKNN_MIN_ROWS overrides this",
                state.weights.size(), npu * 1e3, cpu * 1e3,
                to_npu ? "go to the NPU" : "stay on the CPU");
  told_(line);
  return to_npu;
}

void FewRows::forget_weights() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [type, state] : states_) {
    state.weights.clear();
    state.elements = 0;
  }
}

}  // namespace corelane::ggml
