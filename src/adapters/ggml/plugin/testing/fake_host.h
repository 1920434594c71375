/// A host inside the test program: the functions of ggml that the plugin looks for, tensors,
/// buffers and graphs as a host makes them. The program exports the functions, so that the plugin
/// finds them.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "adapters/ggml/plugin/ggml_abi.h"

namespace corelane::ggml::abi {

/// What a host's ggml_cgraph is to the plugin.
struct Graph {
  std::vector<Tensor*> nodes;
};

}  // namespace corelane::ggml::abi

namespace corelane::ggml {

inline constexpr int kFakeMulMat = 3;
inline constexpr int kFakeAdd = 4;
/// A type of blocks of 32: one float scale and 32 signed bytes.
inline constexpr int kFakeBlocks = 8;
/// A type of blocks of 32, too: one float scale and 32 elements of 4 bits, 5 bits an element.
inline constexpr int kFakeFewBits = 2;

/// The lines that the plugin wrote to the host's log.
std::vector<std::string>& fake_log();
/// Called with each of them, as what a program gives to ggml_log_set().
std::function<void()>& fake_on_line();
/// Whether the host has no memory for what describes a buffer.
bool& fake_lacks_memory();
/// What ggml_version() says: FAKE_GGML_VERSION of the environment, else 0.25.3.
std::string& fake_version();

/// What a host calls of a plugin's buffer type, by the layout of its own version.
abi::Buffer* fake_alloc(abi::BufferType* type, std::size_t size);
std::size_t fake_alignment(abi::BufferType* type);
/// A buffer type that is not the plugin's, of ordinary memory.
abi::BufferType* fake_foreign_type();

/// A tensor of two dimensions without data. `columns` is the fastest.
abi::Tensor fake_tensor(int type, std::int64_t columns, std::int64_t rows);
/// The product node of two tensors, F32.
abi::Tensor fake_product(abi::Tensor& weights, abi::Tensor& activations);

}  // namespace corelane::ggml
