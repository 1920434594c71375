// The plugin's declarations against those of a host's sources: sizes, offsets and numbers.
// Compiled, not run, by ggml_host_test.py with the folders of the pinned host.
#include <cstddef>

#include "adapters/ggml/plugin/ggml_abi2.h"
#include "ggml-backend-impl.h"
#include "ggml.h"

namespace abi = corelane::ggml::abi;
namespace abi2 = corelane::ggml::abi2;

#define SAME_SIZE_IN(space, ours, theirs) \
  static_assert(sizeof(space::ours) == sizeof(theirs), #ours)
#define SAME_PLACE_IN(space, ours, theirs, member)                           \
  static_assert(offsetof(space::ours, member) == offsetof(theirs, member) && \
                    sizeof(space::ours::member) == sizeof(theirs::member),   \
                #ours "::" #member)
#define SAME_SIZE(ours, theirs) SAME_SIZE_IN(abi, ours, theirs)
#define SAME_PLACE(ours, theirs, member) SAME_PLACE_IN(abi, ours, theirs, member)
#define SAME_NUMBER(ours, theirs) \
  static_assert(static_cast<int>(abi::ours) == static_cast<int>(theirs), #ours)

static_assert(abi2::kApiVersion == GGML_BACKEND_API_VERSION);
SAME_NUMBER(kTypeF32, GGML_TYPE_F32);
SAME_NUMBER(kTypeF16, GGML_TYPE_F16);
SAME_NUMBER(kTypeBF16, GGML_TYPE_BF16);
SAME_NUMBER(kFlagCompute, GGML_TENSOR_FLAG_COMPUTE);
SAME_NUMBER(kPrecisionF32, GGML_PREC_F32);
SAME_NUMBER(kPrecisionF16, GGML_PREC_F16);
SAME_NUMBER(kPrecisionInt8, GGML_PREC_Q8);
SAME_NUMBER(kPrecisionInt4, GGML_PREC_Q4);
SAME_NUMBER(kHintHadamard, GGML_HINT_SRC0_IS_HADAMARD);
SAME_NUMBER(kStatusFailed, GGML_STATUS_FAILED);
SAME_NUMBER(kStatusSuccess, GGML_STATUS_SUCCESS);
SAME_NUMBER(kLogInfo, GGML_LOG_LEVEL_INFO);
SAME_NUMBER(kLogWarn, GGML_LOG_LEVEL_WARN);
SAME_NUMBER(kLogError, GGML_LOG_LEVEL_ERROR);
SAME_NUMBER(kUsageAny, GGML_BACKEND_BUFFER_USAGE_ANY);
SAME_NUMBER(kUsageWeights, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
SAME_NUMBER(kUsageCompute, GGML_BACKEND_BUFFER_USAGE_COMPUTE);
SAME_NUMBER(kDeviceGpu, GGML_BACKEND_DEVICE_TYPE_GPU);
SAME_NUMBER(kDeviceAccel, GGML_BACKEND_DEVICE_TYPE_ACCEL);

SAME_SIZE(Tensor, ggml_tensor);
SAME_PLACE(Tensor, ggml_tensor, type);
SAME_PLACE(Tensor, ggml_tensor, buffer);
SAME_PLACE(Tensor, ggml_tensor, ne);
SAME_PLACE(Tensor, ggml_tensor, nb);
SAME_PLACE(Tensor, ggml_tensor, op);
SAME_PLACE(Tensor, ggml_tensor, op_params);
SAME_PLACE(Tensor, ggml_tensor, flags);
SAME_PLACE(Tensor, ggml_tensor, src);
SAME_PLACE(Tensor, ggml_tensor, view_src);
SAME_PLACE(Tensor, ggml_tensor, view_offs);
SAME_PLACE(Tensor, ggml_tensor, data);
SAME_PLACE(Tensor, ggml_tensor, name);
SAME_PLACE(Tensor, ggml_tensor, extra);

SAME_SIZE(TypeTraits, ggml_type_traits);
SAME_PLACE(TypeTraits, ggml_type_traits, blck_size);
SAME_PLACE(TypeTraits, ggml_type_traits, type_size);
SAME_PLACE(TypeTraits, ggml_type_traits, is_quantized);
SAME_PLACE(TypeTraits, ggml_type_traits, to_float);

SAME_SIZE_IN(abi2, BufferTypeInterface, ggml_backend_buffer_type_i);
SAME_PLACE_IN(abi2, BufferTypeInterface, ggml_backend_buffer_type_i, get_name);
SAME_PLACE_IN(abi2, BufferTypeInterface, ggml_backend_buffer_type_i, alloc_buffer);
SAME_PLACE_IN(abi2, BufferTypeInterface, ggml_backend_buffer_type_i, get_alignment);
SAME_PLACE_IN(abi2, BufferTypeInterface, ggml_backend_buffer_type_i, get_max_size);
SAME_PLACE_IN(abi2, BufferTypeInterface, ggml_backend_buffer_type_i, get_alloc_size);
SAME_PLACE_IN(abi2, BufferTypeInterface, ggml_backend_buffer_type_i, is_host);
SAME_SIZE_IN(abi2, BufferType, ggml_backend_buffer_type);
SAME_PLACE_IN(abi2, BufferType, ggml_backend_buffer_type, device);
SAME_PLACE_IN(abi2, BufferType, ggml_backend_buffer_type, context);

SAME_SIZE(BufferInterface, ggml_backend_buffer_i);
SAME_PLACE(BufferInterface, ggml_backend_buffer_i, free_buffer);
SAME_PLACE(BufferInterface, ggml_backend_buffer_i, get_base);
SAME_PLACE(BufferInterface, ggml_backend_buffer_i, init_tensor);
SAME_PLACE(BufferInterface, ggml_backend_buffer_i, memset_tensor);
SAME_PLACE(BufferInterface, ggml_backend_buffer_i, set_tensor);
SAME_PLACE(BufferInterface, ggml_backend_buffer_i, get_tensor);
SAME_PLACE(BufferInterface, ggml_backend_buffer_i, set_tensor_2d);
SAME_PLACE(BufferInterface, ggml_backend_buffer_i, get_tensor_2d);
SAME_PLACE(BufferInterface, ggml_backend_buffer_i, cpy_tensor);
SAME_PLACE(BufferInterface, ggml_backend_buffer_i, clear);
SAME_PLACE(BufferInterface, ggml_backend_buffer_i, reset);
SAME_SIZE(Buffer, ggml_backend_buffer);
SAME_PLACE(Buffer, ggml_backend_buffer, buft);
SAME_PLACE(Buffer, ggml_backend_buffer, context);
SAME_PLACE(Buffer, ggml_backend_buffer, size);
SAME_PLACE(Buffer, ggml_backend_buffer, usage);

SAME_SIZE(BackendInterface, ggml_backend_i);
SAME_PLACE(BackendInterface, ggml_backend_i, get_name);
SAME_PLACE(BackendInterface, ggml_backend_i, free);
SAME_PLACE(BackendInterface, ggml_backend_i, synchronize);
SAME_PLACE(BackendInterface, ggml_backend_i, graph_compute);
SAME_PLACE(BackendInterface, ggml_backend_i, event_record);
SAME_PLACE(BackendInterface, ggml_backend_i, event_wait);
SAME_PLACE(BackendInterface, ggml_backend_i, graph_optimize);
SAME_SIZE(Guid, ggml_guid);
SAME_SIZE(Backend, ggml_backend);
SAME_PLACE(Backend, ggml_backend, guid);
SAME_PLACE(Backend, ggml_backend, iface);
SAME_PLACE(Backend, ggml_backend, device);
SAME_PLACE(Backend, ggml_backend, context);

SAME_SIZE(DeviceCaps, ggml_backend_dev_caps);
SAME_PLACE(DeviceCaps, ggml_backend_dev_caps, async);
SAME_PLACE(DeviceCaps, ggml_backend_dev_caps, host_buffer);
SAME_PLACE(DeviceCaps, ggml_backend_dev_caps, buffer_from_host_ptr);
SAME_PLACE(DeviceCaps, ggml_backend_dev_caps, events);
SAME_PLACE(DeviceCaps, ggml_backend_dev_caps, mmap_support);
SAME_SIZE(DeviceProps, ggml_backend_dev_props);
SAME_PLACE(DeviceProps, ggml_backend_dev_props, name);
SAME_PLACE(DeviceProps, ggml_backend_dev_props, description);
SAME_PLACE(DeviceProps, ggml_backend_dev_props, memory_free);
SAME_PLACE(DeviceProps, ggml_backend_dev_props, memory_total);
SAME_PLACE(DeviceProps, ggml_backend_dev_props, type);
SAME_PLACE(DeviceProps, ggml_backend_dev_props, device_id);
SAME_PLACE(DeviceProps, ggml_backend_dev_props, caps);

SAME_SIZE(DeviceInterface, ggml_backend_device_i);
SAME_PLACE(DeviceInterface, ggml_backend_device_i, get_name);
SAME_PLACE(DeviceInterface, ggml_backend_device_i, get_description);
SAME_PLACE(DeviceInterface, ggml_backend_device_i, get_memory);
SAME_PLACE(DeviceInterface, ggml_backend_device_i, get_type);
SAME_PLACE(DeviceInterface, ggml_backend_device_i, get_props);
SAME_PLACE(DeviceInterface, ggml_backend_device_i, init_backend);
SAME_PLACE(DeviceInterface, ggml_backend_device_i, get_buffer_type);
SAME_PLACE(DeviceInterface, ggml_backend_device_i, get_host_buffer_type);
SAME_PLACE(DeviceInterface, ggml_backend_device_i, buffer_from_host_ptr);
SAME_PLACE(DeviceInterface, ggml_backend_device_i, supports_op);
SAME_PLACE(DeviceInterface, ggml_backend_device_i, supports_buft);
SAME_PLACE(DeviceInterface, ggml_backend_device_i, offload_op);
SAME_SIZE(Device, ggml_backend_device);
SAME_PLACE(Device, ggml_backend_device, reg);
SAME_PLACE(Device, ggml_backend_device, context);

SAME_SIZE(RegistryInterface, ggml_backend_reg_i);
SAME_PLACE(RegistryInterface, ggml_backend_reg_i, get_name);
SAME_PLACE(RegistryInterface, ggml_backend_reg_i, get_device_count);
SAME_PLACE(RegistryInterface, ggml_backend_reg_i, get_device);
SAME_PLACE(RegistryInterface, ggml_backend_reg_i, get_proc_address);
SAME_SIZE(Registry, ggml_backend_reg);
SAME_PLACE(Registry, ggml_backend_reg, api_version);
SAME_PLACE(Registry, ggml_backend_reg, iface);
SAME_PLACE(Registry, ggml_backend_reg, context);
