#include "adapters/ggml/mm/mm_library.h"

#include <dlfcn.h>

namespace corelane::ggml {
namespace {

constexpr const char* kRemedy =
    "set GGML_RKNN_LIBRARY to a librknnrt.so with matmul functions (Corelane's, or the vendor's "
    "from release 2.0 on)";

/// False where the library lacks it; `missing` is then its name.
template <class Function>
bool find(void* handle, const char* symbol, Function& function, const char*& missing) {
  function = reinterpret_cast<Function>(dlsym(handle, symbol));
  if (function == nullptr) missing = symbol;
  return function != nullptr;
}

const char* first_missing(void* handle, RknnFunctions& call) {
  const char* missing = nullptr;
  find(handle, "rknn_matmul_create_dynamic_shape", call.matmul_create_dynamic_shape, missing) &&
      find(handle, "rknn_matmul_set_io_mem", call.matmul_set_io_mem, missing) &&
      find(handle, "rknn_matmul_set_core_mask", call.matmul_set_core_mask, missing) &&
      find(handle, "rknn_matmul_set_dynamic_shape", call.matmul_set_dynamic_shape, missing) &&
      find(handle, "rknn_matmul_run", call.matmul_run, missing) &&
      find(handle, "rknn_matmul_destroy", call.matmul_destroy, missing) &&
      find(handle, "rknn_create_mem", call.create_mem, missing) &&
      find(handle, "rknn_create_mem_from_fd", call.create_mem_from_fd, missing) &&
      find(handle, "rknn_destroy_mem", call.destroy_mem, missing) &&
      find(handle, "rknn_mem_sync", call.mem_sync, missing);
  return missing;
}

}  // namespace

std::shared_ptr<const RknnLibrary> RknnLibrary::open(const std::string& path, std::string& why) {
  const std::string name = path.empty() ? "librknnrt.so" : path;
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    why = "cannot load " + name + " (" + (reason != nullptr ? reason : "no reason given") + "); " +
          kRemedy;
    return nullptr;
  }
  RknnFunctions call;
  if (const char* missing = first_missing(handle, call)) {
    why = name + " has no function " + missing + "; " + kRemedy;
    return nullptr;
  }
  auto library = std::make_shared<RknnLibrary>(call);
  library->name = name;
  return library;
}

}  // namespace corelane::ggml
