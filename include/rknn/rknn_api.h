/// The basic RKNN C API: a model is opened, fed, run and read; tensors may also live in memory that
/// caller and device share. Compiles as C11 and as C++11 and later; link with -lrknnrt.
///
/// Conventions
/// - Functions that return int give RKNN_SUCC (0) or one of the negative RKNN_ERR_* codes, those
///   that return a pointer NULL. Each failure also writes one line to stderr that says what was
///   given, what is allowed and what to do (`E RKNN: [hh:mm:ss.mmm] ...`, see RKNN_LOG_LEVEL).
/// - A context or memory that does not exist, or no longer, is RKNN_ERR_CTX_INVALID or
///   RKNN_ERR_PARAM_INVALID, never a crash; so is a null pointer where one is not allowed.
/// - Threads: different contexts may be used from different threads at once. Calls on one context
///   are put in order by a lock of that context, which a run holds while it blocks; rknn_query does
///   not take it. rknn_destroy waits for what still runs.
/// - Sizes are bytes, counts are elements, times are microseconds unless a name says otherwise.
/// - Shapes are listed outermost dimension first. Float16 is IEEE 754 binary16.
/// - Structures that this library fills have room that is meant to stay zero (`reserved`).
#ifndef _RKNN_API_H
#define _RKNN_API_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// --- Flags of rknn_init, combined by |. -------------------------------------------------------

/// Work of this context goes before medium and low work that waits on the same cores (the default).
/// A priority orders the device's queue; the nice value of the process is never changed.
#define RKNN_FLAG_PRIOR_HIGH 0x00000000
/// After high work, before low work.
#define RKNN_FLAG_PRIOR_MEDIUM 0x00000001
/// Only when nothing of higher priority waits.
#define RKNN_FLAG_PRIOR_LOW 0x00000002
/// Pipelined reading: rknn_run returns at once, and rknn_outputs_get gives the results of the run
/// before the last one, so that reading overlaps with running. After the first run it gives that
/// run's own.
#define RKNN_FLAG_ASYNC_MASK 0x00000004
/// Times each layer, for RKNN_QUERY_PERF_DETAIL. Costs speed; leave it out of products.
#define RKNN_FLAG_COLLECT_PERF_MASK 0x00000008
/// The caller brings the memory of weights and intermediate results: rknn_set_weight_mem and
/// rknn_set_internal_mem come before the first run, sizes come from RKNN_QUERY_MEM_SIZE. A run
/// before that fails. Inputs and outputs may be bound by rknn_set_io_mem or not.
#define RKNN_FLAG_MEM_ALLOC_OUTSIDE 0x00000010
/// Takes the weights of the context in rknn_init_extend.ctx, which was opened from a model with the
/// same weights. The two may be destroyed in any order.
#define RKNN_FLAG_SHARE_WEIGHT_MEM 0x00000020
/// A run starts when rknn_run_extend.fence_fd is readable. The descriptor stays the caller's.
#define RKNN_FLAG_FENCE_IN_OUTSIDE 0x00000040
/// A run puts a new descriptor into rknn_run_extend.fence_fd, readable when the run is done. The
/// caller closes it.
#define RKNN_FLAG_FENCE_OUT_OUTSIDE 0x00000080
/// Reads only what RKNN_QUERY_MEM_SIZE answers. Every other query and every run fails.
#define RKNN_FLAG_COLLECT_MODEL_INFO_ONLY 0x00000100
/// As RKNN_FLAG_MEM_ALLOC_OUTSIDE, for intermediate results only.
#define RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE 0x00000200
/// Asks that operators which the NPU lacks run on a GPU. Accepted without effect: they run on the
/// CPU. One info line says so.
#define RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU 0x00000400
/// Asks for intermediate results in on-chip memory. Accepted where there is none: the SRAM figures
/// are 0 and one info line says so.
#define RKNN_FLAG_ENABLE_SRAM 0x00000800
/// Lets other contexts use this one's on-chip memory. As RKNN_FLAG_ENABLE_SRAM.
#define RKNN_FLAG_SHARE_SRAM 0x00001000
/// Keeps the priority of the process as it is. It is never raised, so this changes nothing.
#define RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY 0x00002000
/// Says that the caller makes input memory visible to the device by rknn_mem_sync, not rknn_run.
/// Without effect on memory of the CPU.
#define RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE 0x00004000
/// The same for output memory and the CPU.
#define RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE 0x00008000
/// Uses the model's bytes where they lie, without a copy: they must stay unchanged until the
/// context is destroyed. rknn_init_extend says which memory it is. Without this flag the bytes may
/// be freed as soon as rknn_init returns.
#define RKNN_FLAG_MODEL_BUFFER_ZERO_COPY 0x00010000

