#include "adapters/ggml/plugin/ggml_options.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace corelane::ggml {
namespace {

std::string text_of(const char* name) {
  const char* value = ::secure_getenv(name);  // Nothing in a set-uid program.
  return value != nullptr ? value : "";
}

/// `fallback` where the variable is not set, or is not a number within the two.
std::int64_t number_of(const char* name, std::int64_t least, std::int64_t most,
                       std::int64_t fallback, std::vector<std::string>& complaints) {
  const std::string text = text_of(name);
  if (text.empty()) return fallback;
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (errno == 0 && *end == '\0' && value >= least && value <= most) return value;
  complaints.push_back(std::string(name) + "=" + text + " is not a number from " +
                       std::to_string(least) + " to " + std::to_string(most) + "; " +
                       std::to_string(fallback) + " is used");
  return fallback;
}

/// Off where the variable is not set, or is neither 0 nor 1.
bool flag_of(const char* name, std::vector<std::string>& complaints) {
  return number_of(name, 0, 1, 0, complaints) != 0;
}

/// Half of what the process may open: the host and its files need the rest.
std::int64_t default_objects() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 4096;
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(limit.rlim_cur) / 2, 8, 65536);
}

TypePolicy read_type(std::vector<std::string>& complaints) {
  const std::string text = text_of("GGML_RKNN_TYPE");
  if (text == "f16") return TypePolicy::kF16;
  if (text == "int8") return TypePolicy::kInt8;
  if (text == "int4") return TypePolicy::kInt4;
  if (text == "int4x4") return TypePolicy::kInt4x4;
  if (!text.empty() && text != "auto")
    complaints.push_back(
        "GGML_RKNN_TYPE=" + text +
        " is not a type; there are auto, f16, int8, int4 and int4x4; auto is used");
  return TypePolicy::kAuto;
}

}  // namespace

PluginOptions read_options(std::vector<std::string>& complaints) {
  PluginOptions options;
  options.library = text_of("GGML_RKNN_LIBRARY");
  options.type = read_type(complaints);
  const std::string device = text_of("GGML_RKNN_DEVICE");
  options.accel = device == "accel";
  if (!device.empty() && device != "accel" && device != "gpu")
    complaints.push_back("GGML_RKNN_DEVICE=" + device +
                         " is not a device type; there are gpu and accel; gpu is used");
  options.any_version = flag_of("GGML_RKNN_ANY_VERSION", complaints);
  options.min_rows = number_of("GGML_RKNN_MIN_ROWS", 0, INT32_MAX, options.min_rows, complaints);
  options.filter = text_of("GGML_RKNN_FILTER");
  options.trace = flag_of("GGML_RKNN_TRACE", complaints);
  options.stats = text_of("GGML_RKNN_STATS");
  if (options.stats == "0") options.stats.clear();
  options.engine.cores = static_cast<int>(number_of("GGML_RKNN_CORES", 1, 3, 3, complaints));
  options.engine.budget.bytes =
      static_cast<std::uint64_t>(number_of("GGML_RKNN_MEMORY_MB", 1, 1 << 20, 4096, complaints))
      << 20;
  options.engine.budget.objects = static_cast<std::size_t>(
      number_of("GGML_RKNN_OBJECTS", 8, 1 << 20, default_objects(), complaints));
  options.engine.max_contexts = static_cast<std::size_t>(
      number_of("GGML_RKNN_CONTEXTS", 3, 1 << 20,
                static_cast<std::int64_t>(options.engine.max_contexts), complaints));
  return options;
}

}  // namespace corelane::ggml
