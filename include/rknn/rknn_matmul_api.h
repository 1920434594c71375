/// Matrix products on the NPU without a model: C(M, N) = A(M, K) x B(K, N). Conventions, threads,
/// return codes and memory are those of rknn_api.h.
///
/// Order of calls: rknn_matmul_create; memory of A, B and C by rknn_create_mem with this or any
/// other matmul context of the same iommu_domain_id; rknn_matmul_set_io_mem for each;
/// rknn_matmul_run, as often as wanted. Memory may be set again between runs. With several shapes:
/// rknn_matmul_create_dynamic_shape, then rknn_matmul_set_dynamic_shape before anything else. The
/// packed copy that is kept of B follows its memory: after B has been written again call
/// rknn_mem_sync to the device, or rknn_matmul_set_io_mem.
///
/// Layouts, with s, n, k the blocks of chip and type (see dims of the native attributes):
///   normal  A (M, K)                B (K, N)                   C (M, N)
///   TP_NORM                         B (N, K)
///   native  A (K / s, M, s)         B (N / n, K / k, n, k)     C (N / s, M, s)
/// The last dimension is fastest. Native B of a K above 8192 (RK3588) or 4096 (RK3576) is split
/// along K into segments of that length, each native by itself. Padding is zero. Int4 is two a
/// byte, the even element in the low half.
#ifndef _RKNN_MATMUL_API_H
#define _RKNN_MATMUL_API_H

#include "rknn_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A matrix product. The memory functions of rknn_api.h take it for a rknn_context.
typedef rknn_context rknn_matmul_ctx;

/// Element types: A _MM_ B _TO_ C. Vendor's chips have some of them each, the virtual ones all.
/// Sums of integers are exact in 32 bits; INT16 of type 10 saturates at the end; INT8 of type 3 is
/// requantized: C = (A - zp of A) * B * scale of A * scale of B / scale of C + zp of C, rounded and
/// clamped.
typedef enum _rknn_matmul_type {
  RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32 = 1,
  RKNN_INT8_MM_INT8_TO_INT32 = 2,
  RKNN_INT8_MM_INT8_TO_INT8 = 3,
  RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16 = 4,
  RKNN_FLOAT16_MM_INT8_TO_FLOAT32 = 5,
  RKNN_FLOAT16_MM_INT8_TO_FLOAT16 = 6,
  RKNN_FLOAT16_MM_INT4_TO_FLOAT32 = 7,
  RKNN_FLOAT16_MM_INT4_TO_FLOAT16 = 8,
  RKNN_INT8_MM_INT8_TO_FLOAT32 = 9,
  RKNN_INT4_MM_INT4_TO_INT16 = 10,
  RKNN_INT8_MM_INT4_TO_INT32 = 11,
  RKNN_FLOAT16_MM_INT4_TO_BFLOAT16 = 12,
  RKNN_INT8_MM_INT4_TO_FLOAT16 = 15,
} rknn_matmul_type;

/// The enumerator as text; "UNKNOW" for type 15 and for values that are not a type. Static text.
inline static const char* get_matmul_type_string(rknn_matmul_type type) {
  switch (type) {
    case RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32:
      return "RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32";
    case RKNN_INT8_MM_INT8_TO_INT32:
      return "RKNN_INT8_MM_INT8_TO_INT32";
    case RKNN_INT8_MM_INT8_TO_INT8:
      return "RKNN_INT8_MM_INT8_TO_INT8";
    case RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16:
      return "RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16";
    case RKNN_FLOAT16_MM_INT8_TO_FLOAT32:
      return "RKNN_FLOAT16_MM_INT8_TO_FLOAT32";
    case RKNN_FLOAT16_MM_INT8_TO_FLOAT16:
      return "RKNN_FLOAT16_MM_INT8_TO_FLOAT16";
    case RKNN_FLOAT16_MM_INT4_TO_FLOAT32:
      return "RKNN_FLOAT16_MM_INT4_TO_FLOAT32";
    case RKNN_FLOAT16_MM_INT4_TO_FLOAT16:
      return "RKNN_FLOAT16_MM_INT4_TO_FLOAT16";
    case RKNN_INT8_MM_INT8_TO_FLOAT32:
      return "RKNN_INT8_MM_INT8_TO_FLOAT32";
    case RKNN_INT4_MM_INT4_TO_INT16:
      return "RKNN_INT4_MM_INT4_TO_INT16";
    case RKNN_INT8_MM_INT4_TO_INT32:
      return "RKNN_INT8_MM_INT4_TO_INT32";
    case RKNN_FLOAT16_MM_INT4_TO_BFLOAT16:
      return "RKNN_FLOAT16_MM_INT4_TO_BFLOAT16";
    default:
      return "UNKNOW";
  }
}

