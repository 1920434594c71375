#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "cli/options.h"
#include "corelane/base/printable.h"

namespace corelane::cli {

int exit_code(const Status& status) noexcept {
  if (status.code() == Code::kCancelled) return kExitInterrupted;  // Nothing else cancels here.
  // The bands of Code, in the order of the exit codes that docs/cli.md promises.
  switch (static_cast<int>(status.code()) / 100) {
    case 0:
      return kExitOk;
    case 1:
      return kExitCaller;
    case 2:
      return kExitData;
    case 3:
      return kExitResource;
    case 4:
      return kExitExecution;
    default:
      return kExitInternal;
  }
}

// Whatever escaped the tables: a terminal must not obey it.
void print(const std::string& text) {
  const std::string safe = printable_lines(text);
  std::fwrite(safe.data(), 1, safe.size(), stdout);
}

// Names in a model are any bytes: what is not UTF-8 is replaced, not thrown over, and what is not
// ASCII, such as control characters beyond it, is written as \uXXXX.
std::string json_text(const Json& value) {
  return value.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

void print_json(const Json& value) { print(json_text(value)); }

int report_failure(const Status& status, bool json, Json found) {
  if (json) {
    found.update({{"error", code_name(status.code())},
                  {"code", static_cast<int>(status.code())},
                  {"message", status.to_string()}});
    for (const auto& [key, value] : status.details())
      found["details"][std::string(detail_name(key))] = value;
    print_json(found);
  }
  std::fputs(fmt::format("corelane: {}\n", status.to_string()).c_str(), stderr);
  return exit_code(status);
}

int print_outcome(const Global& global, const Json& found, const std::string& text,
                  const Result<int>& outcome) {
  if (!global.json) print(text);
  // One JSON document: the failure goes into what was found until then.
  if (!outcome) return report_failure(outcome.error(), global.json, found);
  if (global.json) print_json(found);
  return *outcome;
}

std::string shown(const Json& text) { return printable(text.get<std::string>()); }

void print(const Global& global, const Json& json, const std::string& text) {
  if (global.json)
    print_json(json);
  else
    print(text);
}

Status flush_output() {
  // A full disk shows only here: what was printed lies in the buffer until then.
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return error(Code::kIo, "standard output cannot be written: {}",
               errno != 0 ? std::strerror(errno) : "write error");
}

namespace {
Result<std::pair<std::string, std::string>> split_at(std::size_t at, const std::string& text,
                                                     const std::string& option) {
  if (at == std::string::npos || at == 0) {
    return error(Code::kInvalidArgument, "{} '{}': expected NAME=VALUE, such as {} x={}", option,
                 text, option, option == "--shape" ? "1,3,224,224" : "...");
  }
  return std::pair{text.substr(0, at), text.substr(at + 1)};
}
}  // namespace

Result<std::pair<std::string, std::string>> split_assignment(const std::string& text,
                                                             const std::string& option) {
  // The last one: names of tensors may hold "=".
  return split_at(text.rfind('='), text, option);
}

Result<std::pair<std::string, std::string>> split_file(const std::string& text,
                                                       const std::string& option) {
  return split_at(text.find('='), text, option);
}

// from_chars, not strtof: the locale must not change what a comma means.
Result<std::vector<float>> parse_floats(const std::string& text, const std::string& option) {
  std::vector<float> values;
  const char* p = text.data();
  const char* end = p + text.size();
  for (bool more = true; more;) {  // A number must follow a comma.
    float v = 0;
    const auto [next, ec] = std::from_chars(p, end, v);
    if (ec != std::errc() || !std::isfinite(v) || (next != end && *next != ',')) {
      return error(Code::kInvalidArgument,
                   "{} '{}': expected finite numbers separated by commas, such as "
                   "127.5,127.5,127.5",
                   option, text);
    }
    values.push_back(v);
    more = next != end;
    p = next + (more ? 1 : 0);
  }
  return values;
}

Result<std::map<std::string, Shape>> parse_shapes(const std::vector<std::string>& items) {
  std::map<std::string, Shape> shapes;
  for (const auto& item : items) {
    CORELANE_ASSIGN(auto pair, split_assignment(item, "--shape"));
    CORELANE_ASSIGN(shapes[pair.first], parse_shape(pair.second));
  }
  return shapes;
}

void add_open_options(CLI::App& app, OpenArguments& a) {
  app.add_option("model", a.model,
                 "Program file (from corelane compile), ONNX model, or a vendor's image")
      ->required();
  app.add_option("--part", a.part, "Network of a program file of several (default: the first)");
  app.add_option(
      "-d,--device", a.device,
      "Device, such as virtual, virtual:generic:4 or null; `corelane devices` lists them "
      "(default: CORELANE_DEVICE, else virtual)");
  app.add_option("--precision", a.precision, "f32, f16 or bf16")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}))
      ->capture_default_str();
  add_list(app, "--shape", a.shapes,
           "NAME=1,3,224,224: shape of an input with open dimensions (repeatable)");
  app.add_option("--engine", a.engine,
                 "Engine of a device that has several: openvino, onnxruntime, or auto for the "
                 "right and faster one")
      ->capture_default_str();
  app.add_flag("--fast-math", a.fast_math, "Let the engine quantise activations on its own");
  app.add_flag("--no-static-forms", a.no_static_forms,
               "Let one form serve all shapes of a program with open dimensions");
  app.add_flag("--no-cache", a.no_cache, "Do not use the compile cache on disk");
  app.add_option("--load-timeout", a.load_seconds,
                 "Seconds until the engine has to begin preparing the network; 0: no limit")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  app.add_option("--load-memory", a.load_memory,
                 "Bytes that the network may need by its shapes, such as 500MB or 4GB; 0: what the "
                 "machine has")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
}

