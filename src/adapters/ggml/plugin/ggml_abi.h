/// What a host and a plugin share, declared anew: what is the same from ggml 0.10 to 0.27.
///
/// Names are ours; order, types and sizes of members are the host's. A test compares them with the
/// header of a host's sources. Function pointers that the plugin leaves null stand as void*.
/// What differs between the generations of the plugin API is in ggml_abi2.h and ggml_abi3.h.
///
/// Within the range, members were added only where the plugin leaves a hole: `mmap_support` (0.20)
/// lies in what was padding before, and `graph_optimize` (another signature from 0.25 on) is null.
#pragma once

#include <cstddef>
#include <cstdint>

namespace corelane::ggml::abi {

// Of ggml.h. Numbers of operators differ between releases: they are asked of the host by name.
inline constexpr int kTypeF32 = 0;
inline constexpr int kTypeF16 = 1;
inline constexpr int kTypeBF16 = 30;
inline constexpr std::int32_t kFlagParam = 4;  ///< Trained: a graph may change it in place.
inline constexpr std::int32_t kFlagCompute = 16;
inline constexpr std::int32_t kPrecisionF32 = 10;  ///< op_params[0] of a product.
inline constexpr std::int32_t kHintHadamard = 1;   ///< op_params[1] of a product.
// op_params[3] of a product: the coarsest that its activations may become; 0 says nothing.
inline constexpr std::int32_t kPrecisionF16 = 20;
inline constexpr std::int32_t kPrecisionInt8 = 30;
inline constexpr std::int32_t kPrecisionInt4 = 40;
inline constexpr int kStatusFailed = -1;
inline constexpr int kStatusSuccess = 0;
enum LogLevel : int { kLogInfo = 2, kLogWarn = 3, kLogError = 4 };

struct Buffer;
struct BufferType;  ///< Opaque; laid out by the generation's header.
struct Device;
struct Backend;
struct Registry;
struct Graph;  ///< Opaque; read through the host's functions.

struct Tensor {
  int type;
  Buffer* buffer;
  std::int64_t ne[4];  ///< Elements, the fastest dimension first.
  std::size_t nb[4];   ///< Bytes from one to the next.
  int op;
  std::int32_t op_params[16];
  std::int32_t flags;
  Tensor* src[10];
  Tensor* view_src;
  std::size_t view_offs;
  void* data;
  char name[64];
  void* extra;
  char padding[8];
};

struct TypeTraits {
  const char* type_name;
  std::int64_t blck_size;
  std::int64_t blck_size_interleave;
  std::size_t type_size;
  bool is_quantized;
  void (*to_float)(const void* row, float* out, std::int64_t count);
  void* from_float_ref;
};

enum BufferUsage : int { kUsageAny = 0, kUsageWeights = 1, kUsageCompute = 2 };
enum DeviceType : int { kDeviceGpu = 1, kDeviceAccel = 3 };

struct BufferInterface {
  void (*free_buffer)(Buffer*);
  void* (*get_base)(Buffer*);
  int (*init_tensor)(Buffer*, Tensor*);
  void (*memset_tensor)(Buffer*, Tensor*, std::uint8_t value, std::size_t offset, std::size_t size);
  void (*set_tensor)(Buffer*, Tensor*, const void* data, std::size_t offset, std::size_t size);
  void (*get_tensor)(Buffer*, const Tensor*, void* data, std::size_t offset, std::size_t size);
  void* set_tensor_2d;
  void* get_tensor_2d;
  bool (*cpy_tensor)(Buffer*, const Tensor* src, Tensor* dst);
  void (*clear)(Buffer*, std::uint8_t value);
  void (*reset)(Buffer*);
};

struct Buffer {
  BufferInterface iface;
  BufferType* buft;
  void* context;
  std::size_t size;
  int usage;  ///< BufferUsage.
};

struct BackendInterface {
  const char* (*get_name)(Backend*);
  void (*free)(Backend*);
  void* set_tensor_async;
  void* get_tensor_async;
  void* set_tensor_2d_async;
  void* get_tensor_2d_async;
  void* cpy_tensor_async;
  void (*synchronize)(Backend*);
  void* graph_plan_create;
  void* graph_plan_free;
  void* graph_plan_update;
  void* graph_plan_compute;
  int (*graph_compute)(Backend*, Graph*);
  void* event_record;
  void* event_wait;
  void* graph_optimize;
};

using Guid = std::uint8_t[16];

struct Backend {
  Guid* guid;
  BackendInterface iface;
  Device* device;
  void* context;
};

struct DeviceCaps {
  bool async;
  bool host_buffer;
  bool buffer_from_host_ptr;
  bool events;
  bool mmap_support;
};

struct DeviceProps {
  const char* name;
  const char* description;
  std::size_t memory_free;
  std::size_t memory_total;
  int type;  ///< DeviceType.
  const char* device_id;
  DeviceCaps caps;
};

struct DeviceInterface {
  const char* (*get_name)(Device*);
  const char* (*get_description)(Device*);
  void (*get_memory)(Device*, std::size_t* free, std::size_t* total);
  int (*get_type)(Device*);
  void (*get_props)(Device*, DeviceProps*);
  Backend* (*init_backend)(Device*, const char* params);
  BufferType* (*get_buffer_type)(Device*);
  void* get_host_buffer_type;
  Buffer* (*buffer_from_host_ptr)(Device*, void* data, std::size_t size, std::size_t max_tensor);
  bool (*supports_op)(Device*, const Tensor*);
  bool (*supports_buft)(Device*, BufferType*);
  void* offload_op;
  void* event_new;
  void* event_free;
  void* event_synchronize;
};

struct Device {
  DeviceInterface iface;
  Registry* reg;
  void* context;
};

struct RegistryInterface {
  const char* (*get_name)(Registry*);
  std::size_t (*get_device_count)(Registry*);
  Device* (*get_device)(Registry*, std::size_t index);
  void* (*get_proc_address)(Registry*, const char* name);
};

struct Registry {
  int api_version;
  RegistryInterface iface;
  void* context;
};

}  // namespace corelane::ggml::abi
