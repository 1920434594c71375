// `corelane compare`: a model on a device against ONNX Runtime on the same inputs.
//
// ONNX Runtime is a tool dependency, not a library of ours: it runs in a Python process
// (tools/ort_reference.py), which reads and writes .npy files in a temporary folder.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "cli/tensors.h"
#include "corelane/base/file.h"

extern char** environ;  // POSIX: the environment of this process.

namespace corelane::cli {
namespace {

struct Arguments {
  OpenArguments open;
  std::string onnx;
  std::vector<std::string> inputs;
  std::uint64_t seed = 1;
  std::string python;
  std::string script;
  double max_error = 1e-3;
  double min_cosine = 0.999;
  bool layers = false;
};

/// A folder that is removed with its content.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make() {
    std::string name = (std::filesystem::temp_directory_path() / "corelane-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      return error(Code::kIo, "{}: cannot make a temporary folder: {}", name, std::strerror(errno));
    }
    return TemporaryFolder(name);
  }
  TemporaryFolder(TemporaryFolder&& o) noexcept : path_(std::exchange(o.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ec;
    if (!path_.empty()) std::filesystem::remove_all(path_, ec);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

Status run_process(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const auto& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  if (const int rc = ::posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ);
      rc != 0) {
    return failure(Code::kNotFound, "cannot start '{}': {}; give --python with onnxruntime in it",
                   words[0], std::strerror(rc));
  }
  int state = 0;
  while (::waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) {
    return failure(Code::kEngineFailed,
                   "the ONNX Runtime reference failed (its message is above); it needs a Python "
                   "with numpy and onnxruntime: --python or CORELANE_PYTHON");
  }
  return {};
}

/// `--python`, CORELANE_PYTHON, the .venv beside the build, python3.
std::string find_python(const std::string& given) {
  if (!given.empty()) return given;
  if (const char* env = std::getenv("CORELANE_PYTHON"); env != nullptr && *env != '\0') return env;
  for (auto dir = own_directory(); dir != dir.root_path(); dir = dir.parent_path()) {
    if (std::filesystem::exists(dir / ".venv/bin/python"))
      return (dir / ".venv/bin/python").string();
  }
  return "python3";
}

Result<std::string> find_script(const std::string& given) {
  if (!given.empty()) return given;
  for (auto dir = own_directory(); dir != dir.root_path(); dir = dir.parent_path()) {
    for (const char* rel : {"share/corelane/ort_reference.py", "tools/ort_reference.py"}) {
      if (std::filesystem::exists(dir / rel)) return (dir / rel).string();
    }
  }
  return error(Code::kNotFound, "tools/ort_reference.py was not found; give --script");
}

/// The model as ONNX: the file itself, or the graph inside a program file.
Result<ByteVector> onnx_bytes(const std::string& path) {
  CORELANE_ASSIGN(auto mapped, MappedFile::open(path));
  if (detect_file_kind(mapped.bytes()) == FileKind::kOnnx) {
    CORELANE_ASSIGN(auto model, import_onnx_file(path));
    return inline_constants(model.graph, model.constants);
  }
  CORELANE_ASSIGN(auto file, ProgramFile::open(path, Verify::kEverything));
  CORELANE_ASSIGN(auto graph, file->find(SegmentKind::kGraph));
  CORELANE_ASSIGN(auto constants, file->find(SegmentKind::kConstants));
  if (!graph) {
    return error(Code::kUnsupported, "{} holds no graph to compare with; give --onnx", path);
  }
  return inline_constants(*graph, constants.value_or(ByteSpan{}));
}

Json difference(const std::vector<float>& ours, const std::vector<float>& theirs) {
  double worst = 0, peak = 0, dot = 0, a2 = 0, b2 = 0;
  std::size_t bad = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double a = ours[i], b = theirs[i];
    if (std::isnan(a) != std::isnan(b) || (std::isinf(a) != std::isinf(b))) {
      ++bad;
      continue;
    }
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    worst = std::max(worst, std::fabs(a - b));
    peak = std::max(peak, std::fabs(b));
    dot += a * b;
    a2 += a * a;
    b2 += b * b;
  }
  const double cosine = a2 > 0 && b2 > 0 ? dot / std::sqrt(a2 * b2) : (a2 == b2 ? 1.0 : 0.0);
  return {{"max_error", worst},
          {"max_relative_error", peak > 0 ? worst / peak : worst},
          {"cosine", cosine},
          {"not_finite_differs", bad}};
}

Result<Json> compare_output(const Arguments& a, const std::string& name, const tools::Array& ours,
                            const std::filesystem::path& reference) {
  CORELANE_ASSIGN(auto theirs, tools::read_npy(reference));
  Json j{{"name", name}, {"shape", ours.shape.dims()}};
  if (!(ours.shape == theirs.shape)) {
    j["ok"] = false;
    j["reference_shape"] = theirs.shape.dims();
    return j;
  }
  CORELANE_ASSIGN(auto x, as_floats(ours.view()));
  CORELANE_ASSIGN(auto y, as_floats(theirs.view()));
  j.update(difference(x, y));
  j["ok"] = j["max_relative_error"].get<double>() <= a.max_error &&
            j["cosine"].get<double>() >= a.min_cosine && j["not_finite_differs"] == 0;
  return j;
}

/// Writes model and inputs, runs the reference, compares output by output.
Result<Json> compare(const Arguments& a, Context& context,
                     const std::vector<std::string>& exposed) {
  CORELANE_ASSIGN(auto folder, TemporaryFolder::make());
  CORELANE_ASSIGN(auto onnx, onnx_bytes(a.onnx.empty() ? a.open.model : a.onnx));
  CORELANE_TRY(write_file_atomic(folder.path() / "model.onnx", onnx));
  CORELANE_ASSIGN(auto inputs, copy_inputs(context));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    CORELANE_TRY(tools::write_npy(folder.path() / fmt::format("in{}.npy", i), inputs[i].view()));
  }
  CORELANE_ASSIGN(auto script, find_script(a.script));
  std::vector<std::string> words{find_python(a.python), script, folder.path().string()};
  words.insert(words.end(), exposed.begin(), exposed.end());
  CORELANE_TRY(run_process(words));
  CORELANE_TRY(context.run());
  const auto descs = context.outputs();
  CORELANE_ASSIGN(auto ours, copy_outputs(context, descs.size()));
  Json list = Json::array();
  for (std::size_t i = 0; i < descs.size(); ++i) {
    const auto reference = folder.path() / fmt::format("out{}.npy", i);
    if (!std::filesystem::exists(reference)) continue;  // A value the reference does not have.
    CORELANE_ASSIGN(auto j, compare_output(a, descs[i].name, ours[i], reference));
    list.push_back(std::move(j));
  }
  return list;
}