/// Flag of rknn_create_mem2: the memory belongs to no context, which may then be 0.
#define RKNN_MEM_FLAG_ALLOC_NO_CONTEXT 0x00020000

// --- Return codes. ----------------------------------------------------------------------------

#define RKNN_SUCC 0                       ///< It worked.
#define RKNN_ERR_FAIL (-1)                ///< It failed for a reason that has no code of its own.
#define RKNN_ERR_TIMEOUT (-2)             ///< The time in rknn_run_extend.timeout_ms is over.
#define RKNN_ERR_DEVICE_UNAVAILABLE (-3)  ///< No device, or it does not answer any more.
#define RKNN_ERR_MALLOC_FAIL (-4)         ///< No memory of host or device, or a mapping failed.
#define RKNN_ERR_PARAM_INVALID (-5)       ///< An argument outside what is allowed.
#define RKNN_ERR_MODEL_INVALID (-6)       ///< The bytes are not a model that can be run.
#define RKNN_ERR_CTX_INVALID (-7)         ///< No such context, or it is destroyed.
#define RKNN_ERR_INPUT_INVALID (-8)       ///< An input's index, type, layout or size is wrong.
#define RKNN_ERR_OUTPUT_INVALID (-9)      ///< An output's index, type, layout or size is wrong.
#define RKNN_ERR_DEVICE_UNMATCH (-10)     ///< Library and device driver do not fit together.
#define RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL (-11)  ///< A precompiled model of another release.
/// A model whose level of optimisation this release does not know.
#define RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION (-12)
#define RKNN_ERR_TARGET_PLATFORM_UNMATCH (-13)  ///< A model that was compiled for another chip.

// --- Limits. ----------------------------------------------------------------------------------

#define RKNN_MAX_DIMS 16                ///< Dimensions of a tensor.
#define RKNN_MAX_NUM_CHANNEL 15         ///< Channels that can have a mean and a scale of their own.
#define RKNN_MAX_NAME_LEN 256           ///< Bytes of a name, with the closing 0.
#define RKNN_MAX_DYNAMIC_SHAPE_NUM 512  ///< Shapes that an input of a dynamic model can list.

/// An opened model; never 0.
#ifdef __arm__
typedef uint32_t rknn_context;
#else
typedef uint64_t rknn_context;
#endif

// --- Tensors: layout, element type, quantization. ---------------------------------------------

/// Order of the dimensions in memory.
typedef enum _rknn_tensor_format {
  RKNN_TENSOR_NCHW = 0,     ///< (N, C, H, W), W fastest.
  RKNN_TENSOR_NHWC = 1,     ///< (N, H, W, C), C fastest.
  RKNN_TENSOR_NC1HWC2 = 2,  ///< Channels in blocks of C2: (N, ceil(C / C2), H, W, C2), C2 fastest.
  RKNN_TENSOR_UNDEFINED = 3,  ///< The model's own order; every tensor that has not four dimensions.
  RKNN_TENSOR_FORMAT_MAX = 4,
} rknn_tensor_format;

/// Name of a layout, such as "NHWC"; "UNKNOW" for any other value. Static text.
inline static const char* get_format_string(rknn_tensor_format type) {
  switch (type) {
    case RKNN_TENSOR_NCHW:
      return "NCHW";
    case RKNN_TENSOR_NHWC:
      return "NHWC";
    case RKNN_TENSOR_NC1HWC2:
      return "NC1HWC2";
    case RKNN_TENSOR_UNDEFINED:
      return "UNDEFINED";
    default:
      return "UNKNOW";
  }
}

