/// Operators of the caller's own, computed on the CPU in the middle of a model. Conventions and
/// return codes are those of rknn_api.h.
///
/// They are registered after rknn_init, so a model with operators that are not known yet opens and
/// only its runs fail. The callbacks run in the thread that the library runs the model in; with
/// several contexts on several threads that means at the same time, on different
/// rknn_custom_op_context. A callback returns 0 for success; anything else fails the run.
#ifndef _RKNN_CUSTOM_OP_H
#define _RKNN_CUSTOM_OP_H

#include "rknn_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What `init` may return to leave this node to the library's own operator of that type. The
/// virtual chip has none for declared operators, so its runs fail.
#define RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE (-14)
#define RKNN_CUSTOM_OP_MAX_STR_LEN 64    ///< Bytes of an attribute's name that clients plan for.
#define RKNN_CUSTOM_OP_MAX_VALUE_LEN 32  ///< Elements of an attribute that clients plan for.
/// Marks the entry point of a plug-in: a shared object that defines
/// `RKNN_CUSTOM_OP_EXPORT rknn_custom_op* get_rknn_custom_op(void)`.
#define RKNN_CUSTOM_OP_EXPORT __attribute__((visibility("default")))

/// The library's handle of one node. Spelt as clients know it.
#ifdef __arm__
typedef uint32_t rknn_custom_op_interal_context;
#else
typedef uint64_t rknn_custom_op_interal_context;
#endif

/// Where an operator is computed.
typedef enum _rknn_target_type {
  RKNN_TARGET_TYPE_CPU = 1,
  RKNN_TARGET_TYPE_GPU = 2,  ///< Refused: there is no OpenCL here.
  RKNN_TARGET_TYPE_MAX = 3,
} rknn_target_type;

/// OpenCL's objects for an operator on the GPU. All NULL here.
typedef struct _rknn_gpu_op_context {
  void* cl_context;
  void* cl_command_queue;
  void* cl_kernel;
} rknn_gpu_op_context;

/// What a callback gets to know the node by. One for each node, from `init` to `destroy`.
typedef struct _rknn_custom_op_context {
  rknn_target_type target;                      ///< As in rknn_custom_op.
  rknn_custom_op_interal_context internal_ctx;  ///< For rknn_custom_op_get_op_attr.
  rknn_gpu_op_context gpu_ctx;                  ///< Not used on the CPU.
  void* priv_data;                              ///< The callbacks' own; NULL before `init`.
} rknn_custom_op_context;

/// An input or output of a node, elements at mem.virt_addr + mem.offset in the model's order:
/// floats of any width as float32, integers as themselves.
typedef struct _rknn_custom_op_tensor {
  rknn_tensor_attr attr;
  rknn_tensor_mem mem;  ///< Valid during the callback.
} rknn_custom_op_tensor;

/// An attribute of a node.
typedef struct _rknn_custom_op_attr {
  char name[RKNN_MAX_NAME_LEN];  ///< As asked.
  rknn_tensor_type dtype;        ///< INT64 for integers, FLOAT32, or UINT8 for text.
  uint32_t n_elems;              ///< Elements at data; 0: the node has no such attribute.
  void* data;                    ///< The library's, valid until the context is destroyed.
} rknn_custom_op_attr;

/// One operator type. Callbacks get (node, inputs, their number, outputs, their number).
typedef struct _rknn_custom_op {
  uint32_t version;                          ///< Of the operator, the caller's own numbering.
  rknn_target_type target;                   ///< RKNN_TARGET_TYPE_CPU.
  char op_type[RKNN_MAX_NAME_LEN];           ///< Type of the nodes in the model.
  char cl_kernel_name[RKNN_MAX_NAME_LEN];    ///< GPU only.
  char* cl_kernel_source;                    ///< GPU only.
  uint64_t cl_source_size;                   ///< GPU only, bytes.
  char cl_build_options[RKNN_MAX_NAME_LEN];  ///< GPU only.
  /// Once a node, when the operator is registered. May be NULL.
  int (*init)(rknn_custom_op_context*, rknn_custom_op_tensor*, uint32_t, rknn_custom_op_tensor*,
              uint32_t);
  /// Before each compute. May be NULL.
  int (*prepare)(rknn_custom_op_context*, rknn_custom_op_tensor*, uint32_t, rknn_custom_op_tensor*,
                 uint32_t);
  /// Each run: reads the inputs, fills the outputs.
  int (*compute)(rknn_custom_op_context*, rknn_custom_op_tensor*, uint32_t, rknn_custom_op_tensor*,
                 uint32_t);
  /// Never called: tensors of a native layout are not handed out.
  int (*compute_native)(rknn_custom_op_context*, rknn_custom_op_tensor*, uint32_t,
                        rknn_custom_op_tensor*, uint32_t);
  /// Once a node, in rknn_destroy. May be NULL.
  int (*destroy)(rknn_custom_op_context*);
} rknn_custom_op;

/// Entry point of a plug-in, which is looked up by the name get_rknn_custom_op. What it returns
/// must live until the context that it is registered with is destroyed.
typedef rknn_custom_op* (*get_custom_op_func)(void);

/// Registers `custom_op_num` operators with a context; `op` may be freed afterwards, what its
/// callbacks need may not.
/// Errors: PARAM_INVALID (null pointers, no compute, no op_type, target GPU), CTX_INVALID, FAIL (an
/// `init` failed).
int rknn_register_custom_ops(rknn_context ctx, rknn_custom_op* op, uint32_t custom_op_num);

/// Looks up an attribute of the node, from within a callback. Fills `op_attr`; n_elems is 0 when
/// the node has none of that name, and after null pointers.
void rknn_custom_op_get_op_attr(rknn_custom_op_context* op_ctx, const char* attr_name,
                                rknn_custom_op_attr* op_attr);

#ifdef __cplusplus
}
#endif

#endif
