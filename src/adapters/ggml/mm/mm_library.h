/// A librknnrt.so, found at run time: the matmul functions of the RKNN C API and those for its
/// memory.
///
/// Nothing here knows ggml, and nothing of the house is included: the folder mm/ runs on the
/// vendor's library as on ours. Never unloaded: its threads outlive any order of unloading.
#pragma once

#include <memory>
#include <string>

#include "rknn_matmul_api.h"

namespace corelane::ggml {

/// The functions that are called, named as in the API without its prefix.
struct RknnFunctions {
  decltype(&rknn_matmul_create_dynamic_shape) matmul_create_dynamic_shape = nullptr;
  decltype(&rknn_matmul_set_io_mem) matmul_set_io_mem = nullptr;
  decltype(&rknn_matmul_set_core_mask) matmul_set_core_mask = nullptr;
  decltype(&rknn_matmul_set_dynamic_shape) matmul_set_dynamic_shape = nullptr;
  decltype(&rknn_matmul_run) matmul_run = nullptr;
  decltype(&rknn_matmul_destroy) matmul_destroy = nullptr;
  decltype(&rknn_create_mem) create_mem = nullptr;
  decltype(&rknn_create_mem_from_fd) create_mem_from_fd = nullptr;
  decltype(&rknn_destroy_mem) destroy_mem = nullptr;
  decltype(&rknn_mem_sync) mem_sync = nullptr;
};

class RknnLibrary {
 public:
  /// `path`: a file, or a name that the dynamic linker looks for; empty: "librknnrt.so". Null on
  /// failure, with one line in `why` that names the library, what is wrong and what to do.
  static std::shared_ptr<const RknnLibrary> open(const std::string& path, std::string& why);
  /// Over functions of the caller's: a test's stand-in.
  explicit RknnLibrary(const RknnFunctions& functions) : call(functions) {}

  RknnFunctions call;
  std::string name;  ///< As it was asked for.
};

}  // namespace corelane::ggml