Result<LoadOptions> load_options(const OpenArguments& a) {
  LoadOptions options;
  options.device = a.device;
  options.fast_math = a.fast_math;
  if (a.engine != "auto") options.engine = a.engine;
  options.static_forms = !a.no_static_forms;
  options.profile_layers = a.profile;
  options.exposed_values = a.exposed;
  options.cache = !a.no_cache;
  options.part = a.part;
  options.load_timeout =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(a.load_seconds));
  options.load_memory = a.load_memory;
  options.weights_option = "weights_from in Python, LoadOptions::weights_of in C++";
  // An ONNX model takes the shapes at its import (a program file has its own).
  CORELANE_ASSIGN(options.import.input_shapes, parse_shapes(a.shapes));
  if (a.precision == "f16") options.precision = device::Precision::kF16;
  if (a.precision == "bf16") options.precision = device::Precision::kBF16;
  return options;
}

Result<Program> open_program(const OpenArguments& a) {
  CORELANE_ASSIGN(auto options, load_options(a));
  return Program::load(a.model, options);
}

namespace {

using Shapes = std::map<std::string, Shape>;

using Sizes = std::map<std::string, std::int64_t>;

/// The sizes of named dimensions, where `shapes` (by input) have them.
Sizes named_sizes(const ProgramDescription& program, const Shapes& shapes) {
  Sizes sizes;
  for (const auto& input : program.inputs) {
    const auto& names = input.desc.dim_names;
    const auto it = shapes.find(input.desc.name);
    if (it == shapes.end()) continue;
    for (std::size_t d = 0; d < std::min(names.size(), it->second.rank()); ++d)
      if (!names[d].empty() && it->second[d] != Shape::kOpen)
        sizes.emplace(names[d], it->second[d]);
  }
  return sizes;
}

/// Whether an open dimension 0 is the batch, and nothing else of the input is open.
bool is_open_batch(const Shape& shape) {
  if (shape.rank() < 2 || shape[0] != Shape::kOpen) return false;
  Shape one = shape;
  one[0] = 1;
  return one.is_static();
}

/// The shape of an input for which no --shape is given: what its file has, then the sizes of named
/// dimensions, then `batch`.
Shape completed(const TensorDesc& desc, const Shapes& offered, const Sizes& sizes,
                std::int64_t batch) {
  const auto it = offered.find(desc.name);
  Shape shape = it != offered.end() ? it->second : desc.shape;
  for (std::size_t d = 0; d < std::min(shape.rank(), desc.dim_names.size()); ++d) {
    const auto size = sizes.find(desc.dim_names[d]);
    if (shape[d] == Shape::kOpen && size != sizes.end()) shape[d] = size->second;
  }
  if (is_open_batch(shape)) shape[0] = batch;
  return shape;
}

/// The first of the program's sets whose shapes are those `known` by name, or fit them where they
/// are open; the first of all where none is, which the context then refuses or the files do not
/// fit.
const std::vector<Shape>& fitting_set(const ProgramDescription& program, const Shapes& known) {
  const auto fits = [&](const std::vector<Shape>& set) {
    for (std::size_t i = 0; i < set.size(); ++i) {
      const auto it = known.find(program.inputs[i].desc.name);
      if (it != known.end() && !it->second.accepts(set[i])) return false;
    }
    return true;
  };
  const auto& sets = program.shape_sets;
  const auto found = std::ranges::find_if(sets, fits);
  return found != sets.end() ? *found : sets.front();
}

Failure shape_of_value(const TensorDesc& desc) {
  return error(Code::kInvalidArgument,
               "--shape for input '{}', a {}: its shape comes with the value", desc.name,
               desc.value.to_string())
      .with(Detail::kInput, desc.name);
}

Failure open_input(const TensorDesc& desc, const Shape& shape) {
  std::string example;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if (d > 0) example += ',';
    if (shape[d] != Shape::kOpen)
      example += std::to_string(shape[d]);
    else
      example += d == 0 ? "1" : "SIZE";
  }
  return error(Code::kShapeMismatch, "input '{}' is {}: give its shape with --shape {}={}",
               desc.name, shape.to_string(), desc.name, example)
      .with(Detail::kInput, desc.name);
}

}  // namespace

