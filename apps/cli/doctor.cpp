// `corelane doctor`: checks the machine, the installation, the cache folder, a device and
// optionally a program file; each failed check comes with its remedy. Exit code 1 where one failed.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/trust/environment_switch.h"
#include "cli/command.h"
#include "corelane/base/cpus.h"
#include "corelane/base/file.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/program/program_file.h"
#include "corelane/tensor/convert.h"

namespace corelane::cli {
namespace {

/// The checks in order; one that is not ok makes the command fail.
struct Report {
  Json checks = Json::array();
  bool failed = false;
  void add(const std::string& name, bool ok, const std::string& found,
           const std::string& remedy = {}) {
    Json j{{"check", name}, {"ok", ok}, {"found", found}};
    if (!ok && !remedy.empty()) j["remedy"] = remedy;
    failed = failed || !ok;
    checks.push_back(std::move(j));
  }
};

/// The first value of a key in /proc/cpuinfo; empty where this kind of CPU has no such line.
std::string cpu_field(const std::string& key) {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) == 0) {
      const auto colon = line.find(':');
      return colon == std::string::npos ? "" : line.substr(std::min(colon + 2, line.size()));
    }
  }
  return {};
}

/// The instruction sets of this CPU that decide which code the kernels and the engine use.
std::string cpu_features() {
  static const std::set<std::string> kShown{
      "sse4_2",   "avx2",  "avx512f", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_int8",
      "amx_bf16", "asimd", "asimddp", "i8mm",        "bf16",        "sve",      "fphp"};
  // x86 calls the line "flags", ARM "Features".
  std::string flags = cpu_field("flags");
  if (flags.empty()) flags = cpu_field("Features");
  std::istringstream in(flags);
  std::string found;
  for (std::string word; in >> word;)
    if (kShown.count(word) != 0) found += word + " ";
  return found;
}

void check_machine(Report& report) {
  report.add("cpu", true,
             fmt::format("{}, {} processors, {} of them for this process", cpu_field("model name"),
                         sysconf(_SC_NPROCESSORS_ONLN), usable_cpus()));
  report.add("cpu features", true, cpu_features());
  report.add("conversion kernels", true, std::string(convert_isa()));
  const auto pages = sysconf(_SC_AVPHYS_PAGES);
  const auto bytes =
      static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  report.add("free memory", bytes > (256ULL << 20), human_bytes(bytes),
             "free at least 256 MiB: models are compiled in memory");
}

/// Makes the folder where it is missing: the first compile would do so too.
void check_folder(Report& report, const std::string& name, const std::filesystem::path& path,
                  const std::string& variable) {
  std::error_code ec;
  std::filesystem::create_directories(path, ec);
  std::error_code none;
  const bool folder = std::filesystem::is_directory(path, none);
  // Asked of the system, which knows of read-only mounts and access lists.
  const bool ok = folder && ::access(path.c_str(), W_OK) == 0;
  const std::string found = ec ? fmt::format("{}: {}", path.string(), ec.message()) : path.string();
  report.add(name, ok, found,
             folder ? fmt::format("make it writable, or set {}", variable)
                    : fmt::format("set {} to a folder that can be made", variable));
}

void check_cache(Report& report) {
  static constinit EnvironmentSwitch enabled{"CORELANE_CACHE", true};
  if (enabled.on())
    check_folder(report, "cache folder", cache_directory(), "CORELANE_CACHE_DIR");
  else
    report.add("cache folder", true, "not used: CORELANE_CACHE=0 switches the compile cache off");
}

/// What to do where no driver was found for `kind`.
std::string driver_remedy(const std::string& kind, const std::string& source) {
  const auto usual = device::parse_device_spec(device::default_device());
  if (usual && usual->kind == kind) {  // Every installation has it.
    return fmt::format(
        "the installation lacks libcorelane_{}.so: install again, or name its folder in "
        "CORELANE_DRIVER_PATH",
        kind);
  }
  std::string kinds;
  for (const auto& driver : device::list_drivers())
    kinds += (kinds.empty() ? "" : ", ") + driver.kind;
  return fmt::format("correct {}: there are {} (`corelane devices` has examples)", source, kinds);
}

