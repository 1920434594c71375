/// The layouts of plugin API 2: ggml 0.10 to 0.25.
#pragma once

#include "adapters/ggml/plugin/ggml_abi.h"

namespace corelane::ggml::abi2 {

inline constexpr int kApiVersion = 2;

struct BufferTypeInterface {
  const char* (*get_name)(abi::BufferType*);
  abi::Buffer* (*alloc_buffer)(abi::BufferType*, std::size_t size);
  std::size_t (*get_alignment)(abi::BufferType*);
  std::size_t (*get_max_size)(abi::BufferType*);
  std::size_t (*get_alloc_size)(abi::BufferType*, const abi::Tensor*);
  bool (*is_host)(abi::BufferType*);
};

struct BufferType {
  BufferTypeInterface iface;
  abi::Device* device;
  void* context;
};

}  // namespace corelane::ggml::abi2
