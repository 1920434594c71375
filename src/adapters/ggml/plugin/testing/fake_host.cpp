#include "adapters/ggml/plugin/testing/fake_host.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "adapters/ggml/mm/mm_convert.h"
#include "adapters/ggml/plugin/ggml_abi2.h"
#include "adapters/ggml/plugin/ggml_abi3.h"

namespace corelane::ggml {
namespace {

constexpr const char* kOperators[] = {"NONE", "RESHAPE", "VIEW", "MUL_MAT", "ADD", "GLU"};

void read_halves(const void* row, float* out, std::int64_t count) {
  halves_to_floats(static_cast<const std::uint16_t*>(row), static_cast<std::size_t>(count), out);
}

void read_blocks(const void* row, float* out, std::int64_t count) {
  const auto* at = static_cast<const char*>(row);
  for (std::int64_t i = 0; i < count; i += 32, at += 36) {
    float scale;
    std::memcpy(&scale, at, sizeof scale);
    for (int j = 0; j < 32; ++j)
      out[i + j] = scale * static_cast<float>(static_cast<signed char>(at[4 + j]));
  }
}

void read_few_bits(const void* row, float* out, std::int64_t count) {
  const auto* at = static_cast<const unsigned char*>(row);
  for (std::int64_t i = 0; i < count; i += 32, at += 20) {
    float scale;
    std::memcpy(&scale, at, sizeof scale);
    for (int j = 0; j < 32; ++j)
      out[i + j] = scale * static_cast<float>((at[4 + j / 2] >> (j % 2 * 4) & 15) - 8);
  }
}

bool is_third() { return fake_version().rfind("0.27.", 0) == 0; }

/// Calls `use` with the buffer type as a host of this version sees it.
template <class Use>
auto with_layout(abi::BufferType* type, Use use) {
  return is_third() ? use(*reinterpret_cast<abi3::BufferType*>(type))
                    : use(*reinterpret_cast<abi2::BufferType*>(type));
}

const abi::TypeTraits kF32{"f32", 1, 0, 4, false, nullptr, nullptr};
const abi::TypeTraits kF16{"f16", 1, 0, 2, false, read_halves, nullptr};
const abi::TypeTraits kBlocks{"blocks", 32, 0, 36, true, read_blocks, nullptr};
const abi::TypeTraits kFewBits{"few bits", 32, 0, 20, true, read_few_bits, nullptr};

const abi::TypeTraits& traits_of(int type) {
  return type == abi::kTypeF32   ? kF32
         : type == abi::kTypeF16 ? kF16
         : type == kFakeFewBits  ? kFewBits
                                 : kBlocks;
}

}  // namespace

std::vector<std::string>& fake_log() {
  static std::vector<std::string> lines;
  return lines;
}

std::function<void()>& fake_on_line() {
  static std::function<void()> called;
  return called;
}

bool& fake_lacks_memory() {
  static bool lacks = false;
  return lacks;
}

std::string& fake_version() {
  static std::string version = [] {
    const char* given = std::getenv("FAKE_GGML_VERSION");
    return std::string(given != nullptr ? given : "0.25.3");
  }();
  return version;
}

abi::Buffer* fake_alloc(abi::BufferType* type, std::size_t size) {
  return with_layout(type, [&](auto& laid_out) { return laid_out.iface.alloc_buffer(type, size); });
}

std::size_t fake_alignment(abi::BufferType* type) {
  return with_layout(type, [&](auto& laid_out) { return laid_out.iface.get_alignment(type); });
}

abi::BufferType* fake_foreign_type() {
  static abi2::BufferType two{};
  static abi3::BufferType three{};
  return is_third() ? reinterpret_cast<abi::BufferType*>(&three)
                    : reinterpret_cast<abi::BufferType*>(&two);
}

abi::Tensor fake_tensor(int type, std::int64_t columns, std::int64_t rows) {
  const abi::TypeTraits& traits = traits_of(type);
  abi::Tensor made{};
  made.type = type;
  made.ne[0] = columns;
  made.ne[1] = rows;
  made.ne[2] = made.ne[3] = 1;
  made.nb[0] = traits.type_size;
  made.nb[1] = static_cast<std::size_t>(columns / traits.blck_size) * traits.type_size;
  made.nb[2] = made.nb[3] = made.nb[1] * static_cast<std::size_t>(rows);
  return made;
}

abi::Tensor fake_product(abi::Tensor& weights, abi::Tensor& activations) {
  abi::Tensor made = fake_tensor(abi::kTypeF32, weights.ne[1], activations.ne[1]);
  made.op = kFakeMulMat;
  made.flags = abi::kFlagCompute;
  made.src[0] = &weights;
  made.src[1] = &activations;
  return made;
}

#define FAKE_EXPORT __attribute__((visibility("default"), used))

extern "C" {

FAKE_EXPORT const char* ggml_version() { return fake_version().c_str(); }

FAKE_EXPORT const char* ggml_op_name(int op) { return kOperators[op]; }

FAKE_EXPORT const abi::TypeTraits* ggml_get_type_traits(int type) { return &traits_of(type); }

FAKE_EXPORT int ggml_graph_n_nodes(abi::Graph* graph) {
  return static_cast<int>(graph->nodes.size());
}

FAKE_EXPORT abi::Tensor* ggml_graph_node(abi::Graph* graph, int index) {
  return graph->nodes[static_cast<std::size_t>(index)];
}

FAKE_EXPORT abi::Buffer* ggml_backend_buffer_init(abi::BufferType* type, abi::BufferInterface iface,
                                                  void* context, std::size_t size) {
  if (fake_lacks_memory()) throw std::bad_alloc();
  return new abi::Buffer{iface, type, context, size, abi::kUsageAny};
}

FAKE_EXPORT bool ggml_backend_buft_is_host(abi::BufferType* type) {
  return with_layout(type, [type](auto& laid_out) {
    return laid_out.iface.is_host != nullptr && laid_out.iface.is_host(type);
  });
}

FAKE_EXPORT void ggml_log_internal(int, const char* format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  fake_log().push_back(line);
  if (fake_on_line()) fake_on_line()();
}

}  // extern "C"

}  // namespace corelane::ggml
