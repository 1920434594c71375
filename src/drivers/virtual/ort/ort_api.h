/// ONNX Runtime's C interface, as far as it is used. Its wheel has the library without headers, so
/// types, values and positions are declared here (ort_entries.inc has the functions).
///
/// Format: onnxruntime_c_api.h of ONNX Runtime (MIT). A test holds this file against that header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace corelane::drivers::virtual_npu::ort {

struct OrtStatus;
struct OrtEnv;
struct OrtSession;
struct OrtSessionOptions;
struct OrtRunOptions;
struct OrtValue;
struct OrtMemoryInfo;
struct OrtAllocator;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtPrepackedWeightsContainer;
struct OrtThreadingOptions;
struct OrtCustomOpDomain;
struct OrtKernelInfo;
struct OrtKernelContext;
struct OrtApi;

// NOLINTBEGIN(readability-identifier-naming): names and values of the interface.
enum OrtErrorCode : int {
  ORT_OK = 0,
  ORT_FAIL = 1,
  ORT_INVALID_ARGUMENT = 2,
  ORT_NO_SUCHFILE = 3,
  ORT_NO_MODEL = 4,
  ORT_ENGINE_ERROR = 5,
  ORT_RUNTIME_EXCEPTION = 6,
  ORT_INVALID_PROTOBUF = 7,
  ORT_MODEL_LOADED = 8,
  ORT_NOT_IMPLEMENTED = 9,
  ORT_INVALID_GRAPH = 10,
  ORT_EP_FAIL = 11,
};
enum OrtLoggingLevel : int {
  ORT_LOGGING_LEVEL_VERBOSE = 0,
  ORT_LOGGING_LEVEL_INFO = 1,
  ORT_LOGGING_LEVEL_WARNING = 2,
  ORT_LOGGING_LEVEL_ERROR = 3,
  ORT_LOGGING_LEVEL_FATAL = 4,
};
enum GraphOptimizationLevel : int {
  ORT_DISABLE_ALL = 0,
  ORT_ENABLE_ALL = 99,
};
enum ExecutionMode : int {
  ORT_SEQUENTIAL = 0,
  ORT_PARALLEL = 1,
};
enum OrtAllocatorType : int { OrtDeviceAllocator = 0, OrtArenaAllocator = 1 };
enum OrtMemType : int { OrtMemTypeDefault = 0 };
enum OrtCustomOpInputOutputCharacteristic : int {
  INPUT_OUTPUT_REQUIRED = 0,
  INPUT_OUTPUT_OPTIONAL = 1,
};
enum ONNXType : int {
  ONNX_TYPE_UNKNOWN = 0,
  ONNX_TYPE_TENSOR = 1,
  ONNX_TYPE_SEQUENCE = 2,
  ONNX_TYPE_MAP = 3,
};
/// Up to 23 the numbers are those of ONNX's TensorProto::DataType. These are not; headers before
/// 1.24 lack them.
enum ONNXTensorElementDataType : int {
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED = 0,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2 = 24,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2 = 25,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0 = 26,
};

/// An operator of the caller's own, as version 16 of the interface has it; later versions add
/// functions after these, which the library then does not ask for. Each is called with the object.
struct OrtCustomOp {
  std::uint32_t version;
  void* (*CreateKernel)(const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*);
  const char* (*GetName)(const OrtCustomOp*);
  const char* (*GetExecutionProviderType)(const OrtCustomOp*);  ///< Null: the CPU's.
  ONNXTensorElementDataType (*GetInputType)(const OrtCustomOp*, std::size_t);
  std::size_t (*GetInputTypeCount)(const OrtCustomOp*);
  ONNXTensorElementDataType (*GetOutputType)(const OrtCustomOp*, std::size_t);
  std::size_t (*GetOutputTypeCount)(const OrtCustomOp*);
  void (*KernelCompute)(void*, OrtKernelContext*);
  void (*KernelDestroy)(void*);
  OrtCustomOpInputOutputCharacteristic (*GetInputCharacteristic)(const OrtCustomOp*, std::size_t);
  OrtCustomOpInputOutputCharacteristic (*GetOutputCharacteristic)(const OrtCustomOp*, std::size_t);
  OrtMemType (*GetInputMemoryType)(const OrtCustomOp*, std::size_t);
  int (*GetVariadicInputMinArity)(const OrtCustomOp*);
  int (*GetVariadicInputHomogeneity)(const OrtCustomOp*);
  int (*GetVariadicOutputMinArity)(const OrtCustomOp*);
  int (*GetVariadicOutputHomogeneity)(const OrtCustomOp*);
  OrtStatus* (*CreateKernelV2)(const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*, void**);
  OrtStatus* (*KernelComputeV2)(void*, OrtKernelContext*);
};
/// For OrtCustomOp::version.
inline constexpr std::uint32_t kCustomOpVersion = 16;
// NOLINTEND(readability-identifier-naming)

using OrtLoggingFunction = void (*)(void* param, OrtLoggingLevel severity, const char* category,
                                    const char* logid, const char* code_location,
                                    const char* message);

/// The version of the interface that is asked for: the first that has every function of the list. A
/// newer library serves older versions.
inline constexpr std::uint32_t kApiVersion = 18;

/// The table: one pointer for each function, by position.
struct OrtApi {
  using Function = void (*)() noexcept;
  Function functions[1];
};

/// What the library exports as OrtGetApiBase().
struct OrtApiBase {
  const OrtApi* (*GetApi)(std::uint32_t version) noexcept;
  const char* (*GetVersionString)() noexcept;
};

/// A function of the table. Parameters are those of the interface.
template <std::size_t Position, class Result, class... Parameters>
struct Entry {
  using Function = Result (*)(Parameters...) noexcept;
  static constexpr std::size_t kPosition = Position;
  static Function of(const OrtApi& api) noexcept {
    return reinterpret_cast<Function>((&api.functions[0])[Position]);
  }
};

namespace entry {
#define CORELANE_ORT_ENTRY(position, name, ...) using name = Entry<position, __VA_ARGS__>;
#include "drivers/virtual/ort/ort_entries.inc"
#undef CORELANE_ORT_ENTRY
}  // namespace entry

}  // namespace corelane::drivers::virtual_npu::ort