/// Type of an element.
typedef enum _rknn_tensor_type {
  RKNN_TENSOR_FLOAT32 = 0,
  RKNN_TENSOR_FLOAT16 = 1,
  RKNN_TENSOR_INT8 = 2,
  RKNN_TENSOR_UINT8 = 3,
  RKNN_TENSOR_INT16 = 4,
  RKNN_TENSOR_UINT16 = 5,
  RKNN_TENSOR_INT32 = 6,
  RKNN_TENSOR_UINT32 = 7,
  RKNN_TENSOR_INT64 = 8,
  RKNN_TENSOR_BOOL = 9,       ///< One byte, 0 or 1.
  RKNN_TENSOR_INT4 = 10,      ///< Two a byte, the even element in the low half.
  RKNN_TENSOR_BFLOAT16 = 11,  ///< The upper 16 bits of a float32.
  RKNN_TENSOR_TYPE_MAX = 12,
} rknn_tensor_type;

/// Short name of an element type, such as "FP16"; "UNKNOW" for any other value. Static text.
inline static const char* get_type_string(rknn_tensor_type type) {
  switch (type) {
    case RKNN_TENSOR_FLOAT32:
      return "FP32";
    case RKNN_TENSOR_FLOAT16:
      return "FP16";
    case RKNN_TENSOR_INT8:
      return "INT8";
    case RKNN_TENSOR_UINT8:
      return "UINT8";
    case RKNN_TENSOR_INT16:
      return "INT16";
    case RKNN_TENSOR_UINT16:
      return "UINT16";
    case RKNN_TENSOR_INT32:
      return "INT32";
    case RKNN_TENSOR_UINT32:
      return "UINT32";
    case RKNN_TENSOR_INT64:
      return "INT64";
    case RKNN_TENSOR_BOOL:
      return "BOOL";
    case RKNN_TENSOR_INT4:
      return "INT4";
    case RKNN_TENSOR_BFLOAT16:
      return "BF16";
    default:
      return "UNKNOW";
  }
}

/// How integers stand for real numbers.
typedef enum _rknn_tensor_qnt_type {
  RKNN_TENSOR_QNT_NONE = 0,               ///< The elements are the values.
  RKNN_TENSOR_QNT_DFP = 1,                ///< value = element * 2^-fl
  RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC = 2,  ///< value = (element - zp) * scale
  RKNN_TENSOR_QNT_MAX = 3,
} rknn_tensor_qnt_type;

/// Name of a quantization; "UNKNOW" for any other value. Static text.
inline static const char* get_qnt_type_string(rknn_tensor_qnt_type type) {
  switch (type) {
    case RKNN_TENSOR_QNT_NONE:
      return "NONE";
    case RKNN_TENSOR_QNT_DFP:
      return "DFP";
    case RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC:
      return "AFFINE";
    default:
      return "UNKNOW";
  }
}

// --- Choices. ---------------------------------------------------------------------------------

