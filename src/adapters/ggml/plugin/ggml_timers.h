/// Times of products of one row with weights that have their bytes, on the host's CPU and on the
/// NPU.
#pragma once

#include <vector>

#include "adapters/ggml/plugin/ggml_host.h"

namespace corelane::ggml {

/// Seconds on the host's own CPU backend with `threads` threads, by the public functions of ggml.
/// Negative where the host lacks one.
double time_on_cpu(const Host& host, const std::vector<abi::Tensor>& weights, int threads);

/// Seconds in this plugin. What the NPU library fails to compute takes as long as it takes.
double time_on_npu(const std::vector<abi::Tensor>& weights);

}  // namespace corelane::ggml
