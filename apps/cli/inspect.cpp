// `corelane inspect`: prints what a program file or an ONNX model holds, without running it; with
// --load also how a device takes it.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

#include "cli/command.h"
#include "cli/compile_target.h"
#include "cli/qaic/container_report.h"
#include "corelane/base/file.h"
#include "corelane/base/printable.h"
#include "corelane/device/device.h"
#include "corelane/onnx/onnx_import.h"
#include "corelane/program/program_file.h"
#include "corelane/runtime/file_kind.h"

namespace corelane::cli {
namespace {

struct Arguments {
  std::string model;
  std::string part;
  std::string device;
  bool verify = false;
  bool load = false;
  bool buffers = false;
};

/// One line for each input or output: as it is computed with, and as a door offers it.
std::string describe_io(const char* title, const std::vector<IoEntry>& entries) {
  std::string text = std::string(title) + "\n";
  for (const auto& e : entries) {
    text += fmt::format("  {}  reported {} {}", e.desc.to_string(), dtype_name(e.reported_dtype),
                        layout_name(e.preferred_layout));
    if (e.quant.kind != QuantKind::kNone)
      text += fmt::format("  offered as {} {}", dtype_name(e.quant_dtype), e.quant.to_string());
    if (e.partial_allowed) text += "  partial allowed";
    if (!e.mean.empty()) text += fmt::format("  mean/std of {} channels", e.mean.size());
    text += "\n";
  }
  return text;
}

/// Bytes of a verdict that are shown.
constexpr std::size_t kMostReason = 1024;

/// Text of a model on one line, cut where it is long.
std::string one_line(const std::string& text, std::size_t longest = 60) {
  return printable(text.substr(0, longest)) + (text.size() > longest ? "..." : "");
}

/// The description as text; --json has all of it, this what a person asks for.
std::string describe(const ProgramDescription& d) {
  std::string text = fmt::format(
      "{}  (opset {}{}; {})\n", d.name.empty() ? "(unnamed)" : one_line(d.name), d.opset,
      d.producer.empty() ? "" : ", " + one_line(d.producer), d.compiler_version);
  text += fmt::format(
      "  {} nodes, constants {}, {}batch {}, cores {}\n", d.node_count,
      human_bytes(d.constant_bytes),
      d.macs == 0 ? "" : fmt::format("{:.3f} GMAC, ", static_cast<double>(d.macs) / 1e9), d.batch,
      d.cores);
  if (d.batch_range) {
    text += fmt::format("  each batch from {} to {}, which dimension 0 of the inputs names\n",
                        d.batch_range->low, d.batch_range->high);
  }
  if (!d.custom_string.empty()) text += "  custom string: " + one_line(d.custom_string) + "\n";
  text += describe_io("Inputs", d.inputs) + describe_io("Outputs", d.outputs);
  if (!d.overridable.empty()) text += describe_io("Overridable initializers", d.overridable);
  for (std::size_t k = 0; k < d.shape_sets.size(); ++k) {
    text += fmt::format("Shape set {}:", k);
    for (const auto& s : d.shape_sets[k]) text += " " + s.to_string();
    text += "\n";
  }
  for (const StateDecl& state : d.states) text += state_text(state);
  for (const auto& c : d.custom_operators)
    text += fmt::format("Custom operator {} ({} nodes)\n", printable(c.type), c.nodes);
  for (const auto& f : d.findings) {
    text += fmt::format("{} {} '{}': {}\n",
                        f.kind == ImportFinding::Kind::kRewritten ? "Rewritten" : "Warning",
                        printable(f.op), printable(f.node), printable(f.text));
  }
  for (const auto& [key, value] : d.metadata)
    text += fmt::format("Metadata {} = {}\n", one_line(key), one_line(value));
  return text;
}

/// "Part decoder (graph name): ..." of each network in a file of several.
std::string list_parts(const ProgramFile& file, Json& out) {
  std::string text;
  for (std::size_t i = 0; i < file.part_count(); ++i) {
    const ProgramDescription& d = file.description(i);
    std::uint64_t bytes = 0;
    for (const auto& s : file.segments())
      if (s.part == i && s.kind != SegmentKind::kConstants) bytes += s.size;
    out.push_back({{"name", d.part},
                   {"nodes", d.node_count},
                   {"constant_bytes", d.constant_bytes},
                   {"segment_bytes", bytes},
                   {"inputs", d.inputs.size()},
                   {"outputs", d.outputs.size()}});
    text += fmt::format("Part {:<16} {} nodes, constants {}, {} of its own; {} in, {} out\n",
                        one_line(d.part), d.node_count, human_bytes(d.constant_bytes),
                        human_bytes(bytes), d.inputs.size(), d.outputs.size());
  }
  return text;
}

/// "Chain model/0 -> [x] -> model/1": the parts of a network that was cut, and what each gets of
/// those before it.
std::string show_chain(const ProgramFile& file) {
  std::string text;
  std::set<std::string_view> made;
  for (std::size_t i = 1; i < file.part_count(); ++i) {
    const ProgramDescription& d = file.description(i);
    std::string links;
    for (const IoEntry& input : d.inputs)
      if (made.contains(input.desc.name))
        links += (links.empty() ? "" : ", ") + input.desc.to_string();
    text += fmt::format("{}{}", i == 1 ? "Chain      " : fmt::format(" -> [{}] -> ", links),
                        one_line(d.part));
    for (const IoEntry& output : d.outputs) made.insert(output.desc.name);
  }
  return printable(text) + "\n";
}

/// A line for each segment of `kind`: "Verdict openvino/3: ..." of each engine that would compute
/// the network wrongly, "Trial OpenVINO ...: onnxruntime 0.81 21 one" of those that were timed.
Result<Json> list_texts(const ProgramFile& file, std::size_t part, SegmentKind kind,
                        std::string_view title, std::string& text) {
  Json list = Json::array();
  for (std::size_t i = 0; i < file.segments().size(); ++i) {
    const SegmentInfo& s = file.segments()[i];
    if (s.kind != kind || s.part != part) continue;
    CORELANE_ASSIGN(const ByteSpan bytes, file.segment(i));
    const std::string line = one_line(std::string(as_string_view(bytes)), kMostReason);
    list.push_back({{"tag", s.tag}, {"text", line}});
    text += fmt::format("{:<10} {}: {}\n", title, printable(s.tag), line);
  }
  return list;
}

/// What a program file holds, of one part where it has several.
Status inspect_program(const ProgramFile& file, const std::string& part, Json& out,
                       std::string& text) {
  CORELANE_ASSIGN(const std::size_t index, file.find_part(part));
  const bool parts = !file.description().part.empty();
  if (parts) {
    // First, so that who looks at one knows of the others.
    out["parts"] = Json::array();
    text += list_parts(file, out["parts"]);
    if (file.is_chain()) text += show_chain(file);
    for (std::size_t i = 1; file.is_chain() && i < file.part_count(); ++i)
      out["chain"].push_back(file.description(i).part);
  }
  out["program"] = to_json(file.description(index));
  if (parts) text += fmt::format("Of part {}:\n", one_line(file.description(index).part));
  text += describe(file.description(index));
  CORELANE_ASSIGN(out["verdicts"], list_texts(file, index, SegmentKind::kVerdict, "Verdict", text));
  CORELANE_ASSIGN(out["trials"], list_texts(file, index, SegmentKind::kTrial, "Trial", text));
  out["segments"] = Json::array();
  for (const auto& s : file.segments()) {
    out["segments"].push_back({{"kind", segment_kind_name(s.kind)},
                               {"tag", s.tag},
                               {"offset", s.offset},
                               {"size", s.size},
                               {"crc32c", fmt::format("{:08x}", s.crc32c)}});
    const bool own = parts && s.kind != SegmentKind::kConstants;
    if (own) out["segments"].back()["part"] = file.description(s.part).part;
    text +=
        fmt::format("Segment {:<11} at {:>9}  {:>10}  crc32c {:08x}  {}{}\n",
                    segment_kind_name(s.kind), s.offset, human_bytes(s.size), s.crc32c,
                    printable(s.tag), own ? "  of " + one_line(file.description(s.part).part) : "");
  }
  return {};
}

/// Another compiler's container: what it lists, nothing of what it holds.
Result<Json> inspect_vendor(const Arguments& a, ByteSpan bytes, std::string& text) {
  constexpr const char* kKind = "container of the vendor's compiler";
  if (a.load || a.verify || a.buffers || !a.part.empty()) {
    return error(
        Code::kForeignImage,
        "'{}' is a {}: only its segments are listed; leave --load, --verify, --buffers and "
        "--part out, or compile its ONNX model",
        a.model, kKind);
  }
  CORELANE_ASSIGN(const VendorContainer container, VendorContainer::read(bytes));
  text = fmt::format("{}: {} ({})\n", printable(a.model), kKind, human_bytes(bytes.size()));
  return Json{{"file", a.model},
              {"kind", kKind},
              {"bytes", bytes.size()},
              {"container", vendor_json(container, text)}};
}

/// The report as JSON, and as `text` for people.
Result<Json> inspect_file(const Arguments& a, std::string& text) {
  CORELANE_ASSIGN(auto mapped, MappedFile::open(a.model));
  if (is_vendor_container(mapped.bytes())) return inspect_vendor(a, mapped.bytes(), text);
  const auto kind = file_kind(mapped.bytes());
  Json out{{"file", a.model}, {"kind", file_kind_name(kind)}, {"bytes", mapped.bytes().size()}};
  text = fmt::format("{}: {} ({})\n", printable(a.model), file_kind_name(kind),
                     human_bytes(mapped.bytes().size()));
  if (kind != FileKind::kProgram && !a.part.empty()) {
    return error(Code::kInvalidArgument,
                 "--part {}: '{}' is one network; only program files have "
                 "parts",
                 a.part, a.model);
  }
  if (kind == FileKind::kOnnx) {
    if (a.buffers) {
      return error(Code::kInvalidArgument,
                   "--buffers lists the programs of a program file; '{}' is an ONNX model: compile "
                   "it first",
                   a.model);
    }
    if (a.verify) {
      return error(Code::kInvalidArgument,
                   "--verify checks the checksums of a program file; '{}' is an ONNX model, which "
                   "has none: leave it out",
                   a.model);
    }
    // What `compile` would write; nothing is written here.
    CORELANE_ASSIGN(auto model, import_onnx_file(a.model));
    out["program"] = to_json(model.description);
    text += describe(model.description);
    out["lowered"] = Json::array();
    for (const LoweredGraph& form : model.lowered) {
      out["lowered"].push_back(
          {{"tag", form.tag}, {"bytes", form.graph.size()}, {"unfit", form.unfit}});
      text += fmt::format("Lowered    {}: {}\n", form.tag,
                          form.graph.empty() ? "as given" : human_bytes(form.graph.size()));
      if (!form.unfit.empty())
        text += fmt::format("Verdict    {}: {}\n", form.tag, printable(form.unfit));
    }
    return out;
  }
  // What an opaque image holds only its device can say: run() asks it.
  if (kind != FileKind::kProgram && a.load && !a.verify) return out;
  CORELANE_ASSIGN(auto file,
                  ProgramFile::open(a.model, a.verify ? Verify::kEverything : Verify::kHeader,
                                    foreign_files()));
  CORELANE_TRY(inspect_program(*file, a.part, out, text));
  if (a.buffers) out["container"] = container_json(*file, text);
  return out;
}

bool is_static(const ProgramForm& form) {
  return std::ranges::all_of(form.input_shapes, [](const Shape& s) { return s.is_static(); });
}

/// A folder that `compile --target` wrote stands for its file.
Arguments in_folder(Arguments a) {
  std::error_code ec;
  const auto file = target_file(a.model);
  if (std::filesystem::is_regular_file(file, ec)) a.model = file.string();
  return a;
}

Result<int> run(const Global& global, const Arguments& given) {
  const Arguments a = in_folder(given);
  std::string text;
  CORELANE_ASSIGN(auto out, inspect_file(a, text));
  if (a.load) {
    // As `run` opens it, with the cache.
    OpenArguments open;
    open.model = a.model;
    open.part = a.part;
    open.device = a.device;
    CORELANE_ASSIGN(auto program, open_program(open));
    if (!out.contains("program")) {
      out["program"] = to_json(program.description());
      text += describe_io("Inputs", program.description().inputs) +
              describe_io("Outputs", program.description().outputs);
    }
    // The first context prepares the executable: placement and memory are not known before.
    CORELANE_ASSIGN(auto context, program.new_context());
    const device::EngineChoice engine = program.engine();
    const char* placement = program.placement() == device::Placement::kReplicated ? "replicated"
                            : program.placement() == device::Placement::kShared   ? "shared"
                                                                                  : "opaque";
    out["loaded"] = {{"device", program.device()->info().instance},
                     {"placement", placement},
                     {"precompiled", program.precompiled()},
                     {"engine", engine.engine},
                     {"why_engine", engine.why},
                     {"forms", forms_json(program)},
                     {"memory", to_json(program.memory())}};
    const auto memory = program.memory();
    const char* constants = program.placement() == device::Placement::kReplicated
                                ? "constants: a copy for each core"
                            : program.placement() == device::Placement::kShared
                                ? "constants: shared by the cores"
                                : "constants: only the device knows where";
    text += fmt::format("Loaded on {}: {}, {}; memory weights {}, internal {}, code {}\n",
                        program.device()->info().instance, constants,
                        program.precompiled() ? "pre-compiled" : "compiled now",
                        human_bytes(memory.weights), human_bytes(memory.internal),
                        human_bytes(memory.code));
    text += fmt::format("Engine     {}\n", printable(engine_text(engine)));
    const std::vector<ProgramForm> forms = program.forms();
    const ProgramDescription& d = program.description();
    if (!d.batch_range && !forms.empty() && !is_static(forms.front()))
      text +=
          "Form for all shapes; where static forms are on, those that come back get their own\n";
  }
  print(global, out, text);
  return kExitOk;
}

}  // namespace

Action add_inspect(CLI::App& parent, Global& global) {
  auto* app = parent.add_subcommand("inspect", "Show what a program file or ONNX model holds");
  auto a = std::make_shared<Arguments>();
  app->add_option(
         "model", a->model,
         "Program file, folder with programqpc.bin, ONNX model, or with --load an image of the "
         "device")
      ->required();
  app->add_option("--part", a->part, "Network of a program file of several (default: the first)");
  app->add_flag("--verify", a->verify, "Check the CRC of every segment of a program file");
  app->add_flag("--buffers", a->buffers,
                "The programs of a file as the object runtime gives them: cores, buffers, "
                "specializations");
  auto* load = app->add_flag(
      "--load", a->load, "Also load it and show where its constants lie, its engine and memory");
  app->add_option("-d,--device", a->device, "Device for --load")->needs(load);
  return [&global, a] { return run(global, *a); };
}

}  // namespace corelane::cli
