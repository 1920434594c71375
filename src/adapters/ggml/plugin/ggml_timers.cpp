#include "adapters/ggml/plugin/ggml_timers.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "adapters/ggml/plugin/ggml_plugin.h"

namespace corelane::ggml {
namespace {

template <class Run>
double time_of(Run run) {
  const auto begin = std::chrono::steady_clock::now();
  const bool done = run();
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  return done ? spent.count() : -1;
}

std::int64_t largest(const std::vector<abi::Tensor>& weights, int dimension) {
  std::int64_t most = 0;
  for (const abi::Tensor& weight : weights) most = std::max(most, weight.ne[dimension]);
  return most;
}

/// Declared as in ggml.h and ggml-backend.h, which have had them since 0.9.
struct Context;
struct InitParams {
  std::size_t mem_size;
  void* mem_buffer;
  bool no_alloc;
};

struct CpuFunctions {
  Context* (*init)(InitParams) = nullptr;
  void (*free)(Context*) = nullptr;
  std::size_t (*tensor_overhead)() = nullptr;
  std::size_t (*graph_overhead)() = nullptr;
  abi::Tensor* (*new_tensor_2d)(Context*, int type, std::int64_t, std::int64_t) = nullptr;
  abi::Tensor* (*mul_mat)(Context*, abi::Tensor*, abi::Tensor*) = nullptr;
  abi::Graph* (*new_graph)(Context*) = nullptr;
  void (*build_forward_expand)(abi::Graph*, abi::Tensor*) = nullptr;
  abi::Device* (*backend_dev_by_type)(int type) = nullptr;
  abi::Registry* (*backend_dev_backend_reg)(abi::Device*) = nullptr;
  void* (*backend_reg_get_proc_address)(abi::Registry*, const char* name) = nullptr;
  abi::Backend* (*backend_dev_init)(abi::Device*, const char* params) = nullptr;
  void (*backend_free)(abi::Backend*) = nullptr;
  int (*backend_graph_compute)(abi::Backend*, abi::Graph*) = nullptr;

  bool find(const Host& host) {
    const auto get = [&host](const char* name, auto& function) {
      return find_function(host.library, name, function);
    };
    return get("ggml_init", init) && get("ggml_free", free) &&
           get("ggml_tensor_overhead", tensor_overhead) &&
           get("ggml_graph_overhead", graph_overhead) && get("ggml_new_tensor_2d", new_tensor_2d) &&
           get("ggml_mul_mat", mul_mat) && get("ggml_new_graph", new_graph) &&
           get("ggml_build_forward_expand", build_forward_expand) &&
           get("ggml_backend_dev_by_type", backend_dev_by_type) &&
           get("ggml_backend_dev_backend_reg", backend_dev_backend_reg) &&
           get("ggml_backend_reg_get_proc_address", backend_reg_get_proc_address) &&
           get("ggml_backend_dev_init", backend_dev_init) &&
           get("ggml_backend_free", backend_free) &&
           get("ggml_backend_graph_compute", backend_graph_compute);
  }
};

constexpr int kDeviceCpu = 0;

/// A backend of the host's CPU device that uses `threads` threads; null where there is none.
abi::Backend* make_cpu_backend(const CpuFunctions& call, int threads) {
  abi::Device* device = call.backend_dev_by_type(kDeviceCpu);
  abi::Backend* backend = device != nullptr ? call.backend_dev_init(device, nullptr) : nullptr;
  if (backend == nullptr) return nullptr;
  void* set_threads = call.backend_reg_get_proc_address(call.backend_dev_backend_reg(device),
                                                        "ggml_backend_set_n_threads");
  if (set_threads != nullptr)
    reinterpret_cast<void (*)(abi::Backend*, int)>(set_threads)(backend, threads);
  return backend;
}

}  // namespace

/// A graph of one product of a row with each weight. Nothing is allocated: the weights lie where
/// they are, all products write to the same result.
double time_on_cpu(const Host& host, const std::vector<abi::Tensor>& weights, int threads) {
  CpuFunctions call;
  if (!call.find(host)) return -1;
  const std::size_t tensors = weights.size() * 3 + 8;
  const std::unique_ptr<Context, void (*)(Context*)> context(
      call.init({tensors * call.tensor_overhead() + call.graph_overhead(), nullptr, true}),
      call.free);
  const std::unique_ptr<abi::Backend, void (*)(abi::Backend*)> backend(
      make_cpu_backend(call, threads), call.backend_free);
  if (context == nullptr || backend == nullptr) return -1;
  std::vector<float> row(static_cast<std::size_t>(largest(weights, 0)), 1.0F);
  std::vector<float> result(static_cast<std::size_t>(largest(weights, 1)));
  abi::Graph* graph = call.new_graph(context.get());
  for (const abi::Tensor& weight : weights) {
    abi::Tensor* b = call.new_tensor_2d(context.get(), weight.type, weight.ne[0], weight.ne[1]);
    abi::Tensor* a = call.new_tensor_2d(context.get(), abi::kTypeF32, weight.ne[0], 1);
    abi::Tensor* c = call.mul_mat(context.get(), b, a);
    b->data = weight.data;
    a->data = row.data();
    c->data = result.data();
    call.build_forward_expand(graph, c);
  }
  return time_of(
      [&] { return call.backend_graph_compute(backend.get(), graph) == abi::kStatusSuccess; });
}

double time_on_npu(const std::vector<abi::Tensor>& weights) {
  plugin().engine->take_single_rows();
  std::vector<float> row(static_cast<std::size_t>(largest(weights, 0)), 1.0F);
  std::vector<float> result(static_cast<std::size_t>(largest(weights, 1)));
  return time_of([&] {
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
    return true;
  });
}

}  // namespace corelane::ggml