/// Names of the values between layers that both sides can show, from the reference script.
Result<std::vector<std::string>> inner_values(const Arguments& a) {
  CORELANE_ASSIGN(auto folder, TemporaryFolder::make());
  CORELANE_ASSIGN(auto onnx, onnx_bytes(a.onnx.empty() ? a.open.model : a.onnx));
  CORELANE_TRY(write_file_atomic(folder.path() / "model.onnx", onnx));
  CORELANE_ASSIGN(auto script, find_script(a.script));
  CORELANE_TRY(run_process({find_python(a.python), script, "--list", folder.path().string()}));
  CORELANE_ASSIGN(auto bytes, read_file(folder.path() / "values.json"));
  const auto parsed = Json::parse(as_string_view(bytes), nullptr, false);
  if (!parsed.is_array()) return error(Code::kInternal, "values.json is not a list");
  return parsed.get<std::vector<std::string>>();
}

std::string as_text(const Json& out) {
  std::string text =
      fmt::format("{:<5} {:>12} {:>12} {:>12}  output\n", "", "max error", "relative", "cosine");
  for (const auto& j : out["outputs"]) {
    if (!j.contains("cosine")) {
      text += fmt::format("FAIL  shape {} here, {} in the reference  {}\n", j["shape"].dump(),
                          j["reference_shape"].dump(), j["name"].get<std::string>());
      continue;
    }
    text += fmt::format("{:<5} {:>12.3e} {:>12.3e} {:>12.9f}  {}\n",
                        j["ok"].get<bool>() ? "ok" : "FAIL", j["max_error"].get<double>(),
                        j["max_relative_error"].get<double>(), j["cosine"].get<double>(),
                        j["name"].get<std::string>());
  }
  return text;
}

Result<int> run(const Global& global, Arguments a) {
  if (a.layers) {
    CORELANE_ASSIGN(a.open.exposed, inner_values(a));
  }
  CORELANE_ASSIGN(auto program, open_program(a.open));
  CORELANE_ASSIGN(auto context, open_context(program, a.open));
  if (a.inputs.empty()) {
    CORELANE_TRY(feed_random(context, {}, a.seed));
  } else {
    CORELANE_TRY(feed_files(context, program.description(), a.inputs));
  }
  CORELANE_ASSIGN(auto list, compare(a, context, a.open.exposed));
  bool ok = !list.empty();
  for (const auto& j : list) ok = ok && j["ok"].get<bool>();
  const Json out{{"model", a.open.model},
                 {"device", program.device()->info().instance},
                 {"ok", ok},
                 {"max_relative_error_allowed", a.max_error},
                 {"min_cosine", a.min_cosine},
                 {"outputs", list}};
  if (global.json) {
    print_json(out);
  } else {
    print(as_text(out));
  }
  return ok ? kExitOk : kExitCheckFailed;
}

}  // namespace

Action add_compare(CLI::App& parent, Global& global) {
  auto* app = parent.add_subcommand("compare", "Compare a model's results with ONNX Runtime's");
  auto a = std::make_shared<Arguments>();
  add_open_options(*app, a->open);
  app->add_option("--onnx", a->onnx, "Reference model (default: the one inside the program)");
  app->add_option("-i,--input", a->inputs, "[NAME=]FILE as in `run` (default: random)");
  app->add_option("--seed", a->seed, "Seed of random inputs")->capture_default_str();
  app->add_option("--max-error", a->max_error, "Allowed error relative to the largest element")
      ->capture_default_str();
  app->add_option("--min-cosine", a->min_cosine, "Least cosine similarity")->capture_default_str();
  app->add_flag("--layers", a->layers, "Compare every inner value as well");
  app->add_option("--python", a->python, "Python with numpy and onnxruntime");
  app->add_option("--script", a->script, "Where ort_reference.py lies");
  return [&global, a] { return run(global, *a); };
}

}  // namespace corelane::cli
