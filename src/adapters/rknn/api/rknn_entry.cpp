/// The functions of rknn_api.h: each checks its handle and pointers, delegates, and turns what
/// comes back into a code.
#include <cstring>

#include "adapters/rknn/api/rknn_edge.h"
#include "adapters/rknn/model/rknn_model.h"

namespace corelane::rknn {
namespace {

/// The frame of a function that takes a model's context.
template <class Body>
int on_model(const char* function, rknn_context handle, Body&& body) noexcept {
  return on_context<ModelContext>(function, handle, std::forward<Body>(body));
}

/// Codes of rknn_init differ where the device is missing.
Outcome init_outcome(Outcome ended) {
  const Code code = ended.status().code();
  if (code == Code::kNotFound || code == Code::kIo) return {RKNN_ERR_FAIL, ended.status()};
  return ended;
}

}  // namespace

RKNN_EXPORT int rknn_init(rknn_context* context, void* model, uint32_t size, uint32_t flag,
                          rknn_init_extend* extend) {
  return guard(__func__, [&]() -> Outcome {
    if (context == nullptr)
      return outcome(RKNN_ERR_PARAM_INVALID, "context is null; pass where the handle goes");
    *context = 0;
    if (Status forked = check_process(); !forked.ok()) return {RKNN_ERR_DEVICE_UNAVAILABLE, forked};
    std::shared_ptr<ModelContext> weights_of;
    if ((flag & RKNN_FLAG_SHARE_WEIGHT_MEM) != 0) {
      if (extend == nullptr || extend->ctx == 0)
        return outcome(RKNN_ERR_PARAM_INVALID,
                       "RKNN_FLAG_SHARE_WEIGHT_MEM needs extend->ctx, the context whose weights "
                       "are shared");
      auto found = find_context<ModelContext>(extend->ctx);
      if (!found) return {RKNN_ERR_CTX_INVALID, found.error()};
      weights_of = *std::move(found);
    }
    std::shared_ptr<ModelContext> made;
    Outcome ended = ModelContext::open(model, size, flag, extend, weights_of.get(), made);
    if (made != nullptr) *context = ModelContext::publish(std::move(made));
    return init_outcome(std::move(ended));
  });
}

RKNN_EXPORT int rknn_dup_context(rknn_context* context_in, rknn_context* context_out) {
  return guard(__func__, [&]() -> Outcome {
    if (context_in == nullptr || context_out == nullptr)
      return outcome(RKNN_ERR_PARAM_INVALID, "{} is null; pass the addresses of two handles",
                     context_in == nullptr ? "context_in" : "context_out");
    if (context_out != context_in) *context_out = 0;  // One variable keeps the original.
    const auto from = find_context<ModelContext>(*context_in);
    if (!from) return {RKNN_ERR_CTX_INVALID, from.error()};
    std::shared_ptr<ModelContext> made;
    Outcome ended = (*from)->duplicate(made);
    if (made != nullptr) *context_out = ModelContext::publish(std::move(made));
    return ended;
  });
}

RKNN_EXPORT int rknn_destroy(rknn_context context) {
  return on_model(__func__, context, [&](auto& model) -> Outcome {
    if (inside_operator())
      return outcome(RKNN_ERR_FAIL,
                     "called from inside a custom operator; destroy contexts when the run is over");
    // Of two callers, one succeeds.
    if (take_handle(context) == nullptr) return {RKNN_ERR_CTX_INVALID, stale_handle(context)};
    model.close();
    return {};
  });
}

RKNN_EXPORT int rknn_query(rknn_context context, rknn_query_cmd cmd, void* info, uint32_t size) {
  return on_model(__func__, context, [&](auto& model) {
    // Programs in C may pass any number, which may not be a value of the type: its bits are read.
    std::uint32_t number = 0;
    std::memcpy(&number, &cmd, sizeof number);
    return model.queries().query(number, info, size);
  });
}

RKNN_EXPORT int rknn_inputs_set(rknn_context context, uint32_t n_inputs, rknn_input* inputs) {
  return on_model(__func__, context,
                  [&](auto& model) { return model.tensors().set_inputs(n_inputs, inputs); });
}

RKNN_EXPORT int rknn_set_batch_core_num(rknn_context context, int core_num) {
  return on_model(__func__, context,
                  [&](auto& model) { return model.runs().set_batch_cores(core_num); });
}

RKNN_EXPORT int rknn_set_core_mask(rknn_context context, rknn_core_mask core_mask) {
  return on_model(__func__, context,
                  [&](auto& model) { return model.runs().set_core_mask(core_mask); });
}

RKNN_EXPORT int rknn_run(rknn_context context, rknn_run_extend* extend) {
  return on_model(__func__, context, [&](auto& model) { return model.runs().run(extend); });
}

RKNN_EXPORT int rknn_wait(rknn_context context, rknn_run_extend* extend) {
  return on_model(__func__, context, [&](auto& model) { return model.runs().wait(extend); });
}

RKNN_EXPORT int rknn_outputs_get(rknn_context context, uint32_t n_outputs, rknn_output* outputs,
                                 rknn_output_extend* extend) {
  return on_model(__func__, context, [&](auto& model) {
    return model.tensors().get_outputs(n_outputs, outputs, extend);
  });
}

RKNN_EXPORT int rknn_outputs_release(rknn_context context, uint32_t n_ouputs,
                                     rknn_output* outputs) {
  return on_model(__func__, context,
                  [&](auto& model) { return model.tensors().release_outputs(n_ouputs, outputs); });
}

RKNN_EXPORT int rknn_set_weight_mem(rknn_context ctx, rknn_tensor_mem* mem) {
  return on_model(__func__, ctx, [&](auto& model) { return model.set_weight_mem(mem); });
}

RKNN_EXPORT int rknn_set_internal_mem(rknn_context ctx, rknn_tensor_mem* mem) {
  return on_model(__func__, ctx, [&](auto& model) { return model.set_internal_mem(mem); });
}

RKNN_EXPORT int rknn_set_io_mem(rknn_context ctx, rknn_tensor_mem* mem, rknn_tensor_attr* attr) {
  return on_model(__func__, ctx, [&](auto& model) -> Outcome {
    if (attr == nullptr)
      return outcome(RKNN_ERR_PARAM_INVALID,
                     "attr is null; pass the one that rknn_query filled in");
    return model.tensors().set_io_mem(mem, *attr);
  });
}

RKNN_EXPORT int rknn_set_input_shapes(rknn_context ctx, uint32_t n_inputs, rknn_tensor_attr* attr) {
  return on_model(__func__, ctx,
                  [&](auto& model) { return model.tensors().set_input_shapes(n_inputs, attr); });
}

RKNN_EXPORT int rknn_set_input_shape(rknn_context ctx, rknn_tensor_attr* attr) {
  return on_model(__func__, ctx, [&](auto& model) -> Outcome {
    // Old programs call it for models of one input; for others it has never had a clear meaning.
    if (model.description().inputs.size() != 1)
      return outcome(RKNN_ERR_FAIL,
                     "the model has {} inputs, whose shapes are chosen together; use "
                     "rknn_set_input_shapes",
                     model.description().inputs.size());
    return model.tensors().set_input_shapes(1, attr);
  });
}

}  // namespace corelane::rknn
