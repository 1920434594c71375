#include "device/registry/driver_loader.h"

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <string>
#include <system_error>

#include "base/guard.h"
#include "base/leaked.h"
#include "base/sync.h"
#include "base/text_parts.h"
#include "base/trust/file_names.h"
#include "base/trust/secure_environment.h"
#include "corelane/base/api.h"
#include "corelane/base/file.h"

namespace corelane::device {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kPrefix = "libcorelane_";
constexpr std::string_view kSuffix = ".so";
constexpr const char* kFolders = "CORELANE_DRIVER_PATH";

/// The modules that are open, by kind and the folders that were named: each device of each session
/// asks for its module, and looking through the folders takes longer than the rest of opening it.
class OpenModules {
 public:
  const DriverModule* find(const std::string& key) const {
    const MutexLock lock(mutex_);
    const auto found = modules_.find(key);
    return found == modules_.end() ? nullptr : found->second;
  }
  void add(const std::string& key, const DriverModule* module) {
    const MutexLock lock(mutex_);
    modules_.emplace(key, module);
  }

 private:
  mutable Mutex mutex_{LockRank::kLeaf};
  std::map<std::string, const DriverModule*> modules_ CORELANE_GUARDED_BY(mutex_);
};

std::string joined(const std::vector<fs::path>& folders) {
  std::string text;
  for (const fs::path& folder : folders) text += (text.empty() ? "" : ", ") + folder.string();
  return text;
}

/// What is wrong with what a driver says of itself; empty where nothing is.
std::string slip_of(const DriverDescription& driver) {
  if (driver.engine_only) return {};
  if (driver.chips.empty() && driver.most_generic_cores == 0)
    return "it describes no chip and no generic cores";
  if (driver.most_generic_cores > CoreSet::kMaxCores)
    return fmt::format("it describes up to {} generic cores; a device has up to {}",
                       driver.most_generic_cores, CoreSet::kMaxCores);
  for (const ChipRow& chip : driver.chips)
    if (chip.cores == 0 || chip.cores > CoreSet::kMaxCores)
      return fmt::format("its chip '{}' has {} cores; a device has 1 to {}", chip.name, chip.cores,
                         CoreSet::kMaxCores);
  for (const FileMagic& file : driver.files)
    if (file.bytes.empty())
      return fmt::format("it does not say how files of kind '{}' begin, so every file would be one",
                         file.kind);
  return {};
}

Status faulty_module(const fs::path& path, std::string_view slip) {
  return error(Code::kIo,
               "driver '{}' has a mistake: {}; install another version of it, or remove the file",
               path.string(), slip);
}

Result<const DriverModule*> open_module(const fs::path& path, std::string_view kind) {
  // RTLD_LOCAL: symbols of the driver's libraries must not meet those of the program. RTLD_NOW: a
  // missing one is found here and not in a job.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return error(Code::kIo,
                 "driver '{}' cannot be opened: {}; check that the libraries it needs are "
                 "installed (corelane doctor)",
                 path.string(), reason == nullptr ? "no reason given" : reason);
  }
  void* symbol = dlsym(handle, kDriverModuleSymbol);
  if (symbol == nullptr) {
    dlclose(handle);
    return error(Code::kIo, "'{}' is not a driver: it does not export {}", path.string(),
                 kDriverModuleSymbol);
  }
  // What it throws would end the program, or its list of all drivers.
  auto module = no_throw("driver '" + path.string() + "'", [&]() -> Result<const DriverModule*> {
    const DriverModule* found = reinterpret_cast<DriverModuleEntry>(symbol)();
    CORELANE_TRY(check_module(found, path, kind));
    return found;
  });
  if (!module) dlclose(handle);
  return module;
}

/// Folders in order, each once: CORELANE_DRIVER_PATH, then beside the library.
std::vector<fs::path> driver_folders() {
  std::vector<fs::path> folders;
  const auto add = [&](const fs::path& folder) {
    if (std::find(folders.begin(), folders.end(), folder) == folders.end())
      folders.push_back(folder);
  };
  if (const char* list = environment(kFolders)) {
    static_cast<void>(for_each_part(list, ':', [&](std::string_view folder) -> Status {
      if (!folder.empty()) add(folder);
      return {};
    }));
  }
  // Beside the library, as it is installed, and as it is built. A folder for each interface: those
  // of another version may be installed, too.
  const fs::path own = own_directory();
  const fs::path interface =
      fmt::format("corelane/{}.{}", CORELANE_VERSION_MAJOR, CORELANE_VERSION_MINOR);
  add(own / interface);
  add((own / ".." / "lib" / interface).lexically_normal());
  add(own / "corelane");
  add((own / ".." / "lib" / "corelane").lexically_normal());
  add(own);
  return folders;
}

}  // namespace

Status check_module(const DriverModule* module, const fs::path& path, std::string_view kind) {
  // Before anything else of the module is called: objects cross its border by C++ types.
  const char* build = module == nullptr ? nullptr : module->build;
  if (build == nullptr || std::string_view(build) != CORELANE_DRIVER_BUILD)
    return error(Code::kVersionMismatch,
                 "driver '{}' was built as '{}', this library as '{}'; install both from one build",
                 path.string(), build == nullptr ? "none" : build, CORELANE_DRIVER_BUILD);
  if (module->describe == nullptr) return faulty_module(path, "its module has no describe()");
  const DriverDescription& driver = module->describe();
  if (driver.kind != kind)
    return error(Code::kIo, "driver '{}' is for devices '{}', not '{}'; rename the file",
                 path.string(), driver.kind, kind);
  const bool has_engine = module->open_engine != nullptr;
  if (has_engine == (module->open_device != nullptr))
    return faulty_module(path, fmt::format("its module has {} of open_engine() and open_device(), "
                                           "and should have one",
                                           has_engine ? "both" : "none"));
  if (const std::string slip = slip_of(driver); !slip.empty()) return faulty_module(path, slip);
  return {};
}

std::vector<FoundModule> find_modules() {
  std::vector<FoundModule> found;
  for (const fs::path& folder : driver_folders()) {
    for (const std::string& name : file_names(folder)) {
      if (name.size() <= kPrefix.size() + kSuffix.size() || !name.starts_with(kPrefix) ||
          !name.ends_with(kSuffix))
        continue;
      std::string kind = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
      const bool known = std::any_of(found.begin(), found.end(),
                                     [&](const FoundModule& m) { return m.kind == kind; });
      if (!known) found.push_back({std::move(kind), folder / name});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const FoundModule& a, const FoundModule& b) { return a.kind < b.kind; });
  return found;
}

Result<const DriverModule*> load_module(std::string_view kind) {
  static Leaked<OpenModules> open_modules;
  const std::string key = fmt::format("{}:{}", kind, environment_text(kFolders));
  if (const DriverModule* const module = open_modules->find(key)) return module;
  const std::vector<fs::path> folders = driver_folders();
  for (const fs::path& folder : folders) {
    const fs::path path = folder / fmt::format("{}{}{}", kPrefix, kind, kSuffix);
    std::error_code ignored;
    if (!fs::exists(path, ignored)) continue;
    CORELANE_ASSIGN(const DriverModule* const module, open_module(path, kind));
    open_modules->add(key, module);
    return module;
  }
  return error(Code::kNotFound, "no module {}{}{} in {}", kPrefix, kind, kSuffix, joined(folders));
}

}  // namespace corelane::device
