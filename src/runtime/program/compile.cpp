#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "corelane/base/file.h"
#include "corelane/device/host_operator.h"
#include "corelane/device/registry.h"
#include "corelane/onnx/onnx_cut.h"
#include "corelane/onnx/onnx_import.h"
#include "corelane/runtime/compile_chain.h"
#include "corelane/runtime/file_kind.h"
#include "corelane/runtime/program.h"
#include "runtime/program/executable_set.h"
#include "runtime/program/program_load.h"

namespace corelane {
namespace {

/// Before the import, whose parser would only say that the bytes are malformed.
Status check_onnx(ByteSpan bytes, const std::string& name) {
  const FileKind kind = file_kind(bytes);
  if (kind == FileKind::kOnnx) return {};
  return error(Code::kMalformed, "{} is not an ONNX model but: {}", name, file_kind_name(kind));
}

/// One element of a made input. Floats are 0.5, which takes no slow path of the CPU. Integers are
/// 1: most tables have that index, and nothing is divided by zero. A bool is false: as the
/// condition of a Loop, true might never end it. Types of less than a byte and 8-bit floats are
/// zero.
ByteVector made_element(DType type) {
  ByteVector element(dtype_bytes(type, 1));
  const std::size_t bytes = element.size();
  const auto put = [&](auto value) { std::memcpy(element.data(), &value, sizeof(value)); };
  switch (type) {
    case DType::kF32:
      put(0.5F);
      break;
    case DType::kF64:
      put(0.5);
      break;
    case DType::kF16:
      put(std::uint16_t{0x3800});
      break;
    case DType::kBF16:
      put(std::uint16_t{0x3F00});
      break;
    default:
      const bool is_integer = !is_float(type) && type != DType::kBool;
      if (dtype_bits(type) == 8 * bytes && is_integer) element[0] = std::byte{1};
  }
  return element;
}

/// A run on made inputs, on one core; nothing where a dimension is open: who compiles does not know
/// the sizes that come.
std::optional<runtime::TimedRun> made_run(const std::vector<TensorDesc>& inputs) {
  runtime::TimedRun run;
  run.cores = device::CoreSet::any(1);
  for (const TensorDesc& desc : inputs) {
    const auto bytes = desc.bytes();
    if (!bytes || !desc.shape.is_static()) return std::nullopt;
    const ByteVector element = made_element(desc.dtype);
    if (element.empty()) return std::nullopt;
    ByteVector content(*bytes);
    for (std::size_t at = 0; at + element.size() <= content.size(); at += element.size())
      std::ranges::copy(element, content.begin() + static_cast<std::ptrdiff_t>(at));
    run.inputs.push_back({desc.shape, std::move(content)});
  }
  return run;
}

/// What a device has made of a network, and which of its engines computes it faster.
struct Compiled {
  std::vector<device::Executable::Precompiled> forms;
  std::string trial_tag;
  std::string trial;  ///< Empty where they were not timed.