// A shape that is given wins, then the declared one, then the first set that the given shapes and
// the files fit (a program with sets runs without either), then what the files have, then the
// smallest batch.
Status choose_shapes(Context& context, const Program& program, const OpenArguments& a,
                     const Shapes& offered) {
  CORELANE_ASSIGN(auto wanted, parse_shapes(a.shapes));
  const auto& inputs = program.description().inputs;
  const auto& sets = program.description().shape_sets;
  const auto& range = program.description().batch_range;
  const std::int64_t batch = range ? range->low : 1;
  Shapes known = wanted;
  known.insert(offered.begin(), offered.end());
  const auto sizes = named_sizes(program.description(), known);
  const auto* const set = sets.empty() ? nullptr : &fitting_set(program.description(), known);
  std::vector<Shape> shapes;
  bool open = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    // What is left in `wanted` at the end names no input.
    const auto it = wanted.find(inputs[i].desc.name);
    Shape shape = inputs[i].desc.shape;
    if (!inputs[i].desc.value.empty()) {
      if (it != wanted.end()) return shape_of_value(inputs[i].desc);
      shape = Shape{0};  // Until its bytes are there.
    } else if (it != wanted.end()) {
      shape = it->second;
      wanted.erase(it);
    } else if (!shape.is_static() && set != nullptr) {
      shape = (*set)[i];
    } else if (!shape.is_static()) {
      shape = completed(inputs[i].desc, offered, sizes, batch);
    }
    open = open || !(shape == inputs[i].desc.shape);
    if (!shape.is_static()) return open_input(inputs[i].desc, shape);
    shapes.push_back(std::move(shape));
  }
  if (!wanted.empty()) {
    std::string names;
    for (const auto& input : inputs) names += (names.empty() ? "'" : ", '") + input.desc.name + "'";
    return error(Code::kNotFound, "--shape names '{}', which is not an input; the program has {}",
                 wanted.begin()->first, names)
        .with(Detail::kGiven, wanted.begin()->first)
        .with(Detail::kAllowed, names);
  }
  return open ? context.set_input_shapes(shapes) : Status();
}

Result<Context> open_context(const Program& program, const OpenArguments& a,
                             const Shapes& offered) {
  CORELANE_ASSIGN(auto context, program.new_context());
  CORELANE_TRY(choose_shapes(context, program, a, offered));
  return context;
}

// Keys are a part of the command line's contract: scripts read them.
Json to_json(const TensorDesc& desc) {
  Json j{{"name", desc.name},
         {"dtype", dtype_name(desc.dtype)},
         {"shape", desc.shape.dims()},
         {"layout", layout_name(desc.layout.kind)}};
  if (!desc.dim_names.empty()) j["dim_names"] = desc.dim_names;
  if (const ValueType& value = desc.value; !value.empty()) {
    j["value"] = value.to_string();
    if (value.shape) j["value_shape"] = value.shape->dims();
    if (!value.dim_names.empty()) j["value_dim_names"] = value.dim_names;
  }
  return j;
}

namespace {
/// Quantization, mean and std are left out where the entry has none.
Json to_json(const IoEntry& e) {
  Json j = cli::to_json(e.desc);
  j["reported_dtype"] = dtype_name(e.reported_dtype);
  j["preferred_layout"] = layout_name(e.preferred_layout);
  if (e.quant.kind != QuantKind::kNone) {
    j["quantized_dtype"] = dtype_name(e.quant_dtype);
    j["scales"] = e.quant.scales;
    j["zero_points"] = e.quant.zero_points;
    j["axis"] = e.quant.axis;
  }
  if (e.partial_allowed) j["partial_allowed"] = true;
  if (!e.mean.empty()) j["mean"] = e.mean;
  if (!e.std.empty()) j["std"] = e.std;
  return j;
}
}  // namespace

