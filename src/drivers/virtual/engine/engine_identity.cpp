#include "drivers/virtual/engine/engine_identity.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <openvino/core/version.hpp>
#include <utility>

namespace corelane::drivers::virtual_npu {
namespace {

bool has_flag(std::string_view flags, std::string_view flag) {
  for (std::size_t at = flags.find(flag); at != std::string_view::npos;
       at = flags.find(flag, at + 1)) {
    const std::size_t end = at + flag.size();
    if ((at == 0 || flags[at - 1] == ' ') && (end == flags.size() || flags[end] == ' '))
      return true;
  }
  return false;
}

std::string read_cpu_flags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

}  // namespace

const std::string& engine_build() {
  static const std::string build = [] {
    const char* number = ov::get_openvino_version().buildNumber;
    return std::string(number == nullptr ? "unknown" : number);
  }();
  return build;
}

const std::string& engine_version() {
  static const std::string version = engine_build().substr(0, engine_build().find('-'));
  return version;
}

const std::string& engine_isa() {
  static const std::string isa = isa_from_flags(read_cpu_flags());
  return isa;
}

std::string isa_from_flags(std::string_view flags) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kBase = {{
      {"avx512f", "avx512"},
      {"avx2", "avx2"},
      {"sse4_1", "sse41"},
      {"asimd", "neon"},
  }};
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kExtras = {{
      {"avx512_vnni", "vnni"},
      {"avx_vnni", "avxvnni"},
      {"avx512_bf16", "bf16"},
      {"avx512_fp16", "fp16"},
      {"amx_int8", "amxint8"},
      {"amx_bf16", "amxbf16"},
      {"amx_fp16", "amxfp16"},
      {"asimddp", "dot"},
      {"asimdhp", "fp16"},
      {"i8mm", "i8mm"},
      {"sve", "sve"},
  }};
  std::string isa;
  for (const auto& [flag, name] : kBase)
    if (isa.empty() && has_flag(flags, flag)) isa = name;
  if (isa.empty()) isa = "baseline";
  for (const auto& [flag, name] : kExtras)
    if (has_flag(flags, flag)) isa.append("+").append(name);
  return isa;
}

}  // namespace corelane::drivers::virtual_npu