/// What rknn_query asks; each line names the structure that it fills. "Native" is the layout that
/// the device itself reads and writes: memory in that layout is used without conversion.
typedef enum _rknn_query_cmd {
  RKNN_QUERY_IN_OUT_NUM = 0,  ///< rknn_input_output_num.
  RKNN_QUERY_INPUT_ATTR = 1,  ///< rknn_tensor_attr of input `index`. 4-D: NHWC (bool, int64: NCHW).
  RKNN_QUERY_OUTPUT_ATTR = 2,    ///< rknn_tensor_attr of output `index`. 4-D: NCHW.
  RKNN_QUERY_PERF_DETAIL = 3,    ///< rknn_perf_detail: a table of the last run's layers.
  RKNN_QUERY_PERF_RUN = 4,       ///< rknn_perf_run: time of the last run.
  RKNN_QUERY_SDK_VERSION = 5,    ///< rknn_sdk_version.
  RKNN_QUERY_MEM_SIZE = 6,       ///< rknn_mem_size.
  RKNN_QUERY_CUSTOM_STRING = 7,  ///< rknn_custom_string: text stored in the model, or "".
  /// rknn_tensor_attr of input `index` in native layout: NHWC for 1, 3 or 4 channels, else NC1HWC2.
  RKNN_QUERY_NATIVE_INPUT_ATTR = 8,
  RKNN_QUERY_NATIVE_OUTPUT_ATTR = 9,          ///< The same of output `index`.
  RKNN_QUERY_NATIVE_NC1HWC2_INPUT_ATTR = 8,   ///< Another name of RKNN_QUERY_NATIVE_INPUT_ATTR.
  RKNN_QUERY_NATIVE_NC1HWC2_OUTPUT_ATTR = 9,  ///< Another name of RKNN_QUERY_NATIVE_OUTPUT_ATTR.
  RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR = 10,     ///< rknn_tensor_attr of input `index` as native NHWC.
  RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR = 11,  ///< rknn_tensor_attr of output `index` as native NHWC.
  RKNN_QUERY_DEVICE_MEM_INFO = 12,  ///< rknn_tensor_mem: `size` is what this process holds there.
  RKNN_QUERY_INPUT_DYNAMIC_RANGE = 13,  ///< rknn_input_range of input `index` of a dynamic model.
  // After rknn_set_input_shapes; of a static model the same as 1, 2, 8 and 9.
  RKNN_QUERY_CURRENT_INPUT_ATTR = 14,          ///< rknn_tensor_attr.
  RKNN_QUERY_CURRENT_OUTPUT_ATTR = 15,         ///< rknn_tensor_attr.
  RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR = 16,   ///< rknn_tensor_attr.
  RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR = 17,  ///< rknn_tensor_attr.
  RKNN_QUERY_CMD_MAX = 18,
} rknn_query_cmd;

/// Cores that a context runs on. Several: one inference is split over them.
typedef enum _rknn_core_mask {
  RKNN_NPU_CORE_AUTO = 0,  ///< One core, whichever is idle (the default).
  RKNN_NPU_CORE_0 = 1,
  RKNN_NPU_CORE_1 = 2,
  RKNN_NPU_CORE_2 = 4,  ///< Chips with three cores.
  RKNN_NPU_CORE_0_1 = 3,
  RKNN_NPU_CORE_0_1_2 = 7,    ///< Chips with three cores.
  RKNN_NPU_CORE_ALL = 65535,  ///< As many as the chip has.
  RKNN_NPU_CORE_UNDEFINED = 65536,
} rknn_core_mask;

/// Where the bytes of a rknn_tensor_mem come from (its member `flags`).
typedef enum _rknn_tensor_mem_flags {
  RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE = 1,  ///< The library allocated them and frees them.
  RKNN_TENSOR_MEMORY_FLAGS_FROM_FD = 2,       ///< The caller's, by a descriptor.
  RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS = 3,     ///< The caller's, by a physical address.
  RKNN_TENSOR_MEMORY_FLAGS_UNKNOWN = 4,
} rknn_tensor_mem_flags;

/// Flags of rknn_create_mem2, combined by |.
typedef enum _rknn_mem_alloc_flags {
  RKNN_FLAG_MEMORY_FLAGS_DEFAULT = 0,   ///< Cacheable.
  RKNN_FLAG_MEMORY_CACHEABLE = 1,       ///< Through the CPU's caches: rknn_mem_sync where needed.
  RKNN_FLAG_MEMORY_NON_CACHEABLE = 2,   ///< Past the CPU's caches.
  RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM = 4,  ///< On-chip if there is room, ordinary memory otherwise.
} rknn_mem_alloc_flags;

/// Direction of rknn_mem_sync.
typedef enum _rknn_mem_sync_mode {
  RKNN_MEMORY_SYNC_TO_DEVICE = 1,      ///< The CPU wrote, the device will read.
  RKNN_MEMORY_SYNC_FROM_DEVICE = 2,    ///< The device wrote, the CPU will read.
  RKNN_MEMORY_SYNC_BIDIRECTIONAL = 3,  ///< Both.
} rknn_mem_sync_mode;

// --- Structures. ------------------------------------------------------------------------------

/// Number of inputs and outputs of a model.
typedef struct _rknn_input_output_num {
  uint32_t n_input;
  uint32_t n_output;
} rknn_input_output_num;

