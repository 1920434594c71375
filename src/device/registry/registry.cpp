#include "corelane/device/registry.h"

#include <algorithm>
#include <condition_variable>

#include "base/fork.h"
#include "base/guard.h"
#include "base/nearest_name.h"
#include "base/sync.h"
#include "base/trust/secure_environment.h"
#include "corelane/base/log.h"
#include "device/registry/device_profile.h"
#include "device/registry/device_wrappers.h"
#include "device/registry/driver_loader.h"
#include "device/registry/driver_table.h"
#include "device/registry/lane_text.h"

namespace corelane::device {
namespace {

std::string known_kinds() {
  std::string text;
  for (const DriverInfo& driver : list_drivers()) text += (text.empty() ? "" : ", ") + driver.kind;
  return text.empty() ? "none" : text;
}

const DriverRow* find_row(std::string_view kind) {
  for (const DriverRow& row : driver_table())
    if (row.describe().kind == kind) return &row;
  return nullptr;
}

/// The end of a message about a text that begins with `kind`, which no driver has: what was meant,
/// where that can be told. A chip alone means one of the default device.
std::string advice_on(const std::string& kind) {
  std::vector<std::string> names;
  for (const DriverInfo& driver : list_drivers()) names.push_back(driver.kind);
  const std::size_t kinds = names.size();
  if (const DriverRow* row = find_row(default_kind()))
    for (const ChipRow& chip : row->describe().chips) names.push_back(chip.name);
  const std::string nearest = nearest_name(kind, names);
  if (nearest.empty())
    return "; name one of these kinds, or the module's folder in CORELANE_DRIVER_PATH";
  const bool is_chip = std::find(names.begin() + kinds, names.end(), nearest) != names.end();
  return fmt::format("; did you mean '{}{}{}'?", is_chip ? default_kind() : "", is_chip ? ":" : "",
                     nearest);
}

Result<const DriverModule*> find_driver(const std::string& kind) {
  const DriverRow* row = find_row(kind);
  if (row != nullptr && row->module != nullptr) return &row->module();
  auto module = load_module(kind);
  if (module || module.error().code() != Code::kNotFound) return module;
  return error(Code::kNotFound, "no driver for devices '{}'; known kinds: {}; {}{}", kind,
               known_kinds(), module.error().message(), advice_on(kind));
}

/// The description of a driver of this tree is built in, even where its module is missing.
Result<const DriverDescription*> find_description(const std::string& kind) {
  if (const DriverRow* row = find_row(kind)) return &row->describe();
  CORELANE_ASSIGN(const DriverModule* module, find_driver(kind));
  return no_throw("the description of devices '" + kind + "'",
                  [&]() -> Result<const DriverDescription*> { return &module->describe(); });
}

/// All drivers that are here, by kind; `description` is null where the module cannot be loaded.
struct FoundDriver {
  std::string kind;
  std::string origin;
  const DriverDescription* description;
};
std::vector<FoundDriver> find_drivers() {
  std::vector<FoundDriver> found;
  for (const DriverRow& row : driver_table())
    if (row.module != nullptr) found.push_back({row.describe().kind, "built in", &row.describe()});
  for (const FoundModule& module : find_modules()) {
    const auto same = [&](const FoundDriver& d) { return d.kind == module.kind; };
    if (std::any_of(found.begin(), found.end(), same)) continue;
    // A module that cannot be loaded is listed all the same, so that users see that it is there.
    const auto description = find_description(module.kind);
    if (description && (*description)->engine_only) continue;
    found.push_back({module.kind, module.path.string(), description ? *description : nullptr});
  }
  std::sort(found.begin(), found.end(),
            [](const FoundDriver& a, const FoundDriver& b) { return a.kind < b.kind; });
  return found;
}

/// "*" among the image kinds becomes the kinds of files of all drivers.
void fill_image_kinds(std::vector<std::string>& kinds) {
  const auto star = std::find(kinds.begin(), kinds.end(), "*");
  if (star == kinds.end()) return;
  kinds.erase(star);
  for (const FileMagic& file : list_file_magics())
    if (std::find(kinds.begin(), kinds.end(), file.kind) == kinds.end()) kinds.push_back(file.kind);
}

/// A module has a copy of base of its own: it logs through this library's.
HostServices host_services() {
  return {[](log::Level level, std::string_view part, std::string_view text) {
            if (log::enabled(level)) log::write(level, part, text);
          },
          log::level()};
}

Result<FaultPlan> environment_faults() {
  const char* text = environment("CORELANE_FAULTS");
  if (text == nullptr || *text == '\0') return FaultPlan{};
  auto plan = parse_faults(text);
  if (!plan) return error(plan.error().wrap("CORELANE_FAULTS cannot be used"));
  return plan;
}

/// A driver that succeeds and gives a null pointer has failed.
Result<std::shared_ptr<Device>> checked(Result<std::shared_ptr<Device>> opened,
                                        const OpenRequest& request) {
  if (!opened || *opened != nullptr) return opened;
  return error(Code::kIo,
               "the driver of devices '{}' says that it opened {} and gave none; install another "
               "version of it",
               request.spec.kind, request.info.instance);
}

/// A driver may come from outside the tree, and throw.
Result<std::shared_ptr<Device>> open_driver(const OpenRequest& request) {
  return no_throw("opening " + request.info.instance, [&]() -> Result<std::shared_ptr<Device>> {
    CORELANE_ASSIGN(const DriverModule* driver, find_driver(request.spec.kind));
    if (driver->open_device != nullptr) return checked(driver->open_device(request), request);
    LaneOptions lanes;
    OpenRequest own = request;
    CORELANE_TRY(take_lane_options(own.spec, lanes));
    CORELANE_ASSIGN(OpenedEngine opened, driver->open_engine(own));
    lanes.clock = request.clock;
    lanes.fault_point = request.fault_point;
    return make_laned_device(std::move(opened.info), std::move(opened.engine), lanes);
  });
}

/// The device without the validating wrapper.
Result<std::shared_ptr<Device>> open_bare(const DriverDescription& driver, const DeviceSpec& spec,
                                          const OpenOptions& options) {
  OpenRequest request{spec, describe(driver, spec), options.clock, options.fault_point,
                      host_services()};
  fill_image_kinds(request.info.capabilities.image_kinds);
  FaultPlan plan;
  // A fault point that a test gave replaces the variable's faults altogether.
  if (request.fault_point == nullptr) {
    CORELANE_ASSIGN(plan, environment_faults());
    if (plan.at_run() > 0) request.fault_point = planned_faults(plan);
  }
  if (request.clock == nullptr) request.clock = real_clock();
  CORELANE_ASSIGN(std::shared_ptr<Device> device, open_driver(request));
  if (plan.short_result + plan.flip + plan.oom > 0) device = wrap_faulty(std::move(device), plan);
  return device;
}

/// The shared devices of this process, by complete text. The threads of devices stay in the parent:
/// a forked child opens its own.
class SharedDevices {
 public:
  /// Devices of different texts open at the same time; of callers with the same text one opens it,
  /// the others wait. Where that fails, each of them tries in turn.
  template <class Open>
  Result<std::shared_ptr<Device>> get(const std::string& text, bool validating, Open&& open) {
    std::shared_ptr<Device> held;  // Goes after the lock, also where the memory runs out below.
    MutexLock lock(mutex_);
    std::erase_if(by_text_, [](const auto& entry) {
      return !entry.second.opening && entry.second.bare.expired();
    });
    while (by_text_[text].opening) opened_.wait(lock.native());
    std::shared_ptr<Device> bare = by_text_[text].bare.lock();
    if (bare == nullptr) {
      by_text_[text].opening = true;
      lock.unlock();
      // The others that wait for this one go on, whatever becomes of it.
      auto result = no_throw("opening a device", open);
      lock.lock();
      by_text_[text].opening = false;
      opened_.notify_all();
      CORELANE_ASSIGN(bare, std::move(result));
      by_text_[text].bare = bare;
    }
    held = bare;
    if (!validating) return bare;
    Entry& entry = by_text_[text];
    if (auto device = entry.validating.lock()) return device;
    auto device = wrap_validating(std::move(bare));
    entry.validating = device;
    return device;
  }

