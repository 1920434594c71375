/// The host that loaded the plugin: its functions, found in the very library that called, and what
/// its version means.
#pragma once

#include <dlfcn.h>

#include <string>

#include "adapters/ggml/plugin/ggml_abi.h"

namespace corelane::ggml {

/// The host's functions, named without the prefix ggml_. All but log_internal are always there.
struct HostFunctions {
  const char* (*version)() = nullptr;
  const char* (*op_name)(int op) = nullptr;
  const abi::TypeTraits* (*get_type_traits)(int type) = nullptr;
  int (*graph_n_nodes)(abi::Graph*) = nullptr;
  abi::Tensor* (*graph_node)(abi::Graph*, int index) = nullptr;
  abi::Buffer* (*backend_buffer_init)(abi::BufferType*, abi::BufferInterface, void* context,
                                      std::size_t size) = nullptr;
  bool (*backend_buft_is_host)(abi::BufferType*) = nullptr;
  void (*log_internal)(int level, const char* format, ...) = nullptr;
};

/// In `library` and what it is linked to, then anywhere. False where there is none.
template <class Function>
bool find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

struct Host {
  HostFunctions call;
  void* library = nullptr;  ///< For dlsym(): the one that called.
  const char* version = "";
  int api_version = 0;  ///< Of its plugins; chooses the layouts: ggml_abi2.h, ggml_abi3.h.
  int op_mul_mat = -1;
  /// True for what moves no data: NONE, RESHAPE, VIEW, PERMUTE, TRANSPOSE.
  bool is_view(int op) const {
    return op >= 0 && op < 64 * 8 && ((views[op / 64] >> (op % 64)) & 1U);
  }
  std::uint64_t views[8] = {};
};

/// The plugin API of a host of this version: that of the nearest known release, and whether that
/// one is of the same minor version. `why` then names the tested ones.
struct HostVersion {
  int api_version;
  bool known;
};
HostVersion look_up_version(const std::string& version, std::string& why);

/// The host that the code at `caller` belongs to: its file is asked first, with the libraries that
/// it was linked to, since a process may have others. Null, with one line in `why`, where it lacks
/// a function or has another version (`any_version` then takes it all the same). Made once: a
/// second host gets the first one.
const Host* find_host(const void* caller, bool any_version, std::string& why);

/// One line, to the host's log where it has one, else to stderr. Not under a lock: the host's log
/// calls its user, who may wait for a thread that wants that lock.
void log_line(abi::LogLevel level, const std::string& line);
/// For callers that hold a lock: keeps the line for the next log_pending(). Not in a forked child.
/// Any thread.
void log_later(abi::LogLevel level, const std::string& line);
/// Writes the lines that log_later() has kept. The caller holds no lock.
void log_pending();

}  // namespace corelane::ggml