/// One input or output. Clients set `index` and rknn_query fills the rest; rknn_set_io_mem and
/// rknn_set_input_shapes take one back with the members changed that they name.
typedef struct _rknn_tensor_attr {
  uint32_t index;                 ///< Of the input or output, from 0. Set before rknn_query.
  uint32_t n_dims;                ///< Members of dims that count.
  uint32_t dims[RKNN_MAX_DIMS];   ///< In the order that fmt says.
  char name[RKNN_MAX_NAME_LEN];   ///< As in the model.
  uint32_t n_elems;               ///< Product of dims.
  uint32_t size;                  ///< Bytes without padding: n_elems times the size of type.
  rknn_tensor_format fmt;         ///< Order of dims.
  rknn_tensor_type type;          ///< Of the elements in the model.
  rknn_tensor_qnt_type qnt_type;  ///< Which of fl, zp and scale count.
  int8_t fl;                      ///< RKNN_TENSOR_QNT_DFP: bits after the point.
  int32_t zp;                     ///< RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC: the element that means 0.
  float scale;                    ///< The same: step between two elements. 1.0 for float models.
  /// Pixels from one row to the next, padding included, of a 4-D input; 0 for everything else.
  uint32_t w_stride;
  uint32_t size_with_stride;  ///< Bytes with padding: what memory for rknn_set_io_mem has to hold.
  /// For rknn_set_io_mem of an input: not 0 when the bytes are already normalised and quantized.
  uint8_t pass_through;
  uint32_t h_stride;  ///< 0 from queries; not looked at: pictures of a batch have no rows between.
} rknn_tensor_attr;

/// The shapes that an input of a dynamic model may take. The k-th shapes of all inputs belong
/// together.
typedef struct _rknn_input_range {
  uint32_t index;                ///< Of the input. Set before rknn_query.
  uint32_t shape_number;         ///< Rows of dyn_range that count.
  rknn_tensor_format fmt;        ///< Order of the dimensions in dyn_range.
  char name[RKNN_MAX_NAME_LEN];  ///< Of the input.
  uint32_t dyn_range[RKNN_MAX_DYNAMIC_SHAPE_NUM][RKNN_MAX_DIMS];  ///< One shape a row.
  uint32_t n_dims;                                                ///< Columns that count.
} rknn_input_range;

/// The table of the last run, one line a layer; without RKNN_FLAG_COLLECT_PERF_MASK the nodes of
/// the network, with times of 0.
typedef struct _rknn_perf_detail {
  char* perf_data;    ///< Closed by 0. The context's; the last 8 of these queries stay valid.
  uint64_t data_len;  ///< Bytes without the closing 0.
} rknn_perf_detail;

/// Time of the last run, without conversion of inputs and outputs.
typedef struct _rknn_perf_run {
  int64_t run_duration;  ///< Microseconds.
} rknn_perf_run;

/// Versions as text, each closed by 0: number, then details in parentheses.
typedef struct _rknn_sdk_version {
  char api_version[256];  ///< Of this library.
  char drv_version[256];  ///< Of the device's driver.
} rknn_sdk_version;

/// Memory that a context needs; of a dynamic model, with its largest shapes.
typedef struct _rknn_mem_size {
  uint32_t total_weight_size;         ///< Bytes for rknn_set_weight_mem.
  uint32_t total_internal_size;       ///< Bytes for rknn_set_internal_mem; more than 0.
  uint64_t total_dma_allocated_size;  ///< Bytes that the context holds on the device now.
  uint32_t total_sram_size;           ///< On-chip memory, bytes; 0 where there is none.
  uint32_t free_sram_size;            ///< What of it is free.
  uint32_t reserved[10];
} rknn_mem_size;

/// Text that was stored with the model, closed by 0; "" when there is none.
typedef struct _rknn_custom_string {
  char string[1024];
} rknn_custom_string;

