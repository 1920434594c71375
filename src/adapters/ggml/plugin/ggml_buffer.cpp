/// Buffers: memory objects of the NPU library in the host's own layout, which the CPU reads and
/// writes as any other memory.
///
/// Hosts fill weights without telling (a file is read straight to where a tensor lies) as well as
/// through set_tensor, so that a weight is made ready at its first product and dropped at each call
/// that writes. What a host's CPU computes into a weight between two graphs comes without a call,
/// too: some of the bytes are compared before each product.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "adapters/ggml/plugin/ggml_abi2.h"
#include "adapters/ggml/plugin/ggml_abi3.h"
#include "adapters/ggml/plugin/ggml_plugin.h"

namespace corelane::ggml {
namespace {

constexpr std::size_t kAlignment = 64;
/// Slices are named by an offset of 32 bits.
constexpr std::size_t kMaxSize = std::size_t{1} << 30;

/// Where a weight lies and how its bytes are meant: type, columns, rows, bytes from row to row.
using WeightKey = std::tuple<const char*, int, std::int64_t, std::int64_t, std::size_t>;

std::size_t bytes_of_row(int type, std::int64_t columns) {
  const abi::TypeTraits& traits = *plugin().host->call.get_type_traits(type);
  return static_cast<std::size_t>(columns / traits.blck_size) * traits.type_size;
}

/// From the first one to the last: rows may lie apart, or overlap.
std::size_t bytes_of(const WeightKey& key) {
  const auto& [first, type, columns, rows, row_bytes] = key;
  return static_cast<std::size_t>(rows - 1) * row_bytes + bytes_of_row(type, columns);
}

struct HeldWeight {
  std::shared_ptr<MmWeight> weight;  ///< Null: found no room.
  std::uint64_t sample = 0;          ///< sample_of() its bytes.
};

struct BufferState {
  char* base = nullptr;
  std::shared_ptr<MmMemory> block;  ///< Null: plain memory, or the caller's.
  void* plain = nullptr;            ///< To be freed.
  std::mutex mutex;
  std::map<WeightKey, HeldWeight> weights;