 private:
  /// An executable keeps the bare device alive and not the wrapper, so each is remembered.
  struct Entry {
    bool opening = false;
    std::weak_ptr<Device> bare;
    std::weak_ptr<Device> validating;
  };
  Mutex mutex_{LockRank::kLeaf};
  std::condition_variable opened_;
  std::map<std::string, Entry> by_text_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace

std::string default_device() {
  const DriverRow* row = find_row(default_kind());
  return row == nullptr ? default_kind() : example_texts(row->describe()).front();
}

namespace {

/// A text that stands for a device here, its profile filled in.
struct KnownDevice {
  const DriverDescription* driver;
  DeviceSpec spec;
};
Result<KnownDevice> find_device(std::string_view text) {
  CORELANE_ASSIGN(DeviceSpec spec, parse_device_spec(text));
  CORELANE_ASSIGN(const DriverDescription* driver, find_description(spec.kind));
  if (driver->engine_only)
    return error(Code::kNotFound, "'{}' is an engine, not a device; known kinds: {}", spec.kind,
                 known_kinds());
  CORELANE_ASSIGN(spec, complete(*driver, std::move(spec)));
  return KnownDevice{driver, std::move(spec)};
}

/// The device of `text`; of an empty one, what the environment names, else the default.
Result<KnownDevice> choose_device(const std::string& text) {
  if (!text.empty()) return find_device(text);
  const std::string named = environment_text("CORELANE_DEVICE");
  if (named.empty()) return find_device(default_device());
  auto found = find_device(named);
  if (!found) return error(found.error().wrap("CORELANE_DEVICE cannot be used"));
  return found;
}

Result<std::shared_ptr<Device>> open_text(const std::string& text, const OpenOptions& options) {
  CORELANE_ASSIGN(const KnownDevice known, choose_device(text));
  // A clock or a fault point belongs to one caller, so the device is not shared.
  const bool own =
      options.own_instance || options.clock != nullptr || options.fault_point != nullptr;
  const auto open = [&] { return open_bare(*known.driver, known.spec, options); };
  if (!own) return per_process<SharedDevices>().get(known.spec.to_string(), options.validate, open);
  CORELANE_ASSIGN(std::shared_ptr<Device> device, open());
  return options.validate ? wrap_validating(std::move(device)) : device;
}

}  // namespace

Result<std::shared_ptr<Device>> open_device(std::string_view text, const OpenOptions& options) {
  return no_throw("opening a device", [&] { return open_text(std::string(text), options); });
}

std::vector<DriverInfo> list_drivers() {
  std::vector<DriverInfo> drivers;
  for (const FoundDriver& found : find_drivers())
    drivers.push_back({found.kind, found.origin,
                       found.description == nullptr ? std::vector{found.kind}
                                                    : example_texts(*found.description)});
  return drivers;
}

std::vector<FileMagic> list_file_magics() {
  std::vector<FileMagic> files;
  for (const FoundDriver& found : find_drivers())
    if (found.description != nullptr)
      files.insert(files.end(), found.description->files.begin(), found.description->files.end());
  return files;
}

}  // namespace corelane::device