/// Memory that caller and device share. Made by rknn_create_mem* and freed by rknn_destroy_mem,
/// which also frees the structure. The tensor begins `offset` bytes after `virt_addr`.
typedef struct _rknn_tensor_memory {
  void* virt_addr;     ///< Start of the block in this process.
  uint64_t phys_addr;  ///< On the device's bus; for printing only.
  int32_t fd;          ///< Names the block, for other contexts, processes and devices; -1: none.
  int32_t offset;      ///< Bytes from virt_addr to the tensor.
  uint32_t size;       ///< Bytes of the tensor.
  uint32_t flags;      ///< rknn_tensor_mem_flags.
  void* priv_data;     ///< The library's; leave it alone.
} rknn_tensor_mem;

/// One input for rknn_inputs_set. A zeroed structure means float32: set `type`.
typedef struct _rknn_input {
  uint32_t index;          ///< Of the input, from 0.
  void* buf;               ///< The elements. Read during the call, then free for reuse.
  uint32_t size;           ///< Bytes at buf: at least the input's n_elems times the size of `type`.
  uint8_t pass_through;    ///< Not 0: the bytes are native already; type and fmt are not looked at.
  rknn_tensor_type type;   ///< Of the elements at buf.
  rknn_tensor_format fmt;  ///< Order of the elements at buf: NHWC or NCHW; UNDEFINED: the model's.
} rknn_input;

/// One output for rknn_outputs_get.
typedef struct _rknn_output {
  uint8_t want_float;   ///< Not 0: float32, dequantized. 0: the type of RKNN_QUERY_OUTPUT_ATTR.
  uint8_t is_prealloc;  ///< Not 0: buf and size are the caller's. 0: the library allocates.
  uint32_t index;       ///< Of the output, from 0.
  void* buf;            ///< The elements; the library's are valid until rknn_outputs_release.
  uint32_t size;        ///< Bytes at buf; on return the bytes that the output has.
} rknn_output;

/// Further choices of rknn_init. Zero it before use.
typedef struct _rknn_init_extend {
  rknn_context ctx;             ///< RKNN_FLAG_SHARE_WEIGHT_MEM: the context to take weights from.
  int32_t real_model_offset;    ///< Where the model begins in the file or buffer, bytes.
  uint32_t real_model_size;     ///< Bytes of the model there; 0: up to the end.
  int32_t model_buffer_fd;      ///< RKNN_FLAG_MODEL_BUFFER_ZERO_COPY: descriptor of the buffer.
  uint32_t model_buffer_flags;  ///< The same: its rknn_tensor_mem_flags.
  uint8_t reserved[112];
} rknn_init_extend;

/// Further choices of rknn_run and rknn_wait. NULL there is the same as a zeroed structure.
typedef struct _rknn_run_extend {
  uint64_t frame_id;   ///< rknn_run: set to the number of this run. rknn_wait: the run to wait for.
  int32_t non_block;   ///< Not 0: rknn_run returns at once; rknn_wait or rknn_outputs_get waits.
  int32_t timeout_ms;  ///< Longest wait, milliseconds; 0 or less: no limit.
  int32_t fence_fd;    ///< See RKNN_FLAG_FENCE_IN_OUTSIDE and RKNN_FLAG_FENCE_OUT_OUTSIDE.
} rknn_run_extend;

/// What rknn_outputs_get reports besides the outputs. May be NULL there.
typedef struct _rknn_output_extend {
  uint64_t frame_id;  ///< Set to the number of the run that the outputs are of.
} rknn_output_extend;

// --- Contexts. --------------------------------------------------------------------------------

/// Opens a model: one made by `corelane compile`, or an ONNX file.
/// `context`: set to the new context; 0 on failure. `model`: with size > 0 the model's bytes, with
/// size 0 the path of its file, which is not to be written to while a context has it open: replace
/// it by renaming the new one to its name. `flag`: RKNN_FLAG_*. `extend`: may be NULL. Unknown
/// flags are ignored with a warning. Errors: PARAM_INVALID (null pointers, a slice outside the
/// file), FAIL (no such file), MODEL_INVALID (damaged, cut or unknown), TARGET_PLATFORM_UNMATCH
/// (compiled by the vendor's tools, for its own chip: the log line says how to make a program from
/// ONNX), DEVICE_UNAVAILABLE, MALLOC_FAIL, CTX_INVALID (the context in `extend`).
int rknn_init(rknn_context* context, void* model, uint32_t size, uint32_t flag,
              rknn_init_extend* extend);