  /// The writer borrows all of it.
  void add_to(ProgramWriter& writer) const {
    for (const auto& form : forms)
      writer.add_segment(SegmentKind::kPrecompiled, form.tag, form.bytes);
    if (!trial.empty()) writer.add_segment(SegmentKind::kTrial, trial_tag, as_byte_span(trial));
  }
};

/// The forms of every shape set, made on the device that `options` name.
Result<Compiled> precompile(const std::shared_ptr<const ImportedModel>& model,
                            const CompileOptions& options) {
  CORELANE_ASSIGN(const auto device, device::open_device(options.device));
  const device::DeviceInfo& info = device->info();
  if (!info.capabilities.precompiled) {
    return error(Code::kUnsupported, "device '{}' has no pre-compiled form; compile without",
                 info.instance);
  }
  const ProgramDescription& description = model->description;
  CORELANE_ASSIGN(auto prepare, runtime::prepare_options(info, description, {}));
  // An empty table: preparing declares custom operators, and only a run calls them.
  prepare.host_operators = std::make_shared<device::HostOperatorTable>();
  runtime::ExecutableSet executables(device, runtime::network_source(model, info),
                                     std::move(prepare), description);
  CORELANE_TRY(executables.prepare_first());
  for (const auto& set : description.shape_sets) {
    // The macro is two statements.
    CORELANE_ASSIGN(const auto entry, executables.for_shapes(set));
  }
  Compiled compiled;
  // The macro is two statements.
  CORELANE_ASSIGN(compiled.forms, executables.export_all());
  const auto first = executables.first().executable;
  if (!runtime::engines_are_timed(options.time_engines) || first == nullptr) return compiled;
  auto run = made_run(first->inputs());
  if (!run) return compiled;
  if (const auto verdict = executables.compare_engines(std::move(*run))) {
    compiled.trial_tag = runtime::trial_tag(info);
    compiled.trial = verdict->text();
  }
  return compiled;
}

Status check_options(const CompileOptions& options) {
  if (!options.precompile || !options.remove_weights) return {};
  return error(Code::kInvalidArgument,
               "a pre-compiled form holds the weights that remove_weights leaves out; ask for one "
               "of the two");
}

Result<ByteVector> write(const std::shared_ptr<const ImportedModel>& model,
                         const CompileOptions& options) {
  CORELANE_TRY(check_options(options));
  Compiled compiled;
  if (options.precompile) {
    // The macro is two statements.
    CORELANE_ASSIGN(compiled, precompile(model, options));
  }
  std::vector<std::pair<std::string, MappedFile>> attached;
  for (const auto& [kind, path] : options.attach) {
    if (kind.empty()) {
      return error(Code::kInvalidArgument, "'{}' is attached without a device kind; give KIND=FILE",
                   path.string());
    }
    CORELANE_ASSIGN(auto mapped, MappedFile::open(path));
    attached.emplace_back(kind, std::move(mapped));
  }
  // The writer borrows all segments until finish(): model, compiled and mapped files outlive it.
  ProgramWriter writer(model->description);
  runtime::add_network(
      writer, *model,
      options.remove_weights ? runtime::Weights::kRemoved : runtime::Weights::kIncluded);
  compiled.add_to(writer);
  for (const auto& [kind, file] : attached)
    writer.add_segment(SegmentKind::kForeign, kind, file.bytes());
  return writer.finish();
}

Result<ImportedModel> import_file(const std::filesystem::path& onnx, const ImportOptions& options) {
  {
    // Mapped for the first bytes alone; the import opens the file itself, with its external data.
    CORELANE_ASSIGN(const auto mapped, MappedFile::open(onnx));
    CORELANE_TRY(check_onnx(mapped.bytes(), fmt::format("'{}'", onnx.string())));
  }
  return import_onnx_file(onnx, options);
}

/// The names of the parts, in their order.
Result<std::vector<std::string>> names_of(std::span<const PartSource> parts) {
  if (parts.empty()) return error(Code::kInvalidArgument, "no network is given to compile");
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::string name = parts[i].name.empty() ? parts[i].onnx.stem().string() : parts[i].name;
    if (const auto other = std::ranges::find(names, name); other != names.end()) {
      return error(Code::kInvalidArgument,
                   "'{}' and '{}' would both be part '{}'; name one of them (compile --part "
                   "NAME=FILE)",
                   parts[static_cast<std::size_t>(other - names.begin())].onnx.string(),
                   parts[i].onnx.string(), name);
    }
    names.push_back(std::move(name));
  }
  return names;
}

Status check_cuts(std::span<const CutNames> cuts, const CompileOptions& options) {
  if (cuts.empty())
    return error(Code::kInvalidArgument, "no cut is given; name the values that cross one");
  if (!options.precompile && options.attach.empty()) return {};
  return error(Code::kInvalidArgument,
               "the network is cut into parts, and {} is of a whole one; leave one of them out",
               options.precompile ? "a pre-compiled form" : "an attached file");
}

/// The file of a network in parts: a chain of them, and then each.
Result<ByteVector> write_chain(ImportedModel whole, const std::string& name,
                               std::span<const CutNames> cuts, const CompileOptions& options) {
  CORELANE_ASSIGN(std::vector<ImportedModel> parts, cut_network(whole, cuts, options.import));
  whole.description.part = name;
  ProgramWriter writer(whole.description);
  writer.set_chain();
  runtime::add_constants(
      writer, whole,
      options.remove_weights ? runtime::Weights::kRemoved : runtime::Weights::kIncluded);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].description.part = fmt::format("{}/{}", name, i);
    writer.add_part(parts[i].description);
    runtime::add_network(writer, parts[i], runtime::Weights::kOfFirstPart);
  }
  return writer.finish();
}

