/// The functions of rknn_matmul_api.h: each checks its handle and pointers, delegates, and turns
/// what comes back into a code.
#include <vector>

#include "adapters/rknn/api/rknn_edge.h"
#include "adapters/rknn/api/rknn_handle.h"
#include "adapters/rknn/matmul/rknn_matmul.h"
#include "adapters/rknn/model/rknn_context_lock.h"

namespace corelane::rknn {
namespace {

/// The frame of a function that takes a product's context.
template <class Body>
int on_product(const char* function, rknn_matmul_ctx handle, Body&& body) noexcept {
  return on_context<MatmulContext>(function, handle, std::forward<Body>(body));
}

Outcome null_argument(const char* name, const char* what) {
  return outcome(RKNN_ERR_PARAM_INVALID, "{} is null; pass {}", name, what);
}

Outcome create_outcome(const Status& status) {
  // A combination that does not exist is a wrong parameter to programs of this API.
  if (status.code() == Code::kUnsupported) return {RKNN_ERR_PARAM_INVALID, status};
  // No device of that name, as for rknn_init.
  if (status.code() == Code::kNotFound) return {RKNN_ERR_FAIL, status};
  return status;
}

Outcome create(rknn_matmul_ctx* ctx, const void* info, const std::vector<rknn_matmul_shape>& shapes,
               bool dynamic, rknn_matmul_io_attr* io) {
  if (Status forked = check_process(); !forked.ok()) return {RKNN_ERR_DEVICE_UNAVAILABLE, forked};
  auto made = MatmulContext::create(info, shapes, dynamic, io);
  if (!made) return create_outcome(made.error());
  *ctx = add_handle(*std::move(made));
  return {};
}

int create_dynamic(const char* function, rknn_matmul_ctx* ctx, rknn_matmul_info* info,
                   int shape_num, rknn_matmul_shape* shapes, rknn_matmul_io_attr* io_attrs) {
  return guard(function, [&]() -> Outcome {
    if (ctx == nullptr) return null_argument("ctx", "where the handle goes");
    *ctx = 0;
    if (info == nullptr) return null_argument("info", "what product to make");
    if (shapes == nullptr) return null_argument("dynamic_shapes", "the shapes to choose from");
    if (io_attrs == nullptr) return null_argument("io_attrs", "room for one of each shape");
    if (shape_num < 1 || shape_num > RKNN_MAX_DYNAMIC_SHAPE_NUM)
      return outcome(RKNN_ERR_PARAM_INVALID, "shape_num {} is not within 1 and {}", shape_num,
                     RKNN_MAX_DYNAMIC_SHAPE_NUM);
    return create(ctx, info, {shapes, shapes + shape_num}, true, io_attrs);
  });
}

}  // namespace

RKNN_EXPORT int rknn_matmul_create(rknn_matmul_ctx* ctx, rknn_matmul_info* info,
                                   rknn_matmul_io_attr* io_attr) {
  return guard(__func__, [&]() -> Outcome {
    if (ctx == nullptr) return null_argument("ctx", "where the handle goes");
    *ctx = 0;
    if (info == nullptr) return null_argument("info", "what product to make");
    if (io_attr == nullptr) return null_argument("io_attr", "where the matrices are described");
    return create(ctx, info, {shape_of(info)}, false, io_attr);
  });
}

RKNN_EXPORT int rknn_matmul_create_dynamic_shape(rknn_matmul_ctx* ctx, rknn_matmul_info* info,
                                                 int shape_num, rknn_matmul_shape* dynamic_shapes,
                                                 rknn_matmul_io_attr* io_attrs) {
  return create_dynamic(__func__, ctx, info, shape_num, dynamic_shapes, io_attrs);
}

// The name it had in the first beta of 2.0. The headers no longer declare it.
RKNN_EXPORT int rknn_matmul_create_dyn_shape(rknn_matmul_ctx* ctx, rknn_matmul_info* info,
                                             int shape_num, rknn_matmul_shape* dynamic_shapes,
                                             rknn_matmul_io_attr* io_attrs) {
  return create_dynamic(__func__, ctx, info, shape_num, dynamic_shapes, io_attrs);
}

RKNN_EXPORT int rknn_matmul_set_io_mem(rknn_matmul_ctx ctx, rknn_tensor_mem* mem,
                                       rknn_matmul_tensor_attr* attr) {
  return on_product(__func__, ctx, [&](auto& product) -> Outcome {
    if (attr == nullptr)
      return null_argument("attr", "the one of A, B or C that rknn_matmul_create filled in");
    return product.set_io_mem(mem, *attr);
  });
}

RKNN_EXPORT int rknn_matmul_set_core_mask(rknn_matmul_ctx context, rknn_core_mask core_mask) {
  return on_product(__func__, context,
                    [&](auto& product) { return product.set_core_mask(core_mask); });
}

RKNN_EXPORT int rknn_matmul_set_quant_params(rknn_matmul_ctx context, rknn_quant_params* params) {
  return on_product(__func__, context, [&](auto& product) -> Outcome {
    if (params == nullptr) return null_argument("params", "the name of a matrix and its scales");
    return product.set_quant_params(*params);
  });
}

RKNN_EXPORT int rknn_matmul_get_quant_params(rknn_matmul_ctx ctx, rknn_quant_params* params,
                                             float* scale) {
  return on_product(__func__, ctx, [&](auto& product) -> Outcome {
    if (params == nullptr) return null_argument("params", "the name of a matrix");
    return product.get_quant_params(*params, scale);
  });
}

RKNN_EXPORT int rknn_matmul_set_dynamic_shape(rknn_matmul_ctx ctx, rknn_matmul_shape* shape) {
  return on_product(__func__, ctx, [&](auto& product) -> Outcome {
    if (shape == nullptr) return null_argument("shape", "one of those given at creation");
    return product.set_dynamic_shape(*shape);
  });
}

RKNN_EXPORT int rknn_matmul_run(rknn_matmul_ctx ctx) {
  return on_product(__func__, ctx, [](auto& product) { return product.run(); });
}

RKNN_EXPORT int rknn_matmul_destroy(rknn_matmul_ctx ctx) {
  return on_product(__func__, ctx, [&](auto& product) -> Outcome {
    if (inside_operator())
      return outcome(RKNN_ERR_FAIL,
                     "called from inside a custom operator; destroy products when the model's run "
                     "is over");
    // Of two callers, one succeeds.
    if (take_handle(ctx) == nullptr) return {RKNN_ERR_CTX_INVALID, stale_handle(ctx)};
    product.close(ctx);
    return {};
  });
}

RKNN_EXPORT int rknn_B_normal_layout_to_native_layout(void* B_input, void* B_output, int K, int N,
                                                      rknn_matmul_info* info) {
  return guard(__func__, [&]() -> Outcome {
    if (B_input == nullptr) return null_argument("B_input", "B in normal layout");
    if (B_output == nullptr) return null_argument("B_output", "room for native B");
    if (info == nullptr) return null_argument("info", "one whose type says the blocks");
    return native_b(B_input, B_output, K, N, type_of(info));
  });
}

}  // namespace corelane::rknn