/// A second context of the same model that shares its weights and has inputs, outputs and internal
/// memory of its own. The two are destroyed in any order.
/// `context_out`: 0 on failure. Errors: PARAM_INVALID, CTX_INVALID, MALLOC_FAIL, FAIL,
/// MODEL_INVALID (the file was written to while it is open).
int rknn_dup_context(rknn_context* context_in, rknn_context* context_out);

/// Closes a context and waits for its runs. Memory of rknn_create_mem* stays until
/// rknn_destroy_mem. Errors: CTX_INVALID, also for a context destroyed already.
int rknn_destroy(rknn_context context);

/// Asks one of rknn_query_cmd. `info`: the structure named there, with `index` set where it has
/// one. `size`: its bytes. The shorter rknn_tensor_attr (372 bytes) and rknn_mem_size (8 bytes) of
/// old clients are filled as far as they reach. Errors: PARAM_INVALID (null pointer, unknown
/// command, index out of range, any other short size), CTX_INVALID, FAIL (not known for this model
/// or in this state).
int rknn_query(rknn_context context, rknn_query_cmd cmd, void* info, uint32_t size);

/// Hands over inputs, in any order; inputs that are not named keep what they had, at first zeros.
/// Converts from `type` and `fmt`: integers and floats are normalised and quantized as the model
/// says. Errors: PARAM_INVALID (null pointer; too few bytes: compare `type`; a type or layout that
/// cannot be converted), INPUT_INVALID (index), CTX_INVALID.
int rknn_inputs_set(rknn_context context, uint32_t n_inputs, rknn_input* inputs);

/// Spreads a model with a batch over `core_num` cores, from 1 to what the chip has.
/// Errors: PARAM_INVALID (also a model without a batch), CTX_INVALID.
int rknn_set_batch_core_num(rknn_context context, int core_num);

/// Chooses the cores of the runs to come: RKNN_NPU_CORE_AUTO, RKNN_NPU_CORE_ALL, or any bits of the
/// chip's cores. Errors: FAIL (other bits), TARGET_PLATFORM_UNMATCH (any mask, on a chip with one
/// core), CTX_INVALID.
int rknn_set_core_mask(rknn_context context, rknn_core_mask core_mask);

/// Runs the model once on the inputs that are set. Blocks until it is done, unless
/// extend->non_block. Errors: CTX_INVALID, FAIL (memory is missing, a custom operator is not
/// registered or failed), TIMEOUT (the run is abandoned and writes nothing any more),
/// DEVICE_UNAVAILABLE.
int rknn_run(rknn_context context, rknn_run_extend* extend);

/// Waits for run `extend->frame_id`, or for the last one when it is 0 or `extend` is NULL; any
/// number of times, also for runs that are over. Returns what that run returned; further
/// PARAM_INVALID (no such run; a run so old that 16 later ones failed since), FAIL (nothing has run
/// yet), CTX_INVALID, and TIMEOUT, after which the run goes on.
int rknn_wait(rknn_context context, rknn_run_extend* extend);

/// Reads outputs of the last run, in any order and number; waits for it first.
/// Errors: PARAM_INVALID (null pointer, `size` of a caller's buffer too small), OUTPUT_INVALID
/// (index), CTX_INVALID, FAIL (nothing has run yet); and what the run itself returns.
int rknn_outputs_get(rknn_context context, uint32_t n_outputs, rknn_output* outputs,
                     rknn_output_extend* extend);

/// Frees what rknn_outputs_get allocated; leaves buffers of the caller alone.
/// Errors: PARAM_INVALID (null pointer; more outputs than the model has, then nothing is freed; a
/// `buf` that this context did not give, then the others are freed), CTX_INVALID.
int rknn_outputs_release(rknn_context context, uint32_t n_ouputs, rknn_output* outputs);

// --- Memory shared with the device. ------------------------------------------------------------
// `ctx` may also be a rknn_matmul_ctx. NULL is returned where the memory cannot be had.

/// Wraps the caller's memory at a physical address. Where the device has none it is used at
/// `virt_addr`, with a warning; NULL without one.
rknn_tensor_mem* rknn_create_mem_from_phys(rknn_context ctx, uint64_t phys_addr, void* virt_addr,
                                           uint32_t size);