/// Compiled while the network has its own constants.
Result<ImportedModel> compile_part(const PartSource& part, const std::string& name,
                                   const CompileOptions& options, Compiled& compiled) {
  CORELANE_ASSIGN(auto imported, import_file(part.onnx, part.import.value_or(options.import)));
  imported.description.part = name;
  if (!options.precompile) return imported;
  // Borrowed for the call: executables of the forms do not outlive it.
  const std::shared_ptr<const ImportedModel> model(&imported, [](const ImportedModel*) {});
  CORELANE_ASSIGN(compiled, precompile(model, options));
  return imported;
}

Result<ByteVector> write_parts(std::vector<ImportedModel>& models,
                               const std::vector<Compiled>& compiled,
                               const CompileOptions& options) {
  CORELANE_ASSIGN(models.front().constants, merge_constants(models));
  ProgramWriter writer(models.front().description);
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (i > 0) writer.add_part(models[i].description);
    const auto first =
        options.remove_weights ? runtime::Weights::kRemoved : runtime::Weights::kIncluded;
    runtime::add_network(writer, models[i], i == 0 ? first : runtime::Weights::kOfFirstPart);
    compiled[i].add_to(writer);
  }
  return writer.finish();
}

}  // namespace

Result<ByteVector> compile_file(const std::filesystem::path& onnx, const CompileOptions& options) {
  CORELANE_ASSIGN(auto imported, import_file(onnx, options.import));
  return write(std::make_shared<const ImportedModel>(std::move(imported)), options);
}

Result<ByteVector> compile_parts(std::span<const PartSource> parts, const CompileOptions& options) {
  CORELANE_TRY(check_options(options));
  if (!options.attach.empty()) {
    return error(Code::kInvalidArgument,
                 "'{}' is attached to a file of parts; an attached file stands for one network, so "
                 "compile that one alone",
                 options.attach.front().second.string());
  }
  CORELANE_ASSIGN(const auto names, names_of(parts));
  std::vector<ImportedModel> models;
  std::vector<Compiled> compiled(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto model = compile_part(parts[i], names[i], options, compiled[i]);
    if (!model) return error(model.error().wrap(fmt::format("part '{}'", names[i])));
    models.push_back(std::move(*model));
  }
  return write_parts(models, compiled, options);
}

Result<ByteVector> compile_bytes(ByteSpan onnx, const CompileOptions& options) {
  CORELANE_TRY(check_onnx(onnx, fmt::format("the {} bytes in memory", onnx.size())));
  CORELANE_ASSIGN(auto imported, import_onnx(onnx, options.import));
  return write(std::make_shared<const ImportedModel>(std::move(imported)), options);
}

Result<ByteVector> compile_chain(const std::filesystem::path& onnx, std::span<const CutNames> cuts,
                                 const CompileOptions& options) {
  CORELANE_TRY(check_cuts(cuts, options));
  CORELANE_ASSIGN(auto imported, import_file(onnx, options.import));
  return write_chain(std::move(imported), onnx.stem().string(), cuts, options);
}

Result<ByteVector> compile_chain(ByteSpan onnx, std::span<const CutNames> cuts,
                                 const CompileOptions& options) {
  CORELANE_TRY(check_cuts(cuts, options));
  CORELANE_TRY(check_onnx(onnx, fmt::format("the {} bytes in memory", onnx.size())));
  CORELANE_ASSIGN(auto imported, import_onnx(onnx, options.import));
  return write_chain(std::move(imported), "network", cuts, options);
}

}  // namespace corelane
