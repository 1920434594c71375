// `corelane run`: one inference. Inputs come from files (.npy, pictures, raw bytes) or are random;
// outputs go to .npy files, and figures of them with the times of the run to stdout.
#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "cli/input_feed.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/output_numbers.h"
#include "cli/tensors.h"
#include "corelane/base/file.h"
#include "corelane/device/device.h"
#include "corelane/tensor/value.h"

namespace corelane::cli {
namespace {

struct Arguments {
  OpenArguments open;
  std::vector<std::string> inputs;
  bool random = false;
  std::uint64_t seed = 1;
  std::string out;
  std::size_t top_k = 0;
  std::string labels;
  bool values = false;
  std::string cores = "any";
  double timeout_ms = 0;
  std::uint32_t repeat = 1;
};

/// The lines of `path`; none when it is empty.
Result<std::vector<std::string>> read_labels(const std::string& path) {
  std::vector<std::string> labels;
  if (path.empty()) return labels;
  CORELANE_ASSIGN(const auto bytes, read_file(path));
  std::istringstream lines{std::string(as_string_view(bytes))};
  for (std::string line; std::getline(lines, line);) {
    // Files of Windows end their lines with two characters.
    if (!line.empty() && line.back() == '\r') line.pop_back();
    labels.push_back(std::move(line));
  }
  return labels;
}

/// The k largest elements with the names that `labels` has for them.
Json top_k(const Elements& elements, std::size_t k, const std::vector<std::string>& labels) {
  Json list = largest_json(elements, k);
  for (Json& entry : list) {
    const auto index = entry["index"].get<std::size_t>();
    if (index < labels.size()) entry["label"] = labels[index];
  }
  return list;
}

Json describe_input(const FedInput& fed) {
  return {{"name", fed.name},
          {"source", fed.source},
          {"shape", fed.shape.dims()},
          {"steps", fed.steps}};
}

/// Names of the outputs' files; two outputs never share one.
std::vector<std::string> file_names(const std::vector<TensorDesc>& descs) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const TensorDesc& desc : descs)
    names.push_back(unique_name(safe_name(desc.name), taken) + ".npy");
  return names;
}

/// Strings that are not UTF-8 are shown with a mark in place of what is wrong.
Json value_json(const ValueView& value) {
  Json list = Json::array();
  switch (value.kind()) {
    case ValueKind::kTensor:
      if (value.dtype() != DType::kString)
        return values_json(elements_of(value.tensor()).value_or(Elements()));
      for (const std::string_view text : value.strings()) list.push_back(std::string(text));
      return list;
    case ValueKind::kMap:
      return {{"keys", value_json(value.keys())}, {"values", value_json(value.values())}};
    case ValueKind::kOptional:
    case ValueKind::kSequence:
      break;
  }
  for (const ValueView& item : value.items()) list.push_back(value_json(item));
  return list;
}

/// What a flat form holds; its bytes go to the file.
Result<Json> describe_value(const Arguments& a, const TensorDesc& desc, const TensorView& view,
                            const std::string& file) {
  CORELANE_ASSIGN(const ValueView value,
                  read_value(ByteSpan(static_cast<const std::byte*>(view.data), view.size)));
  Json j{{"name", desc.name}, {"dtype", desc.value.to_string()}, {"shape", value.shape().dims()}};
  if (a.values) j["values"] = value_json(value);
  if (a.out.empty()) return j;
  const auto path = std::filesystem::path(a.out) / file;
  CORELANE_TRY(common::write_npy(path, view));
  j["file"] = path.string();
  return j;
}