/// Wraps `size` bytes from `offset` of the block that `fd` stands for. `virt_addr`: where the whole
/// block is mapped here; NULL: the library maps it. Descriptor and mapping stay the caller's.
rknn_tensor_mem* rknn_create_mem_from_fd(rknn_context ctx, int32_t fd, void* virt_addr,
                                         uint32_t size, int32_t offset);

/// Wraps a block of the media framework. There is none here: NULL, and a line that names
/// rknn_create_mem_from_fd.
rknn_tensor_mem* rknn_create_mem_from_mb_blk(rknn_context ctx, void* mb_blk, int32_t offset);

/// Allocates `size` bytes, zeroed, cacheable, with a descriptor of their own.
rknn_tensor_mem* rknn_create_mem(rknn_context ctx, uint32_t size);

/// The same with flags: rknn_mem_alloc_flags and RKNN_MEM_FLAG_ALLOC_NO_CONTEXT.
rknn_tensor_mem* rknn_create_mem2(rknn_context ctx, uint64_t size, uint64_t alloc_flags);

/// Frees `mem` and, when the library allocated them, its bytes and descriptor. What is still bound
/// to a context lives on inside until something else is bound. Errors: PARAM_INVALID (not, or no
/// longer, a memory of this library), CTX_INVALID.
int rknn_destroy_mem(rknn_context ctx, rknn_tensor_mem* mem);

/// Brings the weights' memory and loads the weights (RKNN_FLAG_MEM_ALLOC_OUTSIDE).
/// Errors: PARAM_INVALID (too small), FAIL (the flag was not given), CTX_INVALID.
int rknn_set_weight_mem(rknn_context ctx, rknn_tensor_mem* mem);

/// Brings the memory of intermediate results (RKNN_FLAG_MEM_ALLOC_OUTSIDE or
/// RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE). Errors: as rknn_set_weight_mem.
int rknn_set_internal_mem(rknn_context ctx, rknn_tensor_mem* mem);

/// Binds memory to an input or output, until the next call for it; allowed between runs. `attr`:
/// from a query, so that `name` says which tensor; `type` and `fmt` may be changed to what the
/// memory holds. A native query's attr means no conversion, but for a 4-D input in NHWC whose type
/// is UINT8 or FLOAT32: those are pixels, unless `pass_through` is set. The bytes needed are
/// counted from the tensor's shape, `type` and `w_stride`, not taken from `size`; of NC1HWC2, C2 is
/// dims[4]. Memory that later shapes make too small is let go, and rknn_run fails until other
/// memory is bound. Errors: PARAM_INVALID (null pointer, memory too small, no such tensor, a type
/// or layout that cannot be converted), CTX_INVALID.
int rknn_set_io_mem(rknn_context ctx, rknn_tensor_mem* mem, rknn_tensor_attr* attr);

/// Chooses the shape of the only input of a dynamic model. Errors: as rknn_set_input_shapes, and
/// FAIL for a model with several inputs.
int rknn_set_input_shape(rknn_context ctx, rknn_tensor_attr* attr);

/// Chooses the shapes of all inputs of a dynamic model, before the first run and at each change.
/// `attr`: `n_inputs` of them with index, name, dims, n_dims and fmt set; together they are one of
/// the combinations that RKNN_QUERY_INPUT_DYNAMIC_RANGE lists.
/// Errors: PARAM_INVALID (null pointer, not every input), INPUT_INVALID (an attr names no input),
/// FAIL (not listed; the log line has the list), MALLOC_FAIL, CTX_INVALID. After a failure the
/// shapes stay as they were.
int rknn_set_input_shapes(rknn_context ctx, uint32_t n_inputs, rknn_tensor_attr* attr);

/// Makes writes of one side visible to the other; to the device it also says that B of a matrix
/// product is new. Costs nothing on memory of the CPU. Errors: PARAM_INVALID (memory or mode),
/// CTX_INVALID.
int rknn_mem_sync(rknn_context context, rknn_tensor_mem* mem, rknn_mem_sync_mode mode);

#ifdef __cplusplus
}
#endif

#endif
