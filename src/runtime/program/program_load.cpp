#include "runtime/program/program_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/deadline.h"
#include "base/guard.h"
#include "base/process/heap.h"
#include "corelane/base/file.h"
#include "corelane/base/log.h"
#include "corelane/device/host_operator.h"
#include "corelane/device/registry.h"
#include "corelane/onnx/onnx_import.h"
#include "corelane/runtime/file_kind.h"
#include "onnx/onnx_import_from.h"
#include "runtime/chain/chain_routes.h"
#include "runtime/program/chain_load.h"
#include "runtime/program/compile_cache.h"
#include "runtime/program/late_ends.h"
#include "runtime/program/load_limits.h"
#include "runtime/program/open_files.h"

namespace corelane::runtime {
namespace fs = std::filesystem;
namespace {

/// The image kind of devices that open program files themselves.
constexpr const char* kWholeProgram = "program";

bool takes(const device::DeviceInfo& info, std::string_view kind) {
  const auto& kinds = info.capabilities.image_kinds;
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

device::CoreSet default_cores(const device::DeviceInfo& info, std::uint32_t wanted) {
  // Where the device cannot meet the wish, the program runs on one core.
  if (wanted <= 1 || !info.capabilities.multi_core_jobs) return {};
  return device::CoreSet::any(std::min<std::size_t>(wanted, info.cores.size()));
}

/// The sizes that the load options name, of those that the program serves.
Status take_batch_range(const std::optional<BatchRange>& wanted, ProgramDescription& description) {
  if (!wanted) return {};
  const auto& own = description.batch_range;
  if (own && (wanted->low < own->low || wanted->high > own->high)) {
    return error(Code::kInvalidArgument,
                 "batch range {} to {}: program '{}' was compiled for {} to {}", wanted->low,
                 wanted->high, description.name, own->low, own->high);
  }
  description.batch_range = wanted;
  const std::string name = fmt::format("program '{}'", description.name);
  CORELANE_TRY(check_states(description).wrap(name));
  return check_batch_range(description).wrap(name);
}

bool times_engines(const LoadOptions& options) { return engines_are_timed(options.time_engines); }

/// What the caller gives, and what is known of the program from earlier.
struct Wishes {
  const LoadOptions& options;
  /// Which engine was found faster.
  std::optional<EngineVerdict> verdict = {};
};

/// Prepares `source` on the device; the state is complete after it.
Result<std::shared_ptr<ProgramState>> make_state(std::shared_ptr<device::Device> device,
                                                 ProgramDescription description, ImageSource source,
                                                 const Wishes& wishes,
                                                 std::shared_ptr<onnx::HeldModel> read = nullptr) {
  const LoadOptions& options = wishes.options;
  CORELANE_TRY(take_batch_range(options.batch_range, description));
  CORELANE_ASSIGN(const auto work, check_memory(source, description, options, std::move(read)));
  source.steps = work.steps;
  CORELANE_TRY(check_deadline(options.import.deadline, "the device's engine prepares the network"));
  const std::shared_ptr<ProgramState> state(new ProgramState, &LateEnds::end);
  state->device = std::move(device);
  state->description = std::move(description);
  state->work = work;
  state->host_operators = options.host_operators != nullptr
                              ? options.host_operators
                              : std::make_shared<device::HostOperatorTable>();
  const device::DeviceInfo& info = state->device->info();
  state->default_cores = default_cores(info, state->description.cores);
  CORELANE_ASSIGN(auto prepare, prepare_options(info, state->description, options));
  prepare.host_operators = state->host_operators;
  const std::string timeout_option =
      options.timeout_option.empty() ? "RunOptions::timeout" : options.timeout_option;
  CORELANE_ASSIGN(state->queue, state->device->make_queue(
                                    {state->description.name, 0, timeout_option, options.weight}));
  state->executables.emplace(state->device, std::move(source), std::move(prepare),
                             state->description);
  if (times_engines(options)) state->executables->let_engines_change(wishes.verdict);
  // Errors of the engine surface here, where the program is loaded, and not in the first run.
  CORELANE_TRY(state->executables->prepare_first());
  return state;
}

/// The description of an image that only the device can read.
ProgramDescription described_by(const device::Executable& executable, std::string name) {
  ProgramDescription description;
  description.name = std::move(name);
  const auto entry = [](const TensorDesc& desc) {
    IoEntry e;
    e.desc = desc;
    e.desc.quant = {};
    e.quant = desc.quant;
    if (desc.quant.kind != QuantKind::kNone) e.quant_dtype = desc.dtype;
    e.reported_dtype = desc.dtype;
    return e;
  };
  for (const TensorDesc& d : executable.inputs()) description.inputs.push_back(entry(d));
  for (const TensorDesc& d : executable.outputs()) description.outputs.push_back(entry(d));
  return description;
}

/// A vendor-compiled image: handed over unparsed, described by the executable made of it.
Result<std::shared_ptr<ProgramState>> load_opaque(std::shared_ptr<device::Device> device,
                                                  ByteSpan bytes, const std::string& kind,
                                                  std::shared_ptr<const void> keep_alive,
                                                  std::function<Status()> intact,
                                                  std::optional<ProgramDescription> description,
                                                  const std::string& name, const Wishes& wishes) {
  ImageSource source;
  source.kind = kind;
  source.graph = bytes;
  source.owners = {keep_alive};
  source.intact = intact;
  if (!description) {
    device::PrepareOptions prepare;
    prepare.profile_layers = wishes.options.profile_layers;
    device::Image image;
    image.kind = kind;
    image.bytes = bytes;
    image.keep_alive = std::move(keep_alive);
    image.intact = std::move(intact);
    CORELANE_ASSIGN(const auto probe, device->prepare(image, prepare));
    description = described_by(*probe, name);
    // The device has reported the description itself: nothing to compare.
    source.declares = false;
  }
  return make_state(std::move(device), std::move(*description), std::move(source), wishes);
}

/// A program file, and which of its networks is meant.
struct PartOfFile {
  std::shared_ptr<const ProgramFile> file;
  std::size_t part = 0;
  bool immutable = true;  ///< False: the caller may write to its bytes when all has ended.
  const ProgramDescription& description() const { return file->description(part); }
};

/// What was found out when the part was compiled for such a device.
Result<std::optional<EngineVerdict>> verdict_in(const PartOfFile& of, const LoadOptions& options,
                                                const device::DeviceInfo& info) {
  if (!times_engines(options) || !options.engine.empty()) return std::nullopt;
  CORELANE_ASSIGN(const auto text, of.file->find(SegmentKind::kTrial, trial_tag(info), of.part));
  if (!text) return std::nullopt;
  auto verdict = EngineVerdict::parse(as_string_view(*text));
  if (verdict && std::ranges::find(info.engines, verdict->engine) == info.engines.end())
    verdict.reset();
  return verdict;
}

/// A network as the device's engines take it, on the one that was found faster.
Result<std::shared_ptr<ProgramState>> load_network(const PartOfFile& of,
                                                   const std::shared_ptr<device::Device>& device,
                                                   const ProgramDescription& description,
                                                   const std::string& name, const Wishes& wishes) {
  const device::DeviceInfo& info = device->info();
  const auto load_with = [&](const Wishes& with) -> Result<std::shared_ptr<ProgramState>> {
    CORELANE_TRY(check_deadline(with.options.import.deadline, "the network is checked"));
    CORELANE_ASSIGN(ImageSource source, network_source(of.file, of.part, with.options, info));
    source.immutable = source.immutable && of.immutable;
    return make_state(device, description, std::move(source), with);
  };
  if (wishes.verdict) return load_with(wishes);
  CORELANE_ASSIGN(auto verdict, verdict_in(of, wishes.options, info));
  if (verdict) {
    auto state = load_with({wishes.options, std::move(verdict)});
    if (state || state.error().code() == Code::kTimeout) return state;
    log::debug("runtime", "{} is not loaded as its trial says: {}", name,
               state.error().to_string());
  }
  return load_with(wishes);
}

Result<std::shared_ptr<ProgramState>> load_part(PartOfFile of,
                                                std::shared_ptr<device::Device> device,
                                                const std::string& name, const Wishes& wishes) {
  const device::DeviceInfo& info = device->info();
  ProgramDescription description = of.description();
  auto [file, part, immutable] = std::move(of);
  if (file->is_chain() && part == 0 && !takes(info, kWholeProgram)) {
    CORELANE_TRY(check_deadline(wishes.options.import.deadline, "the parts are checked"));
    CORELANE_ASSIGN(ChainOnDevice on, chain_on(file, std::move(device), wishes.options));
    on.source.immutable = on.source.immutable && immutable;
    for (StageSource& stage : on.source.stages)
      stage.image.immutable = stage.image.immutable && immutable;
    return make_state(std::move(on.device), std::move(description), std::move(on.source), wishes);
  }
  if (takes(info, kChainImage)) {
    return error(Code::kForeignImage,
                 "{}: device '{}' runs networks that were cut into parts, and '{}' is a whole one: "
                 "compile it with --cut, or choose one device",
                 name, info.instance, description.name);
  }
  // Before foreign images: such a device chooses among the segments itself.
  if (takes(info, kWholeProgram)) {
    CORELANE_ASSIGN(file, whole_file(std::move(file), part, wishes.options));
    ImageSource source;
    source.kind = kWholeProgram;
    source.graph = file->bytes();
    source.constants = unchecked_constants(*file);
    source.owners = {file};
    source.immutable = immutable;
    source.intact = [file] { return file->check_unchanged(); };
    return make_state(std::move(device), std::move(description), std::move(source), wishes);
  }
  CORELANE_ASSIGN(const auto foreign, file->find(SegmentKind::kForeign, info.kind, part));
  if (foreign) {
    // Mostly the kind of image is the kind of device; a device with one kind of another name gets
    // that.
    const std::string kind = takes(info, info.kind) || info.capabilities.image_kinds.empty()
                                 ? info.kind
                                 : info.capabilities.image_kinds.front();
    return load_opaque(
        std::move(device), *foreign, kind, file, [file] { return file->check_unchanged(); },
        std::move(description), name, wishes);
  }
  if (!takes(info, "onnx")) {
    return error(
        Code::kForeignImage,
        "{}: device '{}' takes images of kind {} only and the program carries none for it; "
        "attach one (compile --attach {}=FILE) or choose another device",
        name, info.instance, fmt::join(info.capabilities.image_kinds, ", "), info.kind);
  }
  return load_network({std::move(file), part, immutable}, device, description, name, wishes);
}

std::vector<std::string> part_names(const ProgramFile& file) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < file.part_count(); ++i)
    if (!file.description(i).part.empty()) names.push_back(file.description(i).part);
  return names;
}

/// The part that `options` name. Failures of one of several say which.
Result<std::shared_ptr<ProgramState>> load_file(std::shared_ptr<const ProgramFile> file,
                                                std::shared_ptr<device::Device> device,
                                                const std::string& name, const Wishes& wishes,
                                                bool immutable = true) {
  CORELANE_ASSIGN(const std::size_t part, file->find_part(wishes.options.part));
  const std::vector<std::string> names = part_names(*file);
  auto state = load_part({std::move(file), part, immutable}, std::move(device), name, wishes);
  if (state) (*state)->parts = names;
  if (state || names.empty()) return state;
  return error(state.error().wrap(fmt::format("part '{}' of {}", names[part], name)));
}

/// The program file of what was just compiled.
Result<ByteVector> file_of(const ImportedModel& model,
                           const std::vector<device::Executable::Precompiled>& forms) {
  ProgramWriter writer(model.description);
  add_network(writer, model);
  for (const auto& form : forms)
    writer.add_segment(SegmentKind::kPrecompiled, form.tag, form.bytes);
  return writer.finish();
}

/// What the compile cache has of a model.
struct CacheEntry {
  std::optional<CompileCache> cache;  ///< Nothing: the model is loaded past it.
  std::string key;
  std::shared_ptr<const ProgramFile> file;
  std::optional<EngineVerdict> verdict;
};

/// Whatever fails here, for want of memory too, costs the cache alone.
CacheEntry entry_of(const LoadInput& input, onnx::ExternalData& external,
                    const LoadOptions& options, const device::DeviceInfo& info) {
  CacheEntry entry;
  const Status looked = no_throw("looking into the compile cache", [&]() -> Status {
    auto cache = options.cache ? CompileCache::from_environment() : std::nullopt;
    if (!cache) return {};
    // Without a key the model is loaded past the cache; the import says what is wrong.
    auto key = compile_key(input.bytes, external, options, info);
    if (!key) return {};
    entry.file = cache->find(*key);
    if (entry.file != nullptr && times_engines(options))
      entry.verdict = EngineVerdict::parse(cache->note(*key));
    entry.key = std::move(*key);
    entry.cache = std::move(cache);
    return {};
  });
  if (!looked.ok()) log::warn("runtime", "the compile cache is not used: {}", looked.message());
  return entry;
}

/// A model that was just imported, as the device takes it: its network, or a whole program file.
/// `read`: as of import_from().
Result<std::shared_ptr<ProgramState>> load_imported(
    const std::shared_ptr<const ImportedModel>& model, std::shared_ptr<device::Device> device,
    const std::string& name, const LoadOptions& options, std::shared_ptr<onnx::HeldModel> read) {
  if (takes(device->info(), "onnx")) {
    ImageSource source = network_source(model, device->info());
    if (!source.given.empty()) read.reset();  // The device gets another form of it.
    return make_state(std::move(device), model->description, std::move(source), {options},
                      std::move(read));
  }
  CORELANE_ASSIGN(ByteVector bytes, file_of(*model, {}));
  const auto keep = std::make_shared<const ByteVector>(std::move(bytes));
  CORELANE_ASSIGN(auto file, ProgramFile::from_bytes(*keep, keep));
  return load_file(std::move(file), std::move(device), name, {options});
}

void time_engines(ProgramState& state, const LoadOptions& options,
                  std::function<void(const EngineVerdict&)> done) {
  if (times_engines(options)) state.executables->time_engines(std::move(done));
}

using CompiledForms = std::vector<device::Executable::Precompiled>;

/// Writes `file`, an entry of the cache, again with these forms, where it has none yet.
Status write_forms(const CompileCache& cache, const std::string& key, const ProgramFile& file,
                   const CompiledForms& forms) {
  ProgramWriter writer(file.description());
  for (std::size_t i = 0; i < file.segments().size(); ++i) {
    const SegmentInfo& segment = file.segments()[i];
    if (segment.kind == SegmentKind::kPrecompiled) return {};
    CORELANE_ASSIGN(const ByteSpan bytes, file.segment(i));
    writer.add_segment(segment.kind, segment.tag, bytes);
  }
  for (const auto& form : forms)
    writer.add_segment(SegmentKind::kPrecompiled, form.tag, form.bytes);
  CORELANE_ASSIGN(const ByteVector bytes, writer.finish());
  return cache.store(key, bytes);
}

/// Adds the compiled forms of a program to its entry of the cache.
Status add_forms(const CompileCache& cache, const std::string& key, const ExecutableSet& set) {
  if (set.from_precompiled()) return {};  // They come from there.
  // First: an engine without such forms says so at once, and the entry, which may be large, is not
  // read.
  CORELANE_ASSIGN(const CompiledForms forms, set.export_all());
  const std::shared_ptr<const ProgramFile> file = cache.find(key);
  if (file == nullptr) return error(Code::kNotFound, "the cache has the program no longer");
  return write_forms(cache, key, *file, forms);
}

/// The entry of a model that was just imported; null where it cannot be written or is not kept.
std::shared_ptr<const ProgramFile> stored(const CacheEntry& entry, const ImportedModel& model) {
  std::shared_ptr<const ProgramFile> file;
  if (!entry.cache) return file;
  const Status written = no_throw("writing an entry of the compile cache", [&]() -> Status {
    CORELANE_ASSIGN(const ByteVector bytes, file_of(model, {}));
    CORELANE_TRY(entry.cache->store(entry.key, bytes));
    file = entry.cache->find(entry.key);
    return {};
  });
  if (!written.ok())
    log::warn("runtime", "the compiled program is not cached: {}", written.to_string());
  return file;
}

/// The program of an entry that was just written, and in it then what its engine compiles. What
/// cannot be prepared is not worth a file.
Result<std::shared_ptr<ProgramState>> load_stored(const CacheEntry& entry,
                                                  const std::shared_ptr<const ProgramFile>& file,
                                                  std::shared_ptr<device::Device> device,
                                                  const std::string& name,
                                                  const LoadOptions& options) {
  auto state = load_file(file, std::move(device), name, {options});
  if (!state) {
    entry.cache->remove(entry.key);
    return state;
  }
  if (!(*state)->device->info().capabilities.precompiled) return state;
  const auto add = [&]() -> Status {
    CORELANE_ASSIGN(const CompiledForms forms, (*state)->executables->export_all());
    return write_forms(*entry.cache, entry.key, *file, forms);
  };
  const Status added = no_throw("adding compiled forms to an entry of the compile cache", add);
  if (!added.ok() && added.code() != Code::kUnsupported)
    log::warn("runtime", "no pre-compiled form for the cache: {}", added.to_string());
  return state;
}

/// What keeps a verdict beside the entry of the cache, and what the faster engine has compiled in
/// it; empty where there is no cache. Called while `set` lives.
std::function<void(const EngineVerdict&)> verdict_keeper(const CacheEntry& entry,
                                                         const ExecutableSet& set) {
  if (!entry.cache) return {};
  return [cache = *entry.cache, key = entry.key, &set](const EngineVerdict& verdict) {
    Status kept = cache.keep_note(key, verdict.text());
    if (kept.ok()) kept = add_forms(cache, key, set);
    // An engine without compiled forms has nothing more to keep.
    if (!kept.ok() && kept.code() != Code::kUnsupported)
      log::info("runtime", "what was found out of the engines is not kept whole: {}",
                kept.to_string());
  };
}

/// The entry of the cache, on the engine that an earlier process has found faster.
Result<std::shared_ptr<ProgramState>> load_cached(const CacheEntry& entry,
                                                  const std::shared_ptr<device::Device>& device,
                                                  const std::string& name,
                                                  const LoadOptions& options) {
  const auto& engines = device->info().engines;
  const auto& verdict = entry.verdict;
  if (verdict && std::ranges::find(engines, verdict->engine) != engines.end())
    if (auto state = load_file(entry.file, device, name, {options, verdict})) return state;
  return load_file(entry.file, device, name, {options});
}

/// Sizes that the program of the entry does not serve: another import would end likewise.
Status check_sizes(const CacheEntry& entry, const LoadOptions& options) {
  if (!options.batch_range) return {};
  ProgramDescription description = entry.file->description();
  return take_batch_range(options.batch_range, description);
}

/// False for failures that another import of the model would end in as well.
bool is_fault_of_entry(const Status& status) {
  return status.code() != Code::kWrongState && status.code() != Code::kTimeout &&
         status.code() != Code::kOutOfMemory;
}

Result<std::shared_ptr<ProgramState>> load_onnx(const LoadInput& input,
                                                std::shared_ptr<device::Device> device,
                                                const LoadOptions& options) {
  const device::DeviceInfo& info = device->info();
  if (!takes(info, "onnx") && !takes(info, kWholeProgram)) {
    return error(
        Code::kForeignImage,
        "{}: device '{}' takes images of kind {} only, not ONNX; compile the model with the "
        "vendor's tool, or choose another device (CORELANE_DEVICE; `corelane devices` lists them)",
        input.name(), info.instance, fmt::join(info.capabilities.image_kinds, ", "));
  }
  onnx::ExternalData external = onnx::external_data_of(input.path, options.import);
  const CacheEntry entry = entry_of(input, external, options, info);
  if (entry.file != nullptr) {
    CORELANE_TRY(check_sizes(entry, options));
    auto state = load_cached(entry, device, input.name(), options);
    if (state) time_engines(**state, options, verdict_keeper(entry, *(*state)->executables));
    if (state || !is_fault_of_entry(state.error())) return state;
    log::warn("runtime", "the compile cache's entry for {} is not used: {}", input.name(),
              state.error().to_string());
  }
  // Of the bytes that the key is of: the files may be others by now.
  if (input.mapped != nullptr) external.read_model_from(*input.mapped, input.path);
  std::shared_ptr<onnx::HeldModel> read;
  auto imported = onnx::import_from(input.bytes, std::move(external), options.import, read);
  if (!imported)
    return error(input.path.empty() ? imported.error()
                                    : imported.error().wrap(input.path.string()));
  auto model = std::make_shared<const ImportedModel>(std::move(*imported));
  // From its entry, as in later processes: the constants lie in the file then, and not on the heap.
  const auto file = stored(entry, *model);
  if (file != nullptr) {
    model.reset();
    read.reset();
  }
  auto state = file != nullptr ? load_stored(entry, file, std::move(device), input.name(), options)
                               : load_imported(model, std::move(device), input.name(), options,
                                               std::move(read));
  if (state) time_engines(**state, options, verdict_keeper(entry, *(*state)->executables));
  return state;
}

/// For Image::intact, of a file without checksums of its own; nothing for bytes in memory. A file
/// that another one took the place of, or that was removed, stays as it is where it is mapped.
std::function<Status()> unchanged(const LoadInput& input) {
  if (input.mapped == nullptr) return {};
  return [path = fs::absolute(input.path), mapped = input.mapped, sum = crc32c(input.bytes),
          name = input.name()]() -> Status {
    const FileIdentity& was = mapped->identity();
    const auto now = MappedFile::open(path);
    if (!now || now->identity() == was) return {};
    const FileIdentity& is = now->identity();
    if (is.device != was.device || is.inode != was.inode) return {};
    // Copied over itself, or its time was set.
    if (is.size == was.size && crc32c(now->bytes()) == sum) return {};
    return error(Code::kCorrupted,
                 "{} was written to while it is open: it had {} bytes, now it has {}{}; load it "
                 "again, and replace such a file by renaming the new one to its name",
                 name, was.size, is.size, is.size == was.size ? ", which are others" : "");
  };
}

/// The first four, in hexadecimal.
std::string first_bytes(ByteSpan bytes) {
  std::string text;
  for (const std::byte b : bytes.first(std::min<std::size_t>(bytes.size(), 4)))
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", std::to_integer<unsigned>(b));
  return text;
}

/// The first kind of files of a driver that the device takes; "" when it takes none.
std::string taken_kind(const device::DeviceInfo& info, const std::vector<ForeignMagic>& files) {
  for (const ForeignMagic& file : files)
    if (takes(info, file.kind)) return file.kind;
  return {};
}

/// Bytes that are neither a program file nor ONNX: handed over unparsed where the device takes
/// them. A device of opaque images knows its own forms, so bytes of no known kind are left to it as
/// well.
Result<std::shared_ptr<ProgramState>> load_foreign(const LoadInput& input,
                                                   std::shared_ptr<device::Device> device,
                                                   const LoadOptions& options) {
  const device::DeviceInfo& info = device->info();
  const std::vector<ForeignMagic> files = foreign_files();
  const ForeignMagic* const known = find_foreign(input.bytes, files);
  const std::string kind = known != nullptr ? known->kind : taken_kind(info, files);
  if (kind.empty())
    return error(Code::kMalformed,
                 "{} is neither a program file (corelane compile writes one), an ONNX model nor a "
                 "vendor-compiled file, by its first bytes ({})",
                 input.name(), first_bytes(input.bytes));
  if (!takes(info, kind)) {
    // A device that takes the kind looks at the header itself.
    if (known != nullptr) CORELANE_TRY(check_foreign(input.bytes, *known, input.name()));
    return error(
        Code::kForeignImage,
        "{} is compiled by the vendor's tool and opaque to device '{}'; compile the ONNX model it "
        "came from (corelane compile model.onnx), attach this file to that program (--attach "
        "{}=FILE), or run it on its board with the vendor's library (device {})",
        input.name(), info.instance, kind, kind);
  }
  std::shared_ptr<const void> keep_alive = input.keep_alive;
  ByteSpan bytes = input.bytes;
  if (keep_alive == nullptr) {
    // The caller lends the bytes for this call only, and the device keeps them.
    auto copy = std::make_shared<const ByteVector>(bytes.begin(), bytes.end());
    bytes = *copy;
    keep_alive = std::move(copy);
  }
  return load_opaque(std::move(device), bytes, kind, std::move(keep_alive), unchanged(input),
                     std::nullopt, input.path.stem().string(), {options});
}

}  // namespace

