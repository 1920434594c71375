/// What the environment says to the plugin; the page docs/apis/ggml.md lists it.
#pragma once

#include <string>
#include <vector>

#include "adapters/ggml/mm/mm_engine.h"

namespace corelane::ggml {

/// What weights become.
enum class TypePolicy {
  kAuto,    ///< F16 as it is, quantized types int8 by row.
  kF16,     ///< All float16, BF16 and F32 too.
  kInt8,    ///< All int8.
  kInt4,    ///< As kAuto, but quantized weights of few bits int4 by row.
  kInt4x4,  ///< The same, with the other matrix int4, too.
};
inline bool wants_int4(TypePolicy policy) {
  return policy == TypePolicy::kInt4 || policy == TypePolicy::kInt4x4;
}

struct PluginOptions {
  std::string library;
  TypePolicy type = TypePolicy::kAuto;
  bool accel = false;  ///< GGML_RKNN_DEVICE=accel.
  bool any_version = false;
  /// Products of weights with fewer rows stay on the CPU; 0: where that is quicker.
  std::int64_t min_rows = 0;
  std::string filter;  ///< A file.
  bool trace = false;
  std::string stats;  ///< "1": to stderr; else a file to append to.
  MmOptions engine;
};

/// Values that mean nothing are left at the default, with a line each in `complaints`.
PluginOptions read_options(std::vector<std::string>& complaints);

}  // namespace corelane::ggml
