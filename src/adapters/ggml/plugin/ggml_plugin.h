/// What the parts of the plugin share: the host, the engine, options and counts of this process.
#pragma once

#include <unistd.h>

#include <exception>
#include <memory>
#include <string>

#include "adapters/ggml/plugin/ggml_abi.h"
#include "adapters/ggml/plugin/ggml_few_rows.h"
#include "adapters/ggml/plugin/ggml_filter.h"
#include "adapters/ggml/plugin/ggml_host.h"
#include "adapters/ggml/plugin/ggml_options.h"
#include "adapters/ggml/plugin/ggml_stats.h"

namespace corelane::ggml {

/// Made by the first start() that succeeds and never destroyed: hosts end with threads that run.
struct Plugin {
  const Host* host = nullptr;
  PluginOptions options;
  Filter filter;
  std::shared_ptr<MmEngine> engine;
  /// Where int4 was asked for, what quantized weights of few bits are multiplied as.
  MmType few_bits = MmType::kInt8;
  Stats stats;
  std::unique_ptr<FewRows> few_rows;
  pid_t process = getpid();  ///< The one that started it.
};

/// Looks at the host, reads the environment and opens the library. False, after one line in the
/// host's log, where the plugin cannot serve. `caller`: code of the host.
bool start(const void* caller);
/// Whether start() has succeeded.
bool is_started();
/// After start().
Plugin& plugin();
/// Whether another process started the plugin and was forked. Then the buffers' memory is shared
/// with that one, and what its other threads had locked stays locked here: nothing of the NPU may
/// be used or freed.
inline bool is_forked() { return plugin().process != getpid(); }

/// The one registry of this plugin, with the one device.
abi::Registry* registry();
abi::BufferType* buffer_type();
/// A backend of the device, freed by its interface.
abi::Backend* make_backend();
bool is_ours(const abi::Backend* backend);

/// What `call` returns, or `otherwise` where it throws: no exception may leave a function that a
/// host calls.
template <class Result, class Call>
Result or_else(Result otherwise, Call&& call) {
  try {
    return call();
  } catch (const std::exception&) {
    return otherwise;
  }
}

/// Where one matrix of a tensor begins.
inline const char* matrix_at(const abi::Tensor& tensor, std::int64_t i2, std::int64_t i3) {
  return static_cast<const char*>(tensor.data) + static_cast<std::size_t>(i2) * tensor.nb[2] +
         static_cast<std::size_t>(i3) * tensor.nb[3];
}

/// ggml_buffer.cpp. A buffer of this plugin over memory that stays the caller's.
abi::Buffer* wrap_memory(void* data, std::size_t size);
/// The weight that `tensor` is, made ready at the first call; null where it is not in a buffer of
/// ours that holds weights, or finds no room. Valid until the bytes change.
std::shared_ptr<MmWeight> weight_of(const abi::Tensor& tensor, const MmMatrix& matrix, MmType type);
/// Whether weight_of() found no room for a matrix of the tensor.
bool lacks_room(const abi::Tensor& tensor);
/// The bytes of the tensor were written: weights that lie there are made ready anew.
void forget_weights_in(const abi::Tensor& tensor);

/// ggml_mul_mat.cpp. Whether the device computes the node, and why not.
Answer can_compute(const abi::Tensor& node);
/// Computes a product that can_compute() said yes to. `counted`: among those of the host.
void compute(const abi::Tensor& node, bool counted = true);

}  // namespace corelane::ggml
