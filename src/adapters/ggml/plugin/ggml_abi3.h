/// The layouts of plugin API 3: ggml 0.27.
#pragma once

#include "adapters/ggml/plugin/ggml_abi.h"

namespace corelane::ggml::abi3 {

inline constexpr int kApiVersion = 3;

struct BufferTypeInterface {
  const char* (*get_name)(abi::BufferType*);
  abi::Buffer* (*alloc_buffer)(abi::BufferType*, std::size_t size);
  void* alloc_buffer_n;
  std::size_t (*get_alignment)(abi::BufferType*);
  std::size_t (*get_max_size)(abi::BufferType*);
  std::size_t (*get_alloc_size)(abi::BufferType*, const abi::Tensor*);
  void* get_alloc_size_n;
  bool (*is_host)(abi::BufferType*);
};

struct BufferType {
  BufferTypeInterface iface;
  abi::Device* device;
  void* context;
};

}  // namespace corelane::ggml::abi3