Result<Json> describe_output(const Arguments& a, const TensorDesc& desc, const TensorView& view,
                             const std::string& file, const std::vector<std::string>& labels) {
  if (!desc.value.empty()) return describe_value(a, desc, view, file);
  CORELANE_ASSIGN(const Elements elements, elements_of(view));
  Json j{{"name", desc.name}, {"dtype", dtype_name(view.dtype)}, {"shape", view.shape.dims()}};
  // Bits have no order.
  if (!is_opaque(view.dtype)) j.update(figures_json(elements));
  if (a.top_k > 0 && !is_opaque(view.dtype)) j["top"] = top_k(elements, a.top_k, labels);
  if (!a.out.empty()) {
    const auto path = std::filesystem::path(a.out) / file;
    CORELANE_TRY(common::write_npy(path, view));
    j["file"] = path.string();
  }
  if (a.values) j["values"] = values_json(elements);
  return j;
}

/// A line for each input: what `run` did to it.
std::string inputs_text(const Json& inputs) {
  std::string text;
  for (const auto& i : inputs) {
    text += fmt::format("input {} {}: {}", shown(i["name"]), i["shape"].dump(), shown(i["source"]));
    for (const auto& step : i["steps"]) text += ", " + shown(step);
    text += "\n";
  }
  return text;
}

std::string as_text(const Json& out) {
  std::string text = inputs_text(out["inputs"]);
  for (const auto& o : out["outputs"]) {
    text +=
        fmt::format("{} {} {}", shown(o["name"]), o["dtype"].get<std::string>(), o["shape"].dump());
    if (o.contains("min"))
      for (const char* const key : {"min", "max", "mean"})
        text += fmt::format("  {} {}", key, number_text(o[key], "{:.6g}"));
    if (o.contains("nan")) text += fmt::format("  nan {}", o["nan"].get<std::size_t>());
    if (o.contains("file")) text += "  -> " + shown(o["file"]);
    text += "\n";
    if (o.contains("top")) {
      for (const auto& t : o["top"]) {
        text += fmt::format("  {:>6}  {}{}\n", t["index"].get<std::size_t>(),
                            number_text(t["value"], "{:.6f}"),
                            t.contains("label") ? "  " + shown(t["label"]) : "");
      }
    }
    if (o.contains("values"))
      text += "  " + o["values"].dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  }
  text += fmt::format(
      "device {:.1f} us, queue {:.1f} us, copy in {:.1f} us, copy out {:.1f} us\n",
      out["times_us"]["device"].get<double>(), out["times_us"]["queue"].get<double>(),
      out["times_us"]["copy_in"].get<double>(), out["times_us"]["copy_out"].get<double>());
  return text;
}

/// All layers, in the order of the engine; folded ones too, so that none seems to be missing.
Json layer_json(const std::vector<device::LayerTime>& layers) {
  Json list = Json::array();
  for (const auto& l : layers) {
    list.push_back({{"name", l.name},
                    {"type", l.type},
                    {"kernel", l.kernel},
                    {"us", to_us(l.duration)},
                    {"executed", l.executed}});
  }
  return list;
}

/// Layers that the engine fused into others took no time of their own and are not shown.
std::string layer_text(const Json& layers) {
  std::string text = fmt::format("{:>10}  {:<24} {:<28} {}\n", "us", "type", "kernel", "layer");
  for (const auto& l : layers) {
    if (!l["executed"].get<bool>()) continue;
    text += fmt::format("{:>10.1f}  {:<24} {:<28} {}\n", l["us"].get<double>(), shown(l["type"]),
                        shown(l["kernel"]), shown(l["name"]));
  }
  return text;
}

/// A file that cannot be written, or that is read, is found before the run, not after it.
Status check_files(const Arguments& a, const std::vector<std::string>& files) {
  if (a.out.empty()) return {};
  std::vector<OutputFile> outputs;
  for (const std::string& file : files)
    outputs.push_back({"--out", std::filesystem::path(a.out) / file});
  ReadFiles read{possible_files(a.inputs), {a.open.model}, {}};
  read.files.insert(read.files.end(), {a.open.model, a.labels});
  return check_outputs(outputs, read);
}