/// By the failure's code, since the message only says what happened. `spec` as given by --device.
std::string device_remedy(const Status& problem, const std::string& spec) {
  const std::string source = spec.empty() ? "CORELANE_DEVICE" : "--device";
  const char* environment = ::secure_getenv("CORELANE_DEVICE");
  const std::string text = !spec.empty()            ? spec
                           : environment != nullptr ? environment
                                                    : device::default_device();
  const auto parsed = device::parse_device_spec(text);
  const std::string kind = parsed ? parsed->kind : text;
  std::string origin;
  for (const auto& driver : device::list_drivers())
    if (driver.kind == kind && driver.origin != "built in") origin = driver.origin;
  switch (problem.code()) {
    case Code::kInvalidArgument:
      return fmt::format("correct {}, as the message says", source);
    case Code::kNotFound:
      return driver_remedy(kind, source);
    case Code::kVersionMismatch:
      return "install library and driver from one build, and empty CORELANE_DRIVER_PATH of others";
    case Code::kIo:
      if (origin.empty()) return "install what the message names, or choose another --device";
      return fmt::format(
          "`ldd {}` names what is missing: install that; engine libraries belong into engine/ "
          "beside it, where `cmake --install` puts them",
          origin);
    case Code::kBusy:
      return "end the process that holds the device, or wait for it";
    default:
      return "see the message; `corelane devices` lists what else can be opened";
  }
}

/// It serves the networks that the first engine refuses or gets wrong, so a device is opened for
/// it.
void check_second_engine(Report& report, const std::string& kind, const std::string& engine) {
  auto dev = device::open_device(fmt::format("{}?engine={}", kind, engine));
  report.add("second engine", dev.has_value(),
             dev ? (*dev)->info().engine : dev.error().to_string(),
             fmt::format("install {}; without it networks that need it are refused", engine));
}

/// Opens the device, which loads its engine: the most likely thing to be missing. False where it
/// does not open.
bool check_device(Report& report, const std::string& spec) {
  auto dev = device::open_device(spec);
  if (!dev) {
    report.add("device", false, dev.error().to_string(), device_remedy(dev.error(), spec));
    return false;
  }
  const auto& info = (*dev)->info();
  report.add("device", (*dev)->health() == device::Health::kGood,
             fmt::format("{} with {} cores", info.instance, info.cores.size()),
             "open it again; a lost device comes back after a reset");
  report.add("engine", true, fmt::format("{} ({})", info.engine, info.isa));
  if (info.engines.size() > 1) check_second_engine(report, info.kind, info.engines[1]);
  return true;
}

std::string program_remedy(const Status& problem) {
  switch (problem.code()) {
    case Code::kNotFound:
      return "give the path of a file that is there; corelane compile makes one of an ONNX model";
    case Code::kIo:
      return "give a file that can be read, or make it readable";
    case Code::kForeignImage:
      return "compile the ONNX model it was made of: corelane compile model.onnx -o model.rknn; on "
             "a "
             "board choose --device rknn";
    case Code::kOutOfMemory:
      return "free memory, or compile a smaller batch: corelane compile --batch";
    default:
      return "compile it again: corelane compile model.onnx -o model.rknn";
  }
}

/// `device`: whether there is one to load it on.
void check_program(Report& report, const std::string& path, const std::string& spec, bool device) {
  auto file = ProgramFile::open(path, Verify::kEverything);
  if (!file) {
    report.add("program", false, file.error().to_string(), program_remedy(file.error()));
    return;
  }
  const auto& d = (*file)->description();
  const std::string current = fmt::format("corelane {}", version());
  report.add("program", true, fmt::format("{}: intact, written by {}", path, d.compiler_version));
  report.add("program version", d.compiler_version == current,
             fmt::format("{} here, {} in the file", current, d.compiler_version),
             "it still runs; compile it again to get this version's rewrites");
  if (!device) return;  // Its check has the remedy.
  LoadOptions options;
  options.device = spec;
  // The file itself is on trial, not an earlier run of it.
  options.cache = false;
  auto program = Program::load(path, options);
  if (!program) {
    report.add("program loads", false, program.error().to_string(),
               program_remedy(program.error()));
    return;
  }
  report.add("program loads", true, program->device()->info().instance);
  // The first context prepares the network: before that no engine has it.
  const auto context = program->new_context();
  report.add("program's engine", context.has_value(),
             context ? engine_text(program->engine()) : context.error().to_string(),
             context ? std::string() : program_remedy(context.error()));
  bool has = false;
  for (const auto& s : (*file)->segments()) has = has || s.kind == SegmentKind::kPrecompiled;
  if (has) {
    report.add(
        "pre-compiled form", program->precompiled(),
        program->precompiled() ? "fits this engine and CPU" : "made for another engine or CPU",
        "compile with --precompile on this machine to load faster");
  }
}