std::string LoadInput::name() const {
  if (!path.empty()) return fmt::format("'{}'", path.string());
  return fmt::format("the program of {} bytes in memory", bytes.size());
}

Result<device::PrepareOptions> prepare_options(const device::DeviceInfo& info,
                                               const ProgramDescription& description,
                                               const LoadOptions& options) {
  const device::Capabilities& can = info.capabilities;
  const auto refused = [&](std::string_view what) {
    return error(Code::kUnsupported, "device '{}' cannot {}; load without it, or choose another",
                 info.instance, what);
  };
  if (options.profile_layers && !can.layer_times) return refused("measure layers (profile_layers)");
  if (!options.exposed_values.empty() && takes(info, kChainImage))
    return error(Code::kUnsupported,
                 "'{}' was cut into parts, which cannot expose inner values (exposed_values); load "
                 "the uncut network, or one part (part {}/0)",
                 description.part, description.part);
  if (!options.exposed_values.empty() && !can.exposed_values)
    return refused("expose inner values (exposed_values)");
  if (!description.custom_operators.empty() && !can.host_operators)
    return refused("run the custom operators that the program declares");
  const auto& engines = info.engines;
  if (!options.engine.empty() && std::ranges::find(engines, options.engine) == engines.end())
    return error(
        Code::kInvalidArgument, "engine '{}': device '{}' has {}", options.engine, info.instance,
        engines.empty() ? "one engine alone" : fmt::format("{}", fmt::join(engines, ", ")));
  device::PrepareOptions prepare;
  prepare.engine = options.engine;
  prepare.precision = options.precision;
  prepare.fast_math = options.fast_math;
  prepare.profile_layers = options.profile_layers;
  prepare.exposed_values = options.exposed_values;
  prepare.replicate_limit = options.replicate_limit;
  for (const CustomOperatorDecl& op : description.custom_operators)
    prepare.custom_operators.push_back({op.type, op.domain});
  return prepare;
}