Result<int> run(const Global& global, const Arguments& a) {
  // Whatever the user can get wrong is read before the model, which may take long.
  CORELANE_ASSIGN(const auto labels, read_labels(a.labels));
  CORELANE_ASSIGN(auto cores, device::parse_core_set(a.cores));
  CORELANE_ASSIGN(auto program, open_program(a.open));
  CORELANE_ASSIGN(const auto offered, shapes_of_files(program.description(), a.inputs));
  CORELANE_ASSIGN(auto context, open_context(program, a.open, offered));
  CORELANE_ASSIGN(const auto fed,
                  feed_inputs(context, program.description(), {a.inputs, a.random, a.seed, true}));
  const auto files = file_names(context.outputs());
  CORELANE_TRY(check_files(a, files));
  RunOptions options;
  options.cores = cores;
  options.timeout = Duration(static_cast<std::int64_t>(a.timeout_ms * 1e6));
  for (std::uint32_t i = 0; i < a.repeat; ++i) CORELANE_TRY(context.run(options));

  // Of the last run: earlier ones warm up.
  const auto times = context.times();
  Json out{{"model", a.open.model},
           {"device", program.device()->info().instance},
           {"cores", device::CoreSet::mask(context.record().core_bits).to_string()},
           {"times_us",
            {{"copy_in", to_us(times.copy_in)},
             {"queue", to_us(times.queue)},
             {"device", to_us(times.device)},
             {"copy_out", to_us(times.copy_out)}}}};
  out["inputs"] = Json::array();
  for (const auto& f : fed) out["inputs"].push_back(describe_input(f));
  out["outputs"] = Json::array();
  // After the run: only then have outputs with open dimensions a shape.
  const auto descs = context.outputs();
  for (std::size_t i = 0; i < descs.size(); ++i) {
    CORELANE_ASSIGN(auto view, context.output(i));
    CORELANE_ASSIGN(auto j, describe_output(a, descs[i], view, files[i], labels));
    out["outputs"].push_back(std::move(j));
  }
  if (a.open.profile) {
    CORELANE_ASSIGN(auto layers, context.layer_times());
    out["layers"] = layer_json(layers);
  }
  if (global.json)  // Not both: with --values the text is as long as the outputs.
    print_json(out);
  else
    print(as_text(out) + (a.open.profile ? layer_text(out["layers"]) : ""));
  return kExitOk;
}

}  // namespace

Action add_run(CLI::App& parent, Global& global) {
  auto* app = parent.add_subcommand("run", "Run a model once on files");
  auto a = std::make_shared<Arguments>();
  add_open_options(*app, a->open);
  add_list(*app, "-i,--input", a->inputs,
           "[NAME=]FILE: .npy, .png, .jpg or .raw, in order of the inputs (repeatable)");
  app->add_flag("--random", a->random, "Reproducible random values for inputs without a file");
  app->add_option("--seed", a->seed, "Seed of --random")
      ->capture_default_str()
      ->check(between(0, 1e18));
  app->add_option("-o,--out", a->out, "Folder for the outputs as .npy files");
  app->add_option("-k,--top-k", a->top_k, "Print the K largest elements of each output")
      ->check(between(0, 1e6));
  app->add_option("--labels", a->labels, "File with a name a line, for --top-k");
  app->add_flag("--values", a->values, "All elements of the outputs, row-major (use --json)");
  app->add_option("--cores", a->cores, "any, any:2, platform, or a list such as 0,2")
      ->capture_default_str();
  app->add_option("--timeout", a->timeout_ms, "Milliseconds after which the run is abandoned")
      ->check(between(0, kLongestMs));
  app->add_option("--repeat", a->repeat, "Run that many times (default: 1), report the last")
      ->check(between(1, 1e6));
  app->add_flag("--profile", a->open.profile, "Print the time of each layer");
  add_list(*app, "--expose", a->open.exposed, "Inner values to add as outputs (repeatable)");
  return [&global, a] { return run(global, *a); };
}

}  // namespace corelane::cli