Json states_json(const ProgramDescription& d) {
  Json list = Json::array();
  for (const StateDecl& s : d.states) list.push_back({{"output", s.output}, {"input", s.input}});
  return list;
}

std::string state_text(const StateDecl& state) {
  return fmt::format("State: output '{}' is input '{}' of the next run\n", printable(state.output),
                     printable(state.input));
}

Json to_json(const ProgramDescription& d) {
  Json j{{"name", d.name},
         {"producer", d.producer},
         {"compiler", d.compiler_version},
         {"opset", d.opset},
         {"nodes", d.node_count},
         {"constant_bytes", d.constant_bytes},
         {"macs", d.macs},
         {"batch", d.batch},
         {"cores", d.cores},
         {"custom_string", d.custom_string}};
  if (d.batch_range) j["batch_range"] = {d.batch_range->low, d.batch_range->high};
  if (!d.part.empty()) j["part"] = d.part;
  j["inputs"] = Json::array();
  for (const auto& e : d.inputs) j["inputs"].push_back(to_json(e));
  j["outputs"] = Json::array();
  for (const auto& e : d.outputs) j["outputs"].push_back(to_json(e));
  for (const auto& e : d.overridable) j["overridable_initializers"].push_back(to_json(e));
  if (!d.states.empty()) j["states"] = states_json(d);
  j["shape_sets"] = Json::array();
  for (const auto& set : d.shape_sets) {
    Json s = Json::array();
    for (const auto& shape : set) s.push_back(shape.dims());
    j["shape_sets"].push_back(std::move(s));
  }
  j["custom_operators"] = Json::array();
  for (const auto& c : d.custom_operators)
    j["custom_operators"].push_back({{"type", c.type}, {"domain", c.domain}, {"nodes", c.nodes}});
  j["findings"] = Json::array();
  for (const auto& f : d.findings) {
    j["findings"].push_back(
        {{"kind", f.kind == ImportFinding::Kind::kRewritten ? "rewritten" : "warning"},
         {"node", f.node},
         {"op", f.op},
         {"text", f.text}});
  }
  j["metadata"] = d.metadata;
  return j;
}

Json to_json(const device::MemoryFigures& m) {
  return {{"weights", m.weights},
          {"internal", m.internal},
          {"code", m.code},
          {"buffers", m.buffers},
          {"total", m.total()}};
}

Json forms_json(const Program& program) {
  Json list = Json::array();
  for (const ProgramForm& form : program.forms()) {
    Json shapes = Json::array();
    for (const Shape& shape : form.input_shapes) shapes.push_back(shape.to_string());
    list.push_back({{"input_shapes", shapes},
                    {"engine", form.engine},
                    {"runs", form.runs},
                    {"memory", to_json(form.memory)}});
  }
  return list;
}

std::string forms_text(const Program& program) {
  const std::vector<ProgramForm> forms = program.forms();
  std::string text;
  if (forms.size() < 2) return text;
  for (const ProgramForm& form : forms) {
    std::string shapes;
    for (const Shape& shape : form.input_shapes) shapes += shape.to_string();
    text += fmt::format("Form {} on {}: {}", shapes, form.engine, human_bytes(form.memory.total()));
    if (form.runs > 0) text += fmt::format(", {} runs", form.runs);
    text += "\n";
  }
  return text;
}

std::string engine_text(const device::EngineChoice& choice) {
  if (choice.engine.empty()) return "none yet: the program is prepared once its shapes are known";
  return choice.why.empty() ? choice.engine : choice.engine + ": " + choice.why;
}

double to_us(Duration d) noexcept { return static_cast<double>(d.count()) / 1000.0; }

std::string human_bytes(std::uint64_t n) {
  if (n < 1024) return fmt::format("{} B", n);
  const double v = static_cast<double>(n);
  if (n < (1U << 20)) return fmt::format("{:.1f} KiB", v / 1024.0);
  if (n < (1ULL << 30)) return fmt::format("{:.1f} MiB", v / (1 << 20));
  return fmt::format("{:.2f} GiB", v / (1ULL << 30));
}

}  // namespace corelane::cli