namespace {

Result<std::shared_ptr<ProgramState>> load_bytes(const LoadInput& input,
                                                 const LoadOptions& options) {
  std::shared_ptr<device::Device> device = options.on;
  if (device == nullptr) {
    // The macro is two statements.
    CORELANE_ASSIGN(device, device::open_device(options.device));
  }
  // By the first bytes; names and endings of files say nothing.
  const FileKind kind = detect_file_kind(input.bytes);
  if (kind != FileKind::kProgram && !options.part.empty()) {
    return error(Code::kInvalidArgument,
                 "part '{}' of {} is asked for, which is one network; only program files have "
                 "parts (corelane compile A.onnx B.onnx)",
                 options.part, input.name());
  }
  switch (kind) {
    case FileKind::kProgram: {
      CORELANE_ASSIGN(auto file,
                      input.mapped == nullptr
                          ? ProgramFile::from_bytes(input.bytes, input.keep_alive, options.verify)
                          : open_program_file(input.mapped, input.path, options.verify));
      // The owner of other bytes may give them a new content between two programs.
      const bool immutable = input.mapped != nullptr || input.keep_alive == nullptr;
      auto state =
          load_file(std::move(file), std::move(device), input.name(), {options}, immutable);
      if (state) time_engines(**state, options, {});
      return state;
    }
    case FileKind::kOnnx:
      return load_onnx(input, std::move(device), options);
    default:
      return load_foreign(input, std::move(device), options);
  }
}

Result<std::shared_ptr<ProgramState>> load_opened(std::shared_ptr<const ProgramFile> file,
                                                  const LoadOptions& options) {
  if (file == nullptr) return error(Code::kInvalidArgument, "no program file is given to load");
  std::shared_ptr<device::Device> device = options.on;
  if (device == nullptr) {
    // The macro is two statements.
    CORELANE_ASSIGN(device, device::open_device(options.device));
  }
  if (options.verify == Verify::kEverything) CORELANE_TRY(file->verify_segments());
  auto state = load_file(std::move(file), std::move(device), "the program file", {options});
  if (state) time_engines(**state, options, {});
  return state;
}

/// True where what the load took beside the program is to go back at once. Else its first runs have
/// it, which would take it from the system again, page by page.
bool gives_back(const ProgramState& state) {
  return state.description.constant_bytes >= kWorthATrim && !state.executables->is_to_change();
}

/// Calls `load` with options that say until when, and gives what it took beside the program back.
template <class F>
Result<std::shared_ptr<ProgramState>> load_in_time(const std::string& name,
                                                   const LoadOptions& options, const F& load) {
  auto state = load(with_deadline(options));
  if (state && gives_back(**state)) trim_heap();
  if (state || state.error().code() != Code::kTimeout) return state;
  return error(late(state.error(), name, options));
}

}  // namespace

Result<std::shared_ptr<ProgramState>> load_program(const LoadInput& input,
                                                   const LoadOptions& options) {
  return load_in_time(input.name(), options,
                      [&](const LoadOptions& until) { return load_bytes(input, until); });
}

Result<std::shared_ptr<ProgramState>> load_program(std::shared_ptr<const ProgramFile> file,
                                                   const LoadOptions& options) {
  return load_in_time("the program file", options, [&](const LoadOptions& until) {
    return load_opened(std::move(file), until);
  });
}

}  // namespace corelane::runtime
