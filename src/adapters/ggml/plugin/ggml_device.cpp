/// The registry with its one device, and backends of the device.
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "adapters/ggml/plugin/ggml_entry.h"
#include "adapters/ggml/plugin/ggml_memory.h"
#include "adapters/ggml/plugin/ggml_plugin.h"

namespace corelane::ggml {
namespace {

constexpr const char* kName = "RKNN";

/// The id of this backend on every machine: c9bdb702-4936-4212-af35-a287d8c02920.
abi::Guid* guid() {
  static abi::Guid id = {0xc9, 0xbd, 0xb7, 0x02, 0x49, 0x36, 0x42, 0x12,
                         0xaf, 0x35, 0xa2, 0x87, 0xd8, 0xc9, 0x29, 0x20};
  return &id;
}

const char* backend_name(abi::Backend*) { return kName; }
void backend_free(abi::Backend* backend) { delete backend; }

/// True, after one line in each such process, where products must not go to the NPU.
bool refuses_forked() {
  static std::atomic<pid_t> told{0};
  if (!is_forked()) return false;
  if (told.exchange(getpid()) != getpid())
    log_line(abi::kLogError,
             "this process was forked after the backend was loaded, and cannot use the NPU of its "
             "parent; its products stay on the CPU; start it by exec or spawn");
  return true;
}

/// Products one after another, in the caller's thread; nodes between them only look at memory in
/// another way. A host that asks for another operator all the same has not asked supports_op.
int compute_nodes(abi::Graph* graph) {
  const Host& host = *plugin().host;
  const int count = host.call.graph_n_nodes(graph);
  plugin().engine->begin_group();
  try {
    for (int i = 0; i < count; ++i) {
      const abi::Tensor& node = *host.call.graph_node(graph, i);
      if ((node.flags & abi::kFlagCompute) == 0 || host.is_view(node.op)) continue;
      if (node.op != host.op_mul_mat) {
        log_line(abi::kLogError, std::string("cannot compute ") + host.call.op_name(node.op) +
                                     " of node " + node.name);
        return abi::kStatusFailed;
      }
      compute(node);
    }
  } catch (const std::exception& failure) {
    log_line(abi::kLogError, std::string("a graph failed: ") + failure.what());
    return abi::kStatusFailed;
  }
  return abi::kStatusSuccess;
}

int graph_compute(abi::Backend*, abi::Graph* graph) {
  if (refuses_forked()) return abi::kStatusFailed;
  const int status = compute_nodes(graph);
  log_pending();
  return status;
}

const char* device_name(abi::Device*) { return kName; }

/// Reports the memory of the system: the NPU has none of its own.
void device_memory(abi::Device*, std::size_t* free, std::size_t* total) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  *total = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * page;
  *free = available_memory("/proc/meminfo", *total);
}

int device_type(abi::Device*) {
  return plugin().options.accel ? abi::kDeviceAccel : abi::kDeviceGpu;
}

void device_props(abi::Device* device, abi::DeviceProps* props) {
  *props = {};
  props->name = kName;
  props->description = kName;
  device_memory(device, &props->memory_free, &props->memory_total);
  props->type = device_type(device);
  props->caps.host_buffer = true;
  props->caps.buffer_from_host_ptr = true;
  props->caps.mmap_support = true;
}

abi::Backend* device_init(abi::Device*, const char*) {
  return or_else<abi::Backend*>(nullptr, make_backend);
}
abi::BufferType* device_buffer_type(abi::Device*) { return buffer_type(); }

abi::Buffer* device_wrap(abi::Device*, void* data, std::size_t size, std::size_t) {
  return or_else<abi::Buffer*>(nullptr, [&] { return wrap_memory(data, size); });
}

bool supports_op(abi::Device*, const abi::Tensor* node) {
  if (refuses_forked()) return false;
  const Answer answer = or_else(Answer::kMemory, [node] { return can_compute(*node); });
  log_pending();
  if (node->op == plugin().host->op_mul_mat) plugin().stats.count(answer);
  return answer == Answer::kYes;
}

bool supports_buft(abi::Device*, abi::BufferType* type) {
  return type == buffer_type() || plugin().host->call.backend_buft_is_host(type);
}

abi::Device* device() {
  static abi::Device one = [] {
    abi::Device made{};
    made.iface.get_name = device_name;
    made.iface.get_description = device_name;
    made.iface.get_memory = device_memory;
    made.iface.get_type = device_type;
    made.iface.get_props = device_props;
    made.iface.init_backend = device_init;
    made.iface.get_buffer_type = device_buffer_type;
    made.iface.buffer_from_host_ptr = device_wrap;
    made.iface.supports_op = supports_op;
    made.iface.supports_buft = supports_buft;
    made.reg = registry();
    return made;
  }();
  return &one;
}

const char* registry_name(abi::Registry*) { return kName; }
std::size_t registry_count(abi::Registry*) { return 1; }

abi::Device* registry_device(abi::Registry*, std::size_t index) {
  return index == 0 ? device() : nullptr;
}

void* registry_function(abi::Registry*, const char* name) {
  if (std::strcmp(name, "ggml_backend_set_n_threads") == 0)
    return reinterpret_cast<void*>(&ggml_backend_rknn_set_n_threads);
  return nullptr;
}

}  // namespace

abi::Registry* registry() {
  static abi::Registry one = [] {
    abi::Registry made{};
    made.api_version = plugin().host->api_version;
    made.iface = {registry_name, registry_count, registry_device, registry_function};
    return made;
  }();
  return &one;
}

abi::Backend* make_backend() {
  auto* backend = new abi::Backend{};
  backend->guid = guid();
  backend->iface.get_name = backend_name;
  backend->iface.free = backend_free;
  backend->iface.graph_compute = graph_compute;
  backend->device = device();
  return backend;
}

bool is_ours(const abi::Backend* backend) {
  return backend != nullptr && backend->guid != nullptr &&
         std::memcmp(*backend->guid, *guid(), sizeof(abi::Guid)) == 0;
}

}  // namespace corelane::ggml
