#include "adapters/ggml/plugin/ggml_cpu.h"

#include <chrono>

namespace corelane::ggml {

/// Declared as in ggml.h and ggml-backend.h, which have had them since 0.9.
struct CpuFunctions {
  struct Context;
  struct InitParams {
    std::size_t mem_size;
    void* mem_buffer;
    bool no_alloc;
  };
  using SetThreads = void (*)(abi::Backend*, int);

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
  SetThreads set_threads = nullptr;  ///< The CPU backend's; may be null.

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

namespace {

constexpr int kDeviceCpu = 0;

void lay(abi::Tensor& tensor, const CpuMatrix& matrix) {
  tensor.nb[1] = matrix.row_bytes;
  tensor.nb[2] = tensor.nb[3] = matrix.row_bytes * static_cast<std::size_t>(matrix.rows);
  tensor.data = matrix.data;
}

}  // namespace

HostCpu::HostCpu(const Host& host) : call_(std::make_unique<CpuFunctions>()) {
  if (!call_->find(host)) return;
  abi::Device* device = call_->backend_dev_by_type(kDeviceCpu);
  if (device == nullptr) return;
  call_->set_threads =
      reinterpret_cast<CpuFunctions::SetThreads>(call_->backend_reg_get_proc_address(
          call_->backend_dev_backend_reg(device), "ggml_backend_set_n_threads"));
  backend_ = call_->backend_dev_init(device, nullptr);
}

HostCpu::~HostCpu() {
  if (backend_ != nullptr) call_->backend_free(backend_);
}

bool HostCpu::takes(int b_type, int a_type) {
  return a_type == abi::kTypeF32 || (a_type == abi::kTypeF16 && b_type == abi::kTypeF16);
}

/// Nothing is allocated for tensors: they lie where the matrices are.
double HostCpu::compute(const std::vector<CpuProduct>& products, int threads) {
  if (backend_ == nullptr) return -1;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::size_t tensors = products.size() * 3 + 8;
  const std::size_t bytes = tensors * call_->tensor_overhead() + call_->graph_overhead();
  const std::unique_ptr<CpuFunctions::Context, void (*)(CpuFunctions::Context*)> context(
      call_->init({bytes, nullptr, true}), call_->free);
  if (context == nullptr) return -1;
  if (call_->set_threads != nullptr) call_->set_threads(backend_, threads);
  abi::Graph* graph = call_->new_graph(context.get());
  for (const CpuProduct& product : products) {
    const auto make = [&](const CpuMatrix& matrix) {
      return call_->new_tensor_2d(context.get(), matrix.type, matrix.columns, matrix.rows);
    };
    abi::Tensor* b = make(product.b);
    abi::Tensor* a = make(product.a);
    abi::Tensor* c = call_->mul_mat(context.get(), b, a);
    lay(*b, product.b);
    lay(*a, product.a);
    lay(*c, product.c);
    call_->build_forward_expand(graph, c);
  }
  const auto begin = std::chrono::steady_clock::now();
  const bool done = call_->backend_graph_compute(backend_, graph) == abi::kStatusSuccess;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  return done ? spent.count() : -1;
}

}  // namespace corelane::ggml
