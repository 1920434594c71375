/// Products on the host's own CPU backend, by the public functions of ggml.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "adapters/ggml/plugin/ggml_host.h"

namespace corelane::ggml {

/// Where it lies, the elements of a row beside each other.
struct CpuMatrix {
  int type = 0;
  std::int64_t columns = 0;
  std::int64_t rows = 0;
  std::size_t row_bytes = 0;
  void* data = nullptr;
};

/// c = a x b, as a node of MUL_MAT has it: b is the first matrix.
struct CpuProduct {
  CpuMatrix b;
  CpuMatrix a;
  CpuMatrix c;
};

struct CpuFunctions;

/// From any thread; one graph at a time.
class HostCpu {
 public:
  explicit HostCpu(const Host& host);
  ~HostCpu();
  HostCpu(const HostCpu&) = delete;
  HostCpu& operator=(const HostCpu&) = delete;

  /// False where the host has no CPU backend, or lacks a function.
  bool is_there() const { return backend_ != nullptr; }
  /// Whether it multiplies such types: what it does not know would end the process.
  static bool takes(int b_type, int a_type);
  /// One graph of all products, of which none reads what another writes. Seconds; negative where it
  /// was not computed.
  double compute(const std::vector<CpuProduct>& products, int threads);

 private:
  std::mutex mutex_;
  std::unique_ptr<CpuFunctions> call_;
  abi::Backend* backend_ = nullptr;
};

}  // namespace corelane::ggml
