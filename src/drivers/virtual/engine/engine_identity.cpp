#include "drivers/virtual/engine/engine_identity.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <openvino/core/version.hpp>
#include <utility>

#include "base/leaked.h"

namespace corelane::drivers::virtual_npu {
namespace {

/// The flags of the first CPU: "flags" on x86, "Features" on ARM. Empty where there is no /proc.
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

/// "unknown" where the library has no number.
const std::string& engine_build() {
  static Leaked<const std::string> build([] {
    const char* number = ov::get_openvino_version().buildNumber;
    return std::string(number == nullptr ? "unknown" : number);
  }());
  return *build;
}

const std::string& engine_version() {
  static Leaked<const std::string> version(engine_build().substr(0, engine_build().find('-')));
  return *version;
}

const std::string& engine_isa() {
  static Leaked<const std::string> isa(isa_from_flags(read_cpu_flags()));
  return *isa;
}

std::string isa_from_flags(std::string_view flags) {
  /// The kernel's word and ours; of the first list the best one counts.
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
  const std::string words = fmt::format(" {} ", flags);
  const auto has = [&](std::string_view flag) {
    return words.find(fmt::format(" {} ", flag)) != std::string::npos;
  };
  std::string isa;
  for (const auto& [flag, name] : kBase)
    if (isa.empty() && has(flag)) isa = name;
  if (isa.empty()) isa = "baseline";
  for (const auto& [flag, name] : kExtras)
    if (has(flag)) isa.append("+").append(name);
  return isa;
}

}  // namespace corelane::drivers::virtual_npu
