// The RKNN backend of a ggml that was built with -DGGML_RKNN=ON.
#pragma once

#include "ggml-backend.h"
#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

// The registry, always the same; null where there is no NPU library, after a line in the log.
GGML_BACKEND_API ggml_backend_reg_t ggml_backend_rknn_reg(void);
// A backend; null where there is no registry.
GGML_BACKEND_API ggml_backend_t ggml_backend_rknn_init(void);
GGML_BACKEND_API bool ggml_backend_is_rknn(ggml_backend_t backend);
// Threads that convert rows and results on the CPU.
GGML_BACKEND_API void ggml_backend_rknn_set_n_threads(ggml_backend_t backend, int n_threads);

#ifdef __cplusplus
}
#endif
