#include "adapters/ggml/plugin/ggml_entry.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>

#include "adapters/ggml/plugin/ggml_output.h"
#include "adapters/ggml/plugin/ggml_plugin.h"
#include "adapters/ggml/plugin/ggml_timers.h"

namespace corelane::ggml {
namespace {

Plugin* g_plugin = nullptr;

/// At exit, when the host's log may be gone. A product that hangs keeps its figures: the process
/// has to end. The figures of a forked process are those of its parent, which writes them.
void write_stats() {
  if (is_forked()) return;
  const MmEngine* const engine = g_plugin->engine->is_idle() ? g_plugin->engine.get() : nullptr;
  const std::string line = g_plugin->stats.json(engine);
  const std::string& where = g_plugin->options.stats;
  if (where == "1") {
    write_line(stderr, line);
    return;
  }
  if (std::FILE* file = std::fopen(where.c_str(), "ae")) {
    write_line(file, line);
    std::fclose(file);
  }
}

/// Why no line can be written to the file; nothing where it can.
std::string why_not_written(const std::string& where) {
  struct stat found {};
  const bool known = ::stat(where.c_str(), &found) == 0;
  // Opening a pipe waits for its reader. A device is /dev/null or a terminal.
  if (known && !S_ISREG(found.st_mode) && !S_ISCHR(found.st_mode))
    return "it is neither a file nor a device";
  std::FILE* file = std::fopen(where.c_str(), "ae");
  if (file == nullptr) return std::strerror(errno);
  std::fclose(file);
  if (!known) ::unlink(where.c_str());  // A process that ends without exit() leaves no empty one.
  return {};
}

/// Clears the option where the file cannot be written: at exit nobody would be told.
void check_stats(std::string& where, std::vector<std::string>& complaints) {
  if (where.empty() || where == "1") return;
  const std::string why = why_not_written(where);
  if (why.empty()) return;
  complaints.push_back("GGML_RKNN_STATS=" + where + " cannot be written (" + why +
                       "); no statistics are written; name a file in a folder that exists");
  where.clear();
}

bool open_library(Plugin& made) {
  std::string why;
  auto library = RknnLibrary::open(made.options.library, why);
  if (library != nullptr)
    made.engine = MmEngine::create(
        std::move(library), made.options.engine,
        [](const std::string& line) { log_later(abi::kLogWarn, line); }, why);
  if (made.engine == nullptr) log_line(abi::kLogError, why);
  return made.engine != nullptr;
}

/// What the library makes decides, and the log has it.
void choose_int4(Plugin& made) {
  const TypePolicy policy = made.options.type;
  if (!wants_int4(policy)) return;
  made.few_bits = made.engine->device().type_of_int4(policy == TypePolicy::kInt4x4);
  if (made.few_bits == MmType::kInt8)
    log_line(abi::kLogWarn, made.engine->device().library().name +
                                " makes no products with weights of int4; they become int8");
  else
    log_line(abi::kLogInfo, std::string("weights of few bits become int4, multiplied with ") +
                                (made.few_bits == MmType::kW4A4 ? "int4" : "int8"));
}

}  // namespace

bool start(const void* caller) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (g_plugin != nullptr) return true;
  auto made = std::make_unique<Plugin>();
  std::vector<std::string> complaints;
  made->options = read_options(complaints);
  std::string why;
  made->host = find_host(caller, made->options.any_version, why);
  if (made->host == nullptr) {
    log_line(abi::kLogError, why);
    return false;
  }
  if (!made->options.filter.empty() && !Filter::read(made->options.filter, made->filter, why)) {
    made->filter = {};
    complaints.push_back(why + "; every product may go to the NPU");
  }
  check_stats(made->options.stats, complaints);
  for (const std::string& line : complaints) log_line(abi::kLogWarn, line);
  if (!open_library(*made)) return false;
  choose_int4(*made);
  if (made->options.min_rows == 1) made->engine->take_single_rows();
  made->few_rows = std::make_unique<FewRows>(
      time_on_npu,
      [](const std::vector<abi::Tensor>& weights) {
        return time_on_cpu(*plugin().host, weights, plugin().engine->threads());
      },
      [](const std::string& line) { log_later(abi::kLogInfo, line); });
  g_plugin = made.release();
  if (!g_plugin->options.stats.empty()) std::atexit(write_stats);
  return true;
}

Plugin& plugin() { return *g_plugin; }

bool is_started() { return g_plugin != nullptr; }

}  // namespace corelane::ggml

using corelane::ggml::abi::Backend;
using corelane::ggml::abi::Registry;

namespace {

bool start_safely(const void* caller) {
  try {
    return corelane::ggml::start(caller);
  } catch (const std::exception& failure) {
    corelane::ggml::write_line(stderr, std::string("RKNN: cannot start: ") + failure.what());
    return false;
  }
}

}  // namespace

int ggml_backend_score(void) { return start_safely(__builtin_return_address(0)) ? 1 : 0; }

Registry* ggml_backend_init(void) {
  return start_safely(__builtin_return_address(0)) ? corelane::ggml::registry() : nullptr;
}

Registry* ggml_backend_rknn_reg(void) {
  return start_safely(__builtin_return_address(0)) ? corelane::ggml::registry() : nullptr;
}

Backend* ggml_backend_rknn_init(void) {
  return start_safely(__builtin_return_address(0)) ? corelane::ggml::make_backend() : nullptr;
}

bool ggml_backend_is_rknn(Backend* backend) { return corelane::ggml::is_ours(backend); }

void ggml_backend_rknn_set_n_threads(Backend*, int threads) {
  if (corelane::ggml::is_started()) corelane::ggml::plugin().engine->set_threads(threads);
}

bool ggml_backend_rknn_takes_host(const char* version) {
  std::string why;
  return version != nullptr && corelane::ggml::look_up_version(version, why).known;
}
