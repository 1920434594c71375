/// Where products of few rows are quicker, on the NPU or on the host's CPU: measured once for each
/// type of weights, since it depends on the machine, the library and how the host multiplies.
///
/// It is measured on the weights that the host asks about: decoding reads all of a model for each
/// token, so that weights that stay in a cache would tell nothing.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "adapters/ggml/plugin/ggml_abi.h"

namespace corelane::ggml {

/// From any thread.
class FewRows {
 public:
  /// Seconds for a product of one row with each of the weights, which have their bytes; negative
  /// where one cannot be made.
  using Timer = std::function<double(const std::vector<abi::Tensor>& weights)>;
  /// `told`: gets one line for each type that is measured.
  FewRows(Timer npu, Timer cpu, std::function<void(const std::string&)> told)
      : npu_(std::move(npu)), cpu_(std::move(cpu)), told_(std::move(told)) {}

  /// Whether the NPU takes few rows with this weight. No until enough weights of the type were
  /// asked about; that call measures, and takes some runs of all of them.
  bool go_to_npu(const abi::Tensor& weight);
  /// Weights are about to go, or to change.
  void forget_weights();

 private:
  struct State {
    bool measured = false;
    bool npu = false;
    std::vector<abi::Tensor> weights;
    std::int64_t elements = 0;
  };
  bool measure(const State& state) const;

  const Timer npu_;
  const Timer cpu_;
  const std::function<void(const std::string&)> told_;
  std::mutex mutex_;
  std::map<int, State> states_;  ///< By type.
};

}  // namespace corelane::ggml