/// How the scales of a matrix are spread over it. SYM: zero points are 0.
typedef enum _rknn_matmul_quant_type {
  RKNN_QUANT_TYPE_PER_LAYER_SYM = 0,     ///< One scale.
  RKNN_QUANT_TYPE_PER_LAYER_ASYM = 1,    ///< One scale and one zero point.
  RKNN_QUANT_TYPE_PER_CHANNEL_SYM = 2,   ///< N scales, one a column of B.
  RKNN_QUANT_TYPE_PER_CHANNEL_ASYM = 3,  ///< N scales and N zero points.
  RKNN_QUANT_TYPE_PER_GROUP_SYM = 4,     ///< Scales in order [K / group_size][N].
  RKNN_QUANT_TYPE_PER_GROUP_ASYM = 5,    ///< Groups have no zero points: refused.
} rknn_matmul_quant_type;

/// Layout of a matrix, see the head of this file.
typedef enum {
  RKNN_MM_LAYOUT_NORM = 0,
  RKNN_MM_LAYOUT_NATIVE = 1,
  RKNN_MM_LAYOUT_TP_NORM = 2,  ///< B only.
} rknn_matmul_layout;

/// Scales and zero points of one matrix. Without any, scale is 1 and zero point 0.
typedef struct _rknn_quant_params {
  char name[RKNN_MAX_NAME_LEN];  ///< "A", "B" or "C".
  float* scale;                  ///< Read during the call.
  int32_t scale_len;             ///< Elements at scale, see rknn_matmul_quant_type.
  int32_t* zp;                   ///< Read during the call; may be NULL when zp_len is 0.
  int32_t zp_len;                ///< Elements at zp.
} rknn_quant_params;

/// One matrix, filled by rknn_matmul_create.
typedef struct _rknn_matmul_tensor_attr {
  char name[RKNN_MAX_NAME_LEN];  ///< "A", "B" or "C".
  uint32_t n_dims;               ///< 2, in native layout 3 (A, C) or 4 (B).
  uint32_t dims[RKNN_MAX_DIMS];  ///< In the layout that was asked for.
  uint32_t size;                 ///< Bytes, padding included; int4 counts half a byte an element.
  rknn_tensor_type type;         ///< Of the elements.
} rknn_matmul_tensor_attr;

/// The three matrices of a product.
typedef struct _rknn_matmul_io_attr {
  rknn_matmul_tensor_attr A;
  rknn_matmul_tensor_attr B;
  rknn_matmul_tensor_attr C;
} rknn_matmul_io_attr;

/// One shape of a product that has several.
typedef struct _rknn_matmul_shape {
  int32_t M;
  int32_t K;
  int32_t N;
} rknn_matmul_shape;

