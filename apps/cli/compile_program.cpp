// `corelane compile`: writes the program file of one or several ONNX models, reads it back whole,
// and prints what the import changed or warns of.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/command.h"
#include "cli/compile_target.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/quantize.h"
#include "corelane/base/file.h"
#include "corelane/base/printable.h"
#include "corelane/program/program_file.h"
#include "corelane/runtime/compile_chain.h"

namespace corelane::cli {
namespace {

struct Arguments {
  std::vector<std::string> models, parts;
  std::string output;
  std::vector<std::string> cuts;
  std::vector<std::string> shapes, dims, sets, mean, std, partial, states, custom_operators, attach;
  std::string target;
  std::string layout;
  std::string io_dtype;
  std::string custom_string;
  std::uint32_t batch = 1;
  std::string batch_range;
  std::uint32_t cores = 1;
  bool precompile = false;
  bool no_time_engines = false;
  std::string device;
  bool allow_known_wrong = false;
  bool remove_weights = false;
  bool strict_links = false;
  std::string data_root;
  QuantizeArguments int8;
};

/// Shapes of all inputs, separated by semicolons.
Result<std::vector<Shape>> parse_set(const std::string& text) {
  if (text.find('=') != std::string::npos) {
    return error(Code::kInvalidArgument,
                 "--shape-set '{}': a set has no names: one shape for each input, divided by ';', "
                 "such as '1,3,224,224;1,10'",
                 text);
  }
  std::vector<Shape> set;
  std::size_t begin = 0;
  // "<=": an empty last part is a mistake that parse_shape() names.
  while (begin <= text.size()) {
    const auto end = std::min(text.find(';', begin), text.size());
    CORELANE_ASSIGN(auto shape, parse_shape(text.substr(begin, end - begin)));
    set.push_back(std::move(shape));
    begin = end + 1;
  }
  return set;
}

/// "[NAME=]1,2,3" items; without a name they are for all rank-4 inputs.
Status parse_channels(const std::vector<std::string>& items, const std::string& option,
                      std::map<std::string, std::vector<float>>& out) {
  for (const auto& item : items) {
    std::pair<std::string, std::string> pair{"", item};
    if (item.find('=') != std::string::npos) {
      // The macro is two statements.
      CORELANE_ASSIGN(pair, split_assignment(item, option));
    }
    CORELANE_ASSIGN(out[pair.first], parse_floats(pair.second, option));
  }
  return {};
}

/// "1,8".
Result<BatchRange> parse_batch_range(const std::string& text) {
  const auto sizes = parse_shape(text);
  const bool two = sizes && sizes->rank() == 2 && sizes->is_static();
  if (!two || (*sizes)[0] < 1 || (*sizes)[1] < (*sizes)[0] || (*sizes)[1] > kMostBatch) {
    return error(Code::kInvalidArgument,
                 "--batch-range '{}': expected LOW,HIGH, such as 1,8, from 1 to {}", text,
                 kMostBatch);
  }
  return BatchRange{static_cast<std::uint32_t>((*sizes)[0]),
                    static_cast<std::uint32_t>((*sizes)[1])};
}

/// "x,y".
std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    if (end > begin) names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

/// The networks of a file of several: those given as files, then those with names.
Result<std::vector<PartSource>> parts_of(const Arguments& a) {
  std::vector<PartSource> parts;
  for (const auto& model : a.models)
    parts.push_back({model, std::filesystem::path(model).stem().string(), {}});
  for (const auto& item : a.parts) {
    CORELANE_ASSIGN(auto pair, split_file(item, "--part"));
    parts.push_back({pair.second, pair.first, {}});
  }
  return parts;
}

/// Items of the options that name an input or a dimension, as far as they are for `part`:
/// "PART:ITEM" is for that part alone, all others are for every one.
void keep_items_of(const std::string& part, const std::vector<PartSource>& parts,
                   std::vector<std::string>& items) {
  std::vector<std::string> kept;
  for (const std::string& item : items) {
    // Only names of parts come before such a colon: inputs may be named "x:0".
    const std::string first = item.substr(0, item.find(':'));
    const bool prefixed = first.size() < item.size() &&
                          std::ranges::find(parts, first, &PartSource::name) != parts.end();
    if (!prefixed) kept.push_back(item);
    if (prefixed && first == part) kept.push_back(item.substr(first.size() + 1));
  }
  items = std::move(kept);
}

Status check_data_root(const std::string& folder) {
  std::error_code ec;
  if (folder.empty() || std::filesystem::is_directory(folder, ec)) return {};
  return error(Code::kNotFound,
               "--data-root '{}' is not a folder; give the one that the model's external data lie "
               "in",
               folder);
}

Result<CompileOptions> options_of(const Arguments& a) {
  CompileOptions o;
  CORELANE_ASSIGN(o.import.input_shapes, parse_shapes(a.shapes));
  for (const auto& d : a.dims) {
    CORELANE_ASSIGN(auto pair, split_assignment(d, "--dim"));
    CORELANE_ASSIGN(auto value, parse_shape(pair.second));
    if (value.rank() != 1 || !value.is_static())
      return error(Code::kInvalidArgument, "--dim '{}': expected NAME=NUMBER", d);
    o.import.dims[pair.first] = value[0];
  }
  for (const auto& s : a.sets) {
    CORELANE_ASSIGN(auto set, parse_set(s));
    o.import.shape_sets.push_back(std::move(set));
  }
  // Of real pixels, 0 to 255, as the training had them.
  CORELANE_TRY(parse_channels(a.mean, "--mean", o.import.mean));
  CORELANE_TRY(parse_channels(a.std, "--std", o.import.std));
  o.import.custom_operators = a.custom_operators;
  o.import.partial_inputs = a.partial;
  for (const auto& item : a.states) {
    CORELANE_ASSIGN(auto pair, split_assignment(item, "--state"));
    o.import.states.push_back({pair.first, pair.second});
  }
  if (!a.io_dtype.empty()) {
    const auto t = dtype_from_name(a.io_dtype);
    if (!t)
      return error(Code::kInvalidArgument,
                   "--io-dtype '{}' is not an element type; allowed are f32, f16, bf16 and f64",
                   a.io_dtype);
    o.import.io_dtype = *t;
  }
  o.import.custom_string = a.custom_string;
  o.import.batch = a.batch;
  if (!a.batch_range.empty()) {
    // The macro is two statements.
    CORELANE_ASSIGN(o.import.batch_range, parse_batch_range(a.batch_range));
  }
  o.import.cores = a.cores;
  o.import.refuse_known_wrong = !a.allow_known_wrong;
  o.remove_weights = a.remove_weights;
  o.import.strict_links = a.strict_links;
  CORELANE_TRY(check_data_root(a.data_root));
  o.import.external_data_root = a.data_root;
  o.precompile = a.precompile;
  o.time_engines = !a.no_time_engines;
  o.device = a.device;
  for (const auto& item : a.attach) {
    CORELANE_ASSIGN(auto pair, split_file(item, "--attach"));
    o.attach.emplace_back(pair.first, pair.second);
  }
  if (a.layout.empty()) return o;
  const auto kind = layout_from_name(a.layout == "nchw" ? "plain" : a.layout);
  if (!kind || *kind == LayoutKind::kNC1HWC2) {
    return error(Code::kInvalidArgument,
                 "--layout '{}': allowed are nhwc and nchw (also called plain)", a.layout);
  }
  o.import.input_layout = *kind;
  return o;
}

/// The program file of several networks, or of one with a name.
Result<ByteVector> compiled_parts(const Arguments& a, std::vector<PartSource> parts) {
  if (!a.cuts.empty()) {
    return error(Code::kInvalidArgument,
                 "--cut cuts one network into parts; compile each of several alone");
  }
  if (a.int8.int8) {
    return error(Code::kInvalidArgument,
                 "--int8 calibrates one network with one --dataset; quantize each alone, for one "
                 "file of all give already quantized models");
  }
  CompileOptions options;
  for (PartSource& part : parts) {
    Arguments own = a;
    for (auto* items :
         {&own.shapes, &own.dims, &own.sets, &own.mean, &own.std, &own.partial, &own.states})
      keep_items_of(part.name, parts, *items);
    CORELANE_ASSIGN(options, options_of(own));
    part.import = options.import;
  }
  return compile_parts(parts, options);
}

/// The program file of one network, whole or cut into parts.
Result<ByteVector> compiled_network(const std::string& model, const Arguments& a,
                                    const CompileOptions& options) {
  if (a.cuts.empty()) return compile_file(model, options);
  std::vector<CutNames> cuts;
  for (const auto& item : a.cuts) cuts.push_back(split_names(item));
  return compile_chain(model, cuts, options);
}

Result<ByteVector> compiled(const Arguments& a, std::vector<std::string>& warnings) {
  CORELANE_ASSIGN(auto parts, parts_of(a));
  if (parts.size() > 1 || !a.parts.empty()) return compiled_parts(a, std::move(parts));
  CORELANE_ASSIGN(auto options, options_of(a));
  const std::string& model = a.models.front();
  if (!a.int8.int8) return compiled_network(model, a, options);
  // So that the folder of the quantized model is removed in any case.
  const Interrupts interrupts;
  CORELANE_ASSIGN(const auto quantized, quantize_model(model, options.import, a.int8));
  warnings = quantized.warnings;
  auto& declared = options.import.custom_operators;
  for (const auto& type : quantized.custom_operators)
    if (std::ranges::find(declared, type) == declared.end()) declared.push_back(type);
  auto bytes = compiled_network(quantized.path, a, options);
  if (Interrupts::pending()) return error(Code::kCancelled, "interrupted");
  return bytes;
}

void print_findings(const ProgramDescription& description,
                    const std::vector<std::string>& warnings) {
  const std::string part = description.part.empty() ? "" : printable(description.part) + ": ";
  for (const auto& text : warnings)
    std::fputs(fmt::format("corelane: warning int8: {}\n", printable(text)).c_str(), stderr);
  for (const auto& f : description.findings) {
    std::fputs(fmt::format("corelane: {}{} {} '{}': {}\n", part,
                           f.kind == ImportFinding::Kind::kRewritten ? "rewritten" : "warning",
                           printable(f.op), printable(f.node), printable(f.text))
                   .c_str(),
               stderr);
  }
}

/// The files whose content the program holds: who may not read one of them may not read it either.
Result<std::vector<std::filesystem::path>> sources_of(const Arguments& a) {
  CORELANE_ASSIGN(const auto parts, parts_of(a));
  std::vector<std::filesystem::path> sources;
  for (const PartSource& part : parts) {
    sources.emplace_back(part.onnx);
    for (auto& file : external_data_of(part.onnx, a.data_root)) sources.push_back(std::move(file));
  }
  for (const auto& item : a.attach) {
    CORELANE_ASSIGN(const auto pair, split_file(item, "--attach"));
    sources.emplace_back(pair.second);
  }
  return sources;
}

/// Where the program is written; not onto one of the files that it is made of.
Result<std::filesystem::path> output_of(const Arguments& a,
                                        const std::vector<std::filesystem::path>& sources) {
  CORELANE_ASSIGN(const auto parts, parts_of(a));
  if (a.output.empty() && a.target.empty() && parts.size() > 1) {
    return error(Code::kInvalidArgument, "{} models make one program file; name it with --output",
                 parts.size());
  }
  std::filesystem::path output = a.output;
  if (!a.target.empty()) {
    if (a.output.empty()) {
      return error(Code::kInvalidArgument,
                   "--target {} writes a file of a fixed name; name its folder with --output",
                   a.target);
    }
    output = target_file(output);
  }
  if (a.output.empty()) output = std::filesystem::path(parts[0].onnx).replace_extension(".rknn");
  // Compiling may take minutes: whether the file can be written is asked before.
  ReadFiles read{sources, {}, a.data_root};
  for (const PartSource& part : parts) read.models.emplace_back(part.onnx);
  for (const std::string& file : {a.int8.dataset, a.int8.operators}) read.files.emplace_back(file);
  CORELANE_TRY(check_outputs({{"--output", output}}, read));
  return output;
}

Result<int> run(const Global& global, const Arguments& a) {
  // Wrong values are named before anything else is looked at.
  // Checked for one network only: with several an item may begin with a part's name.
  if (auto options = options_of(a); !options && a.models.size() + a.parts.size() == 1)
    return error(options.error());
  CORELANE_ASSIGN(const auto sources, sources_of(a));
  CORELANE_ASSIGN(const std::filesystem::path output, output_of(a, sources));
  std::vector<std::string> warnings;
  CORELANE_ASSIGN(auto bytes, compiled(a, warnings));
  CORELANE_TRY(write_file_atomic(output, bytes, sources));
  // A pipe or a device cannot be read again.
  std::error_code ec;
  const bool again = std::filesystem::is_regular_file(output, ec);
  CORELANE_ASSIGN(auto file, again ? ProgramFile::open(output, Verify::kEverything)
                                   : ProgramFile::from_bytes(bytes, nullptr, Verify::kEverything));
  Json out{{"output", output.string()}, {"bytes", bytes.size()}};
  out["program"] = to_json(file->description());
  for (std::size_t i = 1; i < file->part_count(); ++i)
    out["other_parts"].push_back(to_json(file->description(i)));
  if (a.int8.int8) out["int8"] = Json{{"warnings", warnings}};
  // Those of a chain's parts are told of the whole already.
  const std::size_t told = file->is_chain() ? 1 : file->part_count();
  for (std::size_t i = 0; !global.json && !global.quiet && i < told; ++i)
    print_findings(file->description(i), i == 0 ? warnings : std::vector<std::string>());
  print(global, out, fmt::format("{} ({})\n", output.string(), human_bytes(bytes.size())));
  return kExitOk;
}

/// Shapes, parts and pixels of a network.
void add_network_options(CLI::App& app, Arguments& a) {
  add_list(app, "--shape", a.shapes, "NAME=1,3,224,224 (repeatable)");
  add_list(app, "--dim", a.dims,
           "NAME=NUMBER: fix an open dimension by its name, or INPUT[AXIS]=NUMBER (repeatable)");
  add_list(app, "--shape-set", a.sets,
           "Allowed shapes of all inputs, '1,3,224,224;1,10' (repeatable: a closed list)");
  add_list(app, "--partial", a.partial,
           "Input that clients may bring in part, or leave out (repeatable)");
  add_list(
      app, "--state", a.states,
      "OUTPUT=INPUT: the output stays on the device as the input of the next run (repeatable)");
  add_list(app, "--cut", a.cuts,
           "VALUE[,VALUE...]: cut the network where these inner values cross, into parts that may "
           "run on one device each (repeatable, in the order of the network)");
  add_list(app, "--mean", a.mean, "[NAME=]R,G,B subtracted from real pixels");
  add_list(app, "--std", a.std, "[NAME=]R,G,B they are divided by");
}

void add_int8_options(CLI::App& app, QuantizeArguments& a) {
  auto* int8 =
      app.add_flag("--int8", a.int8,
                   "Quantize to int8, calibrated by --dataset; needs a Python with corelane, "
                   "onnxruntime, onnx and pillow");
  auto* dataset = app.add_option(
      "--dataset", a.dataset, "Text file with a sample a line: a picture or .npy for each input");
  int8->needs(dataset);
  dataset->needs(int8);
  app.add_option("--algorithm", a.algorithm,
                 "How ranges are taken: normal (default: least and "
                 "largest value) or kl_divergence")
      ->check(CLI::IsMember({"normal", "kl_divergence"}))
      ->needs(int8);
  app.add_flag("--per-layer", a.per_layer, "One scale for the weights of a layer, not by channel")
      ->needs(int8);
  app.add_flag("--bgr", a.bgr, "The model takes pictures as BGR")->needs(int8);
  app.add_option("--operators", a.operators,
                 "Python file with classes (op_type, shape_infer, compute) of custom operators")
      ->needs(int8);
  app.add_option("--python", a.python, "Python for --int8 (default: CORELANE_PYTHON)")->needs(int8);
}

}  // namespace

Action add_compile(CLI::App& parent, Global& global) {
  auto* app = parent.add_subcommand("compile", "Make a program file from ONNX models");
  auto a = std::make_shared<Arguments>();
  auto* models = app->add_option("model", a->models,
                                 "ONNX model; several make a file of parts, named as the files "
                                 "are, with equal constants once");
  auto* parts = add_list(*app, "--part", a->parts,
                         "NAME=FILE: another ONNX model, as a part of this name (repeatable)");
  app->callback([models, parts] {
    if (models->count() + parts->count() == 0) throw CLI::RequiredError("model");
  });
  app->add_option("-o,--output", a->output,
                  "Program file (default for one model: its name with .rknn)");
  app->add_option("--target", a->target,
                  "Chip whose API looks for a program in a folder: --output names the folder")
      ->check(CLI::IsMember(compile_targets()));
  app->footer(
      std::string("With several models --shape, --dim, --shape-set, --mean, --std, --partial and "
                  "--state are for each;\n"
                  "'PART:' before a value makes it one of that part alone: --shape "
                  "decoder:ids=1,1\n\n") +
      parent.get_footer());
  add_network_options(*app, *a);
  app->add_option("--layout", a->layout,
                  "Layout rank-4 inputs are offered in: nhwc (default) or nchw");
  app->add_option("--io-dtype", a->io_dtype,
                  "Type that float inputs and outputs report: f32, f16 (default), bf16 or f64");
  auto* batch = app->add_option("--batch", a->batch, "Copies of dimension 0 (default: 1)")
                    ->check(between(1, 1024));
  app->add_option("--batch-range", a->batch_range,
                  "LOW,HIGH: one program for each of these sizes of dimension 0, such as 1,8")
      ->excludes(batch);
  app->add_option("--cores", a->cores, "Cores one inference wants (default: 1)")
      ->check(between(1, 64));
  app->add_option("--custom-string", a->custom_string, "Up to 1023 bytes kept in the program");
  add_list(*app, "--custom-op", a->custom_operators,
           "Operator type that the host will implement (repeatable)");
  // needs() and excludes() are checked by CLI11, before anything is read.
  auto* precompile = app->add_flag("--precompile", a->precompile,
                                   "Add the engine's compiled form of this machine");
  app->add_option("-d,--device", a->device, "Device for --precompile")->needs(precompile);
  app->add_flag("--no-time-engines", a->no_time_engines,
                "With --precompile: do not find out which of the device's engines is faster")
      ->needs(precompile);
  add_list(*app, "--attach", a->attach, "KIND=FILE: a foreign image for that device kind");
  app->add_flag("--remove-weights", a->remove_weights,
                "Leave the weights out: they come from another program when it is loaded")
      ->excludes(precompile);
  app->add_flag("--allow-known-wrong", a->allow_known_wrong,
                "Record no verdict on patterns the engine is known to compute wrongly: only warn");
  app->add_option("--data-root", a->data_root, "Folder that external data must lie under");
  app->add_flag("--strict-links", a->strict_links,
                "Refuse external data behind symbolic or hard links");
  add_int8_options(*app, a->int8);
  return [&global, a] { return run(global, *a); };
}

}  // namespace corelane::cli