  BufferState() = default;
  BufferState(const BufferState&) = delete;
  BufferState& operator=(const BufferState&) = delete;
  ~BufferState() {
    if (is_forked()) {
      leave();
      return;
    }
    plugin().few_rows->forget_weights();
    drop(base, SIZE_MAX);
    std::free(plain);
  }
  /// What belongs to the NPU stays the parent's: freeing it would wait for the parent's threads.
  void leave() {
    if (block != nullptr) (void)new std::shared_ptr<MmMemory>(std::move(block));
    if (!weights.empty()) (void)new std::map<WeightKey, HeldWeight>(std::move(weights));
    std::free(plain);
  }
  /// Over memory of the caller's, as that of a mapped file.
  bool is_mapped() const { return block == nullptr && plain == nullptr; }
  void release(const HeldWeight& held) {
    if (held.weight != nullptr) plugin().engine->release(held.weight);
  }
  /// Forgets the weights that have bytes in [data, data + size).
  void drop(const void* data, std::size_t size) {
    if (is_forked()) return;
    const std::lock_guard<std::mutex> lock(mutex);
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    for (auto at = weights.begin(); at != weights.end();) {
      const auto first = reinterpret_cast<std::uintptr_t>(std::get<0>(at->first));
      const bool apart =
          first >= begin ? first - begin >= size : begin - first >= bytes_of(at->first);
      if (apart) {
        ++at;
        continue;
      }
      release(at->second);
      at = weights.erase(at);
    }
  }
};

BufferState& state_of(const abi::Buffer* buffer) {
  return *static_cast<BufferState*>(buffer->context);
}

void free_buffer(abi::Buffer* buffer) { delete static_cast<BufferState*>(buffer->context); }

void* get_base(abi::Buffer* buffer) { return state_of(buffer).base; }

void memset_tensor(abi::Buffer* buffer, abi::Tensor* tensor, std::uint8_t value, std::size_t offset,
                   std::size_t size) {
  char* at = static_cast<char*>(tensor->data) + offset;
  state_of(buffer).drop(at, size);
  std::memset(at, value, size);
}

void set_tensor(abi::Buffer* buffer, abi::Tensor* tensor, const void* data, std::size_t offset,
                std::size_t size) {
  char* at = static_cast<char*>(tensor->data) + offset;
  state_of(buffer).drop(at, size);
  std::memcpy(at, data, size);
}

void get_tensor(abi::Buffer*, const abi::Tensor* tensor, void* data, std::size_t offset,
                std::size_t size) {
  std::memcpy(data, static_cast<const char*>(tensor->data) + offset, size);
}

/// From the first byte to the last one, as ggml_nbytes() counts: rows, and elements of types
/// without blocks, may lie apart and in any order.
std::size_t bytes_of(const abi::Tensor& tensor) {
  for (const std::int64_t size : tensor.ne)
    if (size <= 0) return 0;
  const abi::TypeTraits& traits = *plugin().host->call.get_type_traits(tensor.type);
  const bool blocks = traits.blck_size != 1;
  std::size_t bytes = traits.type_size;
  if (blocks)
    bytes = static_cast<std::size_t>(tensor.ne[0]) * tensor.nb[0] /
            static_cast<std::size_t>(traits.blck_size);
  for (int i = blocks ? 1 : 0; i < 4; ++i)
    bytes += static_cast<std::size_t>(tensor.ne[i] - 1) * tensor.nb[i];
  return bytes;
}

/// The host asks this of tensors of one layout only.
bool cpy_tensor(abi::Buffer* buffer, const abi::Tensor* src, abi::Tensor* dst) {
  const abi::Buffer* from = src->view_src != nullptr ? src->view_src->buffer : src->buffer;
  if (from == nullptr || !plugin().host->call.backend_buft_is_host(from->buft)) return false;
  const std::size_t bytes = bytes_of(*src);
  state_of(buffer).drop(dst->data, bytes);
  std::memcpy(dst->data, src->data, bytes);
  return true;
}

void clear(abi::Buffer* buffer, std::uint8_t value) {
  BufferState& state = state_of(buffer);
  state.drop(state.base, buffer->size);
  std::memset(state.base, value, buffer->size);
}

abi::Buffer* make_buffer(std::unique_ptr<BufferState> state, std::size_t size) {
  abi::BufferInterface iface{};
  iface.free_buffer = free_buffer;
  iface.get_base = get_base;
  iface.memset_tensor = memset_tensor;
  iface.set_tensor = set_tensor;
  iface.get_tensor = get_tensor;
  iface.cpy_tensor = cpy_tensor;
  iface.clear = clear;
  abi::Buffer* const made =
      plugin().host->call.backend_buffer_init(buffer_type(), iface, state.get(), size);
  (void)state.release();
  return made;
}

const char* type_name(abi::BufferType*) { return "RKNN"; }

/// Beyond the budget plain memory: the weights in it are copied for the NPU, or stay on the CPU.
abi::Buffer* allocated(std::size_t size) {
  auto state = std::make_unique<BufferState>();
  const bool whole = size <= kMaxSize && !is_forked();
  state->block = whole ? plugin().engine->device().allocate(size) : nullptr;
  if (state->block != nullptr) {
    state->base = static_cast<char*>(state->block->data());
  } else {
    const std::size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
    state->plain = std::aligned_alloc(kAlignment, rounded);
    if (state->plain == nullptr) return nullptr;
    state->base = static_cast<char*>(state->plain);
  }
  return make_buffer(std::move(state), size);
}

abi::Buffer* alloc_buffer(abi::BufferType*, std::size_t size) {
  if (size > SIZE_MAX - kAlignment) return nullptr;
  return or_else<abi::Buffer*>(nullptr, [size] { return allocated(size); });
}

std::size_t get_alignment(abi::BufferType*) { return kAlignment; }
std::size_t get_max_size(abi::BufferType*) { return kMaxSize; }
bool is_host(abi::BufferType*) { return true; }

/// The one buffer type, laid out as a generation has it.
template <class Layout>
abi::BufferType* the_type() {
  static Layout type = [] {
    Layout made{};
    made.iface.get_name = type_name;
    made.iface.alloc_buffer = alloc_buffer;
    made.iface.get_alignment = get_alignment;
    made.iface.get_max_size = get_max_size;
    made.iface.is_host = is_host;
    made.device = registry()->iface.get_device(registry(), 0);
    return made;
  }();
  return reinterpret_cast<abi::BufferType*>(&type);
}

}  // namespace

abi::BufferType* buffer_type() {
  return plugin().host->api_version == abi3::kApiVersion ? the_type<abi3::BufferType>()
                                                         : the_type<abi2::BufferType>();
}

abi::Buffer* wrap_memory(void* data, std::size_t size) {
  auto state = std::make_unique<BufferState>();
  state->base = static_cast<char*>(data);
  return make_buffer(std::move(state), size);
}

namespace {

/// The state of a tensor's buffer, if this plugin made it for weights; null for others.
BufferState* state_of_weights(const abi::Tensor& tensor) {
  const abi::Buffer* buffer = tensor.view_src != nullptr ? tensor.view_src->buffer : tensor.buffer;
  const bool ours = buffer != nullptr && buffer->buft == buffer_type() &&
                    buffer->context != nullptr && buffer->usage == abi::kUsageWeights;
  return ours ? &state_of(buffer) : nullptr;
}

/// The key of one matrix of the tensor, which begins at `data`.
WeightKey key_of(const abi::Tensor& tensor, const void* data) {
  return {static_cast<const char*>(data), tensor.type, tensor.ne[0], tensor.ne[1], tensor.nb[1]};
}

/// A sample of 8 places, spread over the rows and along them: a host that computes a weight anew
/// changes nearly all of its bytes. Few enough places to cost nothing beside a product.
std::uint64_t sample_of(const abi::Tensor& tensor, const MmMatrix& matrix) {
  constexpr std::uint64_t kPlaces = 8;
  const std::uint64_t row_bytes = bytes_of_row(tensor.type, tensor.ne[0]);
  const std::uint64_t width = std::min<std::uint64_t>(row_bytes, 8);
  const auto last_row = static_cast<std::uint64_t>(matrix.rows - 1);
  std::uint64_t sample = 0;
  for (std::uint64_t i = 0; i < kPlaces; ++i) {
    const char* const row = static_cast<const char*>(
        matrix.row(static_cast<std::int64_t>(last_row * i / (kPlaces - 1))));
    std::uint64_t word = 0;
    std::memcpy(&word, row + (row_bytes - width) * (i * 3 % kPlaces) / (kPlaces - 1), width);
    sample = (sample ^ word) * 0x9e3779b97f4a7c15U;
    sample ^= sample >> 29;
  }
  return sample;
}

}  // namespace

bool lacks_room(const abi::Tensor& tensor) {
  BufferState* state = state_of_weights(tensor);
  if (state == nullptr) return false;
  const std::lock_guard<std::mutex> lock(state->mutex);
  for (std::int64_t i3 = 0; i3 < tensor.ne[3]; ++i3)
    for (std::int64_t i2 = 0; i2 < tensor.ne[2]; ++i2) {
      const auto found = state->weights.find(key_of(tensor, matrix_at(tensor, i2, i3)));
      if (found != state->weights.end() && found->second.weight == nullptr) return true;
    }
  return false;
}

std::shared_ptr<MmWeight> weight_of(const abi::Tensor& tensor, const MmMatrix& matrix,
                                    MmType type) {
  BufferState* const known = state_of_weights(tensor);
  if (known == nullptr) return nullptr;
  BufferState& state = *known;
  const WeightKey key = key_of(tensor, matrix.data);
  const std::lock_guard<std::mutex> lock(state.mutex);
  // A mapped file is not read for it: the system may have dropped those pages.
  const std::uint64_t sample = state.is_mapped() ? 0 : sample_of(tensor, matrix);
  const auto found = state.weights.find(key);
  if (found != state.weights.end() && found->second.sample == sample) return found->second.weight;
  if (found != state.weights.end()) {
    state.release(found->second);
    state.weights.erase(found);
  }
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(matrix.data) - state.base);
  auto weight = plugin().engine->prepare(matrix, type, state.block, offset);
  state.weights.emplace(key, HeldWeight{weight, sample});
  return weight;
}

void forget_weights_in(const abi::Tensor& tensor) {
  const abi::Buffer* buffer = tensor.view_src != nullptr ? tensor.view_src->buffer : tensor.buffer;
  if (buffer == nullptr || buffer->buft != buffer_type() || buffer->context == nullptr) return;
  state_of(buffer).drop(tensor.data, bytes_of(tensor));
}

}  // namespace corelane::ggml