/// GGML_BACKEND_PATH, else where the plugin is installed: beside the library.
std::string backend_plugin_path() {
  if (const char* given = ::secure_getenv("GGML_BACKEND_PATH"); given != nullptr && *given != '\0')
    return given;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&version), &info) == 0) return {};
  const auto beside = std::filesystem::path(info.dli_fname).parent_path() / "libggml-rknn.so";
  std::error_code none;
  return std::filesystem::exists(beside, none) ? beside.string() : std::string();
}

/// The backend for llama.cpp and whisper.cpp where there is one, and the host among the system's
/// libraries. Neither is ever closed: libraries of hosts start threads.
void check_backend_plugin(Report& report) {
  const std::string path = backend_plugin_path();
  if (path.empty()) return;
  void* const plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    const char* why = dlerror();
    report.add("ggml plugin", false, why != nullptr ? why : path,
               "set GGML_BACKEND_PATH to the absolute path of libggml-rknn.so, or unset it");
    return;
  }
  const auto takes =
      reinterpret_cast<bool (*)(const char*)>(dlsym(plugin, "ggml_backend_rknn_takes_host"));
  report.add("ggml plugin", true, takes != nullptr ? path : path + ", of another backend");
  void* const host = dlopen("libggml-base.so.0", RTLD_NOW | RTLD_LOCAL);
  const auto of_host =
      host == nullptr ? nullptr : reinterpret_cast<const char* (*)()>(dlsym(host, "ggml_version"));
  if (takes == nullptr || of_host == nullptr) return;
  const std::string found = of_host();
  report.add("ggml host", takes(found.c_str()), fmt::format("libggml-base.so.0 of ggml {}", found),
             "the plugin refuses this release: docs/apis/ggml.md lists those that it takes; "
             "GGML_RKNN_ANY_VERSION=1 tries the nearest layout, and may crash");
}

}  // namespace

Action add_doctor(CLI::App& parent, Global& global) {
  auto* app = parent.add_subcommand("doctor", "Check machine, engine, folders and a program");
  auto model = std::make_shared<std::string>();
  auto spec = std::make_shared<std::string>();
  app->add_option("model", *model, "Program file to check as well");
  app->add_option("-d,--device", *spec, "Device to check");
  return [&global, model, spec]() -> Result<int> {
    Report report;
    report.add("corelane", std::string(version()) == CORELANE_VERSION_STRING,
               fmt::format("library {}, program {}", version(), CORELANE_VERSION_STRING),
               "library and program are of different builds: install both from one");
    check_machine(report);
    check_cache(report);
    const bool device = check_device(report, *spec);
    check_backend_plugin(report);
    if (!model->empty()) check_program(report, *model, *spec, device);
    // The same checks as in the JSON, each remedy under the check that failed.
    std::string text;
    for (const auto& c : report.checks) {
      text += fmt::format("{:<5} {:<20} {}\n", c["ok"].get<bool>() ? "ok" : "FAIL",
                          c["check"].get<std::string>(), shown(c["found"]));
      if (c.contains("remedy")) text += "      -> " + shown(c["remedy"]) + "\n";
    }
    print(global, {{"ok", !report.failed}, {"checks", report.checks}}, text);
    return report.failed ? kExitCheckFailed : kExitOk;
  };
}

}  // namespace corelane::cli
