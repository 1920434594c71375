#include "cli/reference_engine.h"

#include <fmt/format.h>

#include "corelane/base/file.h"
#include "corelane/onnx/onnx_import.h"
#include "corelane/program/program_file.h"
#include "corelane/runtime/file_kind.h"

namespace corelane::cli {
namespace {

constexpr std::string_view kNeeds =
    "compare needs a Python with numpy, onnx and onnxruntime: --python or CORELANE_PYTHON";

/// kEngineFailed when it does not do its work.
Status run_process(const std::vector<std::string>& words) {
  CORELANE_ASSIGN(const int code, run_python(words, kNeeds));
  if (code == 0) return {};
  return error(Code::kEngineFailed, "the ONNX Runtime reference failed (its message is above); {}",
               kNeeds);
}

Result<std::string> find_script(const std::string& given) {
  if (!given.empty()) {
    if (is_file(given)) return given;
    return error(Code::kNotFound,
                 "--script '{}' is not a file; it is tools/ort_reference.py of the "
                 "source tree, share/corelane/ort_reference.py of an installation",
                 given);
  }
  for (auto dir = own_directory(); dir != dir.root_path(); dir = dir.parent_path()) {
    for (const char* rel : {"share/corelane/ort_reference.py", "tools/ort_reference.py"})
      if (is_file(dir / rel)) return (dir / rel).string();
  }
  return error(Code::kNotFound, "tools/ort_reference.py was not found; give --script");
}

Result<bool> is_onnx(const std::string& path) {
  CORELANE_ASSIGN(auto mapped, MappedFile::open(path));
  return detect_file_kind(mapped.bytes()) == FileKind::kOnnx;
}

/// The network as the program holds it: what the import made of an ONNX model, or the graph inside
/// a program file.
Result<ByteVector> program_graph(const std::string& path, const ImportOptions& import,
                                 const std::string& part) {
  CORELANE_ASSIGN(const bool onnx, is_onnx(path));
  if (onnx) {
    CORELANE_ASSIGN(auto model, import_onnx_file(path, import));
    return inline_constants(model.graph, model.constants);
  }
  CORELANE_ASSIGN(auto file, ProgramFile::open(path, Verify::kEverything, foreign_files()));
  CORELANE_ASSIGN(const std::size_t index, file->find_part(part));
  if (file->is_chain() && index == 0) {
    return error(Code::kUnsupported,
                 "{} was cut into parts, and holds no graph of the whole to compare with; give the "
                 "model with --onnx, without --layers; or compare a part (--part NAME)",
                 path);
  }
  CORELANE_ASSIGN(auto graph, file->find(SegmentKind::kGraph, {}, index));
  CORELANE_ASSIGN(auto constants, file->find(SegmentKind::kConstants));
  if (!graph)
    return error(Code::kUnsupported, "{} holds no graph to compare with; give --onnx", path);
  return inline_constants(*graph, constants.value_or(ByteSpan{}));
}

}  // namespace

Result<ReferenceEngine> ReferenceEngine::make(Options options) {
  CORELANE_ASSIGN(auto folder, TemporaryFolder::make());
  options.python = find_python(options.python);
  CORELANE_ASSIGN(options.script, find_script(options.script));
  ReferenceEngine engine(std::move(options), std::move(folder));
  const Options& o = engine.options_;
  CORELANE_ASSIGN(const bool model_is_onnx, is_onnx(o.model));
  if (!o.onnx.empty() || model_is_onnx) {
    // The model as it was given, beside its external data: the rewrites are under test too.
    engine.source_ = o.onnx.empty() ? o.model : o.onnx;
    CORELANE_ASSIGN(const bool fits, is_onnx(engine.source_));
    if (!fits) return error(Code::kInvalidArgument, "--onnx {}: not an ONNX model", engine.source_);
    engine.reference_ = std::filesystem::absolute(engine.source_);
    return engine;
  }
  engine.source_ = "the graph inside " + o.model;
  engine.reference_ = engine.folder_.path() / "reference.onnx";
  CORELANE_ASSIGN(auto graph, program_graph(o.model, o.import, o.part));
  CORELANE_TRY(write_file_atomic(engine.reference_, graph));
  return engine;
}

Result<InnerValues> ReferenceEngine::inner_values() const {
  CORELANE_ASSIGN(auto graph, program_graph(options_.model, options_.import, options_.part));
  const auto program = folder_.path() / "program.onnx";
  const auto list = folder_.path() / "values.json";
  CORELANE_TRY(write_file_atomic(program, graph));
  CORELANE_TRY(run_process({options_.python, options_.script, "--list", reference_.string(),
                            program.string(), list.string()}));
  CORELANE_ASSIGN(auto bytes, read_file(list));
  // A document of our own script; at() throws where it is not what it should be.
  const auto parsed = Json::parse(as_string_view(bytes), nullptr, false);
  if (!parsed.is_object()) return error(Code::kInternal, "values.json is not an object");
  InnerValues values;
  values.shared = parsed.at("shared").get<std::vector<std::string>>();
  for (const auto& v : parsed.at("left_out"))
    values.left_out.push_back({v.at("name").get<std::string>(), v.at("reason").get<std::string>()});
  return values;
}

Status ReferenceEngine::run(const std::vector<common::Array>& inputs,
                            const std::vector<std::string>& exposed) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    CORELANE_TRY(common::write_npy(folder_.path() / fmt::format("in{}.npy", i), inputs[i].view()));
  // The script reads in<i>.npy of this folder, and writes out<i>.npy for each output it computes.
  std::vector<std::string> words{options_.python, options_.script, reference_.string(),
                                 folder_.path().string()};
  words.insert(words.end(), exposed.begin(), exposed.end());
  return run_process(words);
}

Result<std::optional<common::Array>> ReferenceEngine::output(std::size_t i) const {
  const auto path = folder_.path() / fmt::format("out{}.npy", i);
  if (!is_file(path)) return std::nullopt;
  CORELANE_ASSIGN(auto array, common::read_npy(path));
  return array;
}

}  // namespace corelane::cli
