/// The C functions of libggml-rknn.so: what ggml's loader calls, and those of the backend named
/// RKNN.
#pragma once

#include "adapters/ggml/plugin/ggml_abi.h"

extern "C" {

/// 0 where the plugin cannot serve this host, after one line that says why; else 1.
__attribute__((visibility("default"))) int ggml_backend_score(void);
/// The registry, always the same; null where ggml_backend_score() is 0.
__attribute__((visibility("default"))) corelane::ggml::abi::Registry* ggml_backend_init(void);
/// The same.
__attribute__((visibility("default"))) corelane::ggml::abi::Registry* ggml_backend_rknn_reg(void);
/// A backend; null where there is no registry.
__attribute__((visibility("default"))) corelane::ggml::abi::Backend* ggml_backend_rknn_init(void);
/// False for null and for other backends.
__attribute__((visibility("default"))) bool ggml_backend_is_rknn(
    corelane::ggml::abi::Backend* backend);
/// How many threads convert rows and results on the CPU. Cores of the NPU are chosen by
/// GGML_RKNN_CORES: hosts give the CPU's number of threads here. No effect before there is a
/// registry.
__attribute__((visibility("default"))) void ggml_backend_rknn_set_n_threads(
    corelane::ggml::abi::Backend* backend, int threads);
/// Whether hosts of this ggml_version() are served without an option. Callable outside of a host.
__attribute__((visibility("default"))) bool ggml_backend_rknn_takes_host(const char* version);

}  // extern "C"
