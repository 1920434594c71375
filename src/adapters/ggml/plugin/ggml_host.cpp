#include "adapters/ggml/plugin/ggml_host.h"

#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "adapters/ggml/plugin/ggml_abi2.h"
#include "adapters/ggml/plugin/ggml_abi3.h"
#include "adapters/ggml/plugin/ggml_output.h"

#ifdef GGML_RKNN_LINKED
extern "C" {
const char* ggml_version();
const char* ggml_op_name(int op);
const corelane::ggml::abi::TypeTraits* ggml_get_type_traits(int type);
int ggml_graph_n_nodes(corelane::ggml::abi::Graph*);
corelane::ggml::abi::Tensor* ggml_graph_node(corelane::ggml::abi::Graph*, int index);
corelane::ggml::abi::Buffer* ggml_backend_buffer_init(corelane::ggml::abi::BufferType*,
                                                      corelane::ggml::abi::BufferInterface,
                                                      void* context, std::size_t size);
bool ggml_backend_buft_is_host(corelane::ggml::abi::BufferType*);
}
#endif

namespace corelane::ggml {
namespace {

constexpr const char* kTested = "0.13.1, 0.20.2, 0.25.3, 0.27.0";

/// Minor versions 0.x whose layouts are known. docs/apis/ggml.md says which were run.
struct Range {
  int first;
  int last;
  int api_version;
};
constexpr Range kKnown[] = {{10, 25, abi2::kApiVersion}, {27, 27, abi3::kApiVersion}};

Host g_host;
bool g_found = false;

struct PendingLines {
  std::mutex mutex;
  std::vector<std::pair<abi::LogLevel, std::string>> lines;
};

/// Never destroyed: threads may compute until the end.
PendingLines& pending() {
  static PendingLines& one = *new PendingLines;
  return one;
}

#ifdef GGML_RKNN_LINKED
/// The host is the program that this is linked into; a static one exports nothing.
const char* first_missing(void*, HostFunctions& call) {
  call.version = ggml_version;
  call.op_name = ggml_op_name;
  call.get_type_traits = ggml_get_type_traits;
  call.graph_n_nodes = ggml_graph_n_nodes;
  call.graph_node = ggml_graph_node;
  call.backend_buffer_init = ggml_backend_buffer_init;
  call.backend_buft_is_host = ggml_backend_buft_is_host;
  return nullptr;
}
#else
const char* first_missing(void* library, HostFunctions& call) {
  find_function(library, "ggml_log_internal", call.log_internal);
  if (!find_function(library, "ggml_version", call.version)) return "ggml_version";
  if (!find_function(library, "ggml_op_name", call.op_name)) return "ggml_op_name";
  if (!find_function(library, "ggml_get_type_traits", call.get_type_traits))
    return "ggml_get_type_traits";
  if (!find_function(library, "ggml_graph_n_nodes", call.graph_n_nodes))
    return "ggml_graph_n_nodes";
  if (!find_function(library, "ggml_graph_node", call.graph_node)) return "ggml_graph_node";
  if (!find_function(library, "ggml_backend_buffer_init", call.backend_buffer_init))
    return "ggml_backend_buffer_init";
  if (!find_function(library, "ggml_backend_buft_is_host", call.backend_buft_is_host))
    return "ggml_backend_buft_is_host";
  return nullptr;
}
#endif

/// The list of names ends where a name is null or the number is beyond the last, which the host
/// asserts: GLU is the last operator of all known releases.
void learn_operators(Host& host) {
  for (int op = 0; op < 512; ++op) {
    const char* name = host.call.op_name(op);
    if (name == nullptr) return;
    for (const char* view : {"NONE", "RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE"})
      if (std::strcmp(name, view) == 0) host.views[op / 64] |= std::uint64_t{1} << (op % 64);
    if (std::strcmp(name, "MUL_MAT") == 0) host.op_mul_mat = op;
    if (std::strcmp(name, "GLU") == 0) return;
  }
}

}  // namespace

HostVersion look_up_version(const std::string& version, std::string& why) {
  int major = -1;
  int minor = -1;
  std::sscanf(version.c_str(), "%d.%d", &major, &minor);
  for (const Range& range : kKnown)
    if (major == 0 && minor >= range.first && minor <= range.last) return {range.api_version, true};
  why = "this host is ggml " + version +
        ", whose plugin layout is unknown here; tested: " + kTested +
        "; GGML_RKNN_ANY_VERSION=1 tries the nearest layout, and may crash";
  const bool new_one = major > 0 || minor > kKnown[0].last;
  return {new_one ? abi3::kApiVersion : abi2::kApiVersion, false};
}

const Host* find_host(const void* caller, bool any_version, std::string& why) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (g_found) return &g_host;
  Dl_info info{};
  const bool placed = dladdr(caller, &info) != 0 && info.dli_fname != nullptr;
  void* library = placed ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  if (library == nullptr) library = dlopen(nullptr, RTLD_NOW);
  if (const char* missing = first_missing(library, g_host.call)) {
    why = std::string("the program that loaded this plugin has no function ") + missing +
          "; tested hosts: ggml " + kTested;
    return nullptr;
  }
  g_host.library = library;
  g_host.version = g_host.call.version();
  const HostVersion looked_up = look_up_version(g_host.version, why);
  if (!looked_up.known && !any_version) return nullptr;
  g_host.api_version = looked_up.api_version;
  learn_operators(g_host);
  if (g_host.op_mul_mat < 0) {
    why = std::string("ggml ") + g_host.version + " has no operator MUL_MAT";
    return nullptr;
  }
  g_found = true;
  return &g_host;
}

void log_line(abi::LogLevel level, const std::string& line) {
  if (g_host.call.log_internal != nullptr)
    g_host.call.log_internal(level, "RKNN: %s\n", line.c_str());
  else
    write_line(stderr, "RKNN: " + line);
}

void log_later(abi::LogLevel level, const std::string& line) {
  const std::lock_guard<std::mutex> lock(pending().mutex);
  pending().lines.emplace_back(level, line);
}

void log_pending() {
  std::vector<std::pair<abi::LogLevel, std::string>> lines;
  {
    const std::lock_guard<std::mutex> lock(pending().mutex);
    lines.swap(pending().lines);
  }
  for (const auto& [level, line] : lines) log_line(level, line);
}

}  // namespace corelane::ggml