/// What product to make. Zero it before use: 0 is the default of every member after `type`.
typedef struct rknn_matmul_info_t {
  int32_t M;  ///< Rows of A and C, 1 or more.
  int32_t K;  ///< Columns of A, rows of B; at most 10240, a multiple of 32 on RK3588.
  int32_t N;  ///< Columns of B and C; on RK3588 a multiple of 16 (B of f16), 32 (i8), 64 (i4).
  rknn_matmul_type type;    ///< Element types.
  int16_t B_layout;         ///< rknn_matmul_layout of B.
  int16_t B_quant_type;     ///< rknn_matmul_quant_type of B.
  int16_t AC_layout;        ///< rknn_matmul_layout of A and C together: NORM or NATIVE.
  int16_t AC_quant_type;    ///< rknn_matmul_quant_type of A and C: per layer.
  int32_t iommu_domain_id;  ///< 0 to 15: which address space of 4 GB the memory comes from.
  int16_t group_size;       ///< Rows of B that share a scale, when B_quant_type is per group.
  int8_t reserved[34];
} rknn_matmul_info;

/// Makes a product of one shape. `ctx`: set to it; 0 on failure. `io_attr`: filled with the three
/// matrices. Errors: PARAM_INVALID (null pointers; type, shape, layout or quantization that the
/// chip lacks: the log line says what it has), FAIL (no device of that name), DEVICE_UNAVAILABLE
/// (it computes no products, or was used before fork()), MALLOC_FAIL.
int rknn_matmul_create(rknn_matmul_ctx* ctx, rknn_matmul_info* info, rknn_matmul_io_attr* io_attr);

/// Makes a product of `shape_num` shapes. M, K and N of `info` are not looked at. `io_attrs`:
/// `shape_num` of them, filled, one for each shape. With native B all shapes have the same K and N.
/// Errors: as rknn_matmul_create.
int rknn_matmul_create_dynamic_shape(rknn_matmul_ctx* ctx, rknn_matmul_info* info, int shape_num,
                                     rknn_matmul_shape* dynamic_shapes,
                                     rknn_matmul_io_attr* io_attrs);

/// Binds memory to the matrix that attr->name says, until the next call for it.
/// Errors: PARAM_INVALID (null pointer, name, memory smaller than the shape needs, whatever
/// attr->size says), CTX_INVALID.
int rknn_matmul_set_io_mem(rknn_matmul_ctx ctx, rknn_tensor_mem* mem,
                           rknn_matmul_tensor_attr* attr);

/// Chooses the cores of the runs to come. Errors: as rknn_set_core_mask.
int rknn_matmul_set_core_mask(rknn_matmul_ctx context, rknn_core_mask core_mask);

/// Sets scales and zero points of the matrix that params->name says.
/// Errors: PARAM_INVALID (null pointer, name, lengths that do not fit the quantization),
/// CTX_INVALID.
int rknn_matmul_set_quant_params(rknn_matmul_ctx context, rknn_quant_params* params);

/// Type 2 with B per channel, whose C is brought to the largest scale of B: sets *scale to that
/// one. Errors: PARAM_INVALID, CTX_INVALID.
int rknn_matmul_get_quant_params(rknn_matmul_ctx ctx, rknn_quant_params* params, float* scale);

/// Chooses one of the shapes of rknn_matmul_create_dynamic_shape; bind A and C for it afterwards.
/// Errors: PARAM_INVALID (null pointer, not one of them), CTX_INVALID.
int rknn_matmul_set_dynamic_shape(rknn_matmul_ctx ctx, rknn_matmul_shape* shape);

/// Computes C. Blocks until it is there. Errors: CTX_INVALID, FAIL (memory or shape is not set),
/// TIMEOUT, DEVICE_UNAVAILABLE.
int rknn_matmul_run(rknn_matmul_ctx ctx);

/// Destroys a product; its memory stays until rknn_destroy_mem. Errors: CTX_INVALID.
int rknn_matmul_destroy(rknn_matmul_ctx ctx);

/// Brings B from normal to native layout on the CPU, without a context. `B_input`: (K, N) of the
/// type of B that info->type says. `B_output`: room for native B, padding zeroed. `info`: its type
/// says the blocks. Errors: PARAM_INVALID.
int rknn_B_normal_layout_to_native_layout(void* B_input, void* B_output, int K, int N,
                                          rknn_matmul_info* info);

#ifdef __cplusplus
}
#endif

#endif
