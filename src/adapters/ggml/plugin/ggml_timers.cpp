#include "adapters/ggml/plugin/ggml_timers.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "adapters/ggml/plugin/ggml_cpu.h"
#include "adapters/ggml/plugin/ggml_plugin.h"

namespace corelane::ggml {
namespace {

std::int64_t largest(const std::vector<abi::Tensor>& weights, int dimension) {
  std::int64_t most = 0;
  for (const abi::Tensor& weight : weights) most = std::max(most, weight.ne[dimension]);
  return most;
}

}  // namespace

double time_on_cpu(const Host& host, const std::vector<abi::Tensor>& weights, int threads) {
  HostCpu cpu(host);
  std::vector<float> row(static_cast<std::size_t>(largest(weights, 0)), 1.0F);
  std::vector<float> result(static_cast<std::size_t>(largest(weights, 1)));
  std::vector<CpuProduct> products;
  for (const abi::Tensor& weight : weights) {
    CpuProduct product;
    product.b = {weight.type, weight.ne[0], weight.ne[1], weight.nb[1], weight.data};
    product.a = {abi::kTypeF32, weight.ne[0], 1, row.size() * sizeof(float), row.data()};
    product.c = {abi::kTypeF32, weight.ne[1], 1, result.size() * sizeof(float), result.data()};
    products.push_back(product);
  }
  return cpu.compute(products, threads);
}

double time_on_npu(const std::vector<abi::Tensor>& weights) {
  plugin().engine->take_single_rows();
  std::vector<float> row(static_cast<std::size_t>(largest(weights, 0)), 1.0F);
  std::vector<float> result(static_cast<std::size_t>(largest(weights, 1)));
  const auto begin = std::chrono::steady_clock::now();
  for (abi::Tensor weight : weights) {
    abi::Tensor a{};
    a.ne[0] = weight.ne[0];
    a.ne[1] = a.ne[2] = a.ne[3] = 1;
    a.nb[0] = sizeof(float);
    a.nb[1] = a.nb[2] = a.nb[3] = row.size() * sizeof(float);
    a.data = row.data();
    abi::Tensor node = a;
    node.ne[0] = weight.ne[1];
    node.nb[1] = node.nb[2] = node.nb[3] = result.size() * sizeof(float);
    node.data = result.data();
    node.src[0] = &weight;
    node.src[1] = &a;
    compute(node, false);
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  return spent.count();
}

}  // namespace corelane::ggml
