// corelane._native.compile, describe, network and external_data: what `corelane compile` does, for
// Python.
#include "adapters/python/py_compile.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "adapters/interpreter/py_gate.h"
#include "adapters/python/py_errors.h"
#include "adapters/python/py_values.h"
#include "corelane/base/file.h"
#include "corelane/onnx/onnx_import.h"
#include "corelane/program/program_file.h"
#include "corelane/runtime/external_data.h"
#include "corelane/runtime/file_kind.h"
#include "corelane/runtime/program.h"

namespace corelane::python {

using namespace interpreter;

namespace nb = nanobind;

// The buffer is released with the lock: sources live in functions that hold it at both ends.
ModelSource::ModelSource(nb::handle source) {
  if (PyUnicode_Check(source.ptr()))
    path_ = nb::cast<std::string>(source);
  else if (PyObject_GetBuffer(source.ptr(), &buffer_, PyBUF_SIMPLE) != 0)
    throw nb::python_error();
}

ModelSource::~ModelSource() {
  if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
}

namespace {

using Dims = std::vector<std::int64_t>;

LayoutKind layout_of(const std::string& name) {
  // "nchw" is the word of users; NC1HWC2 is a chip's own and not for them.
  const auto kind = layout_from_name(name == "nchw" ? "plain" : name);
  if (!kind || *kind == LayoutKind::kNC1HWC2) {
    raise(error(Code::kInvalidArgument,
                "layout '{}': allowed are nhwc and nchw (also called plain)", name));
  }
  return *kind;
}

DType io_dtype_of(const std::string& name) {
  const auto type = dtype_from_name(name);
  if (!type) {
    raise(error(Code::kInvalidArgument,
                "io_dtype '{}' is not an element type; allowed are f32, f16, bf16 and f64", name));
  }
  return *type;
}

ImportOptions import_options(const nb::dict& given) {
  ImportOptions import;
  for (auto& [name, dims] : taken<std::map<std::string, Dims>>(given, "input_shapes"))
    import.input_shapes.emplace(name, Shape(std::move(dims)));
  for (auto& set : taken<std::vector<std::vector<Dims>>>(given, "shape_sets")) {
    std::vector<Shape>& shapes = import.shape_sets.emplace_back();
    for (Dims& dims : set) shapes.emplace_back(std::move(dims));
  }
  for (auto& [output, input] : taken<std::map<std::string, std::string>>(given, "states"))
    import.states.push_back({output, input});
  take(given, "dims", import.dims);
  take(given, "custom_operators", import.custom_operators);
  take(given, "mean", import.mean);
  take(given, "std", import.std);
  take(given, "custom_string", import.custom_string);
  take(given, "batch", import.batch);
  take(given, "cores", import.cores);
  take(given, "strict_links", import.strict_links);
  if (const auto name = taken<std::string>(given, "io_dtype"); !name.empty())
    import.io_dtype = io_dtype_of(name);
  if (const auto name = taken<std::string>(given, "layout"); !name.empty())
    import.input_layout = layout_of(name);
  // The words of the command line, which are said the other way round.
  import.refuse_known_wrong = !taken<bool>(given, "allow_known_wrong");
  import.external_data_root = taken<std::string>(given, "data_root");
  return import;
}

CompileOptions compile_options(const nb::dict& given) {
  CompileOptions options;
  options.import = import_options(given);
  take(given, "precompile", options.precompile);
  take(given, "time_engines", options.time_engines);
  take(given, "device", options.device);
  take(given, "remove_weights", options.remove_weights);
  for (auto& [kind, path] : taken<std::map<std::string, std::string>>(given, "attach"))
    options.attach.emplace_back(kind, path);
  return options;
}

nb::bytes as_bytes(const ByteVector& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

nb::bytes compile(nb::handle model, const nb::dict& given) {
  const ModelSource source(model);
  const CompileOptions options = compile_options(given);
  return as_bytes(value_of(without_lock([&] {
    return source.is_path() ? compile_file(source.path(), options)
                            : compile_bytes(source.bytes(), options);
  })));
}

Result<std::shared_ptr<const ProgramFile>> open_program(const ModelSource& source) {
  // So that a vendor's file is refused as such, and not as a broken one.
  const auto foreign = foreign_files();
  return source.is_path()
             ? ProgramFile::open(source.path(), Verify::kHeader, foreign)
             : ProgramFile::from_bytes(source.bytes(), nullptr, Verify::kHeader, foreign);
}

Result<FileKind> kind_of(const ModelSource& source) {
  if (!source.is_path()) return detect_file_kind(source.bytes());
  CORELANE_ASSIGN(const auto mapped, MappedFile::open(source.path()));
  return detect_file_kind(mapped.bytes());
}

Result<ImportedModel> import(const ModelSource& source, const ImportOptions& options) {
  return source.is_path() ? import_onnx_file(source.path(), options)
                          : import_onnx(source.bytes(), options);
}

Result<ProgramDescription> description_of(const ModelSource& source, const ImportOptions& options) {
  // An ONNX model is described as its program would be.
  CORELANE_ASSIGN(const FileKind kind, kind_of(source));
  if (kind == FileKind::kOnnx) {
    CORELANE_ASSIGN(auto model, import(source, options));
    return std::move(model.description);
  }
  CORELANE_ASSIGN(const auto file, open_program(source));
  return file->description();
}

/// Describes a program file or an ONNX model, without a device.
nb::dict describe(nb::handle model, const nb::dict& given) {
  const ModelSource source(model);
  const ImportOptions options = import_options(given);
  const ProgramDescription description =
      value_of(without_lock([&] { return description_of(source, options); }));
  nb::dict shown = show_description(description);
  shown["inputs"] = show_entries(description.inputs);
  shown["outputs"] = show_entries(description.outputs);
  shown["batch"] = description.batch;
  shown["cores"] = description.cores;
  return shown;
}

Result<ByteVector> network_of(const ModelSource& source, const ImportOptions& options) {
  CORELANE_ASSIGN(const FileKind kind, kind_of(source));
  if (kind == FileKind::kOnnx) {
    CORELANE_ASSIGN(const auto model, import(source, options));
    return inline_constants(model.graph, model.constants);
  }
  CORELANE_ASSIGN(const auto file, open_program(source));
  CORELANE_ASSIGN(const auto graph, file->find(SegmentKind::kGraph));
  CORELANE_ASSIGN(const auto constants, file->find(SegmentKind::kConstants));
  // A program may hold a vendor's image alone.
  if (!graph) return error(Code::kUnsupported, "the program holds no graph");
  return inline_constants(*graph, constants.value_or(ByteSpan{}));
}

/// The network as the program holds it, as bytes of an ONNX model.
nb::bytes network(nb::handle model, const nb::dict& given) {
  const ModelSource source(model);
  const ImportOptions options = import_options(given);
  return as_bytes(value_of(without_lock([&] { return network_of(source, options); })));
}

Result<std::vector<std::filesystem::path>> external_data_of(const ModelSource& source,
                                                            std::filesystem::path root) {
  if (!source.is_path()) {
    if (root.empty()) return std::vector<std::filesystem::path>{};
    return external_data_files(source.bytes(), root);
  }
  CORELANE_ASSIGN(const auto mapped, MappedFile::open(source.path()));
  if (root.empty()) root = std::filesystem::path(source.path()).parent_path();
  return external_data_files(mapped.bytes(), root);
}

/// Paths of the files, as bytes, that hold constants of an ONNX model. None of bytes without a
/// root.
nb::list external_data(nb::handle model, const std::string& root) {
  const ModelSource source(model);
  nb::list files;
  for (const auto& file : value_of(without_lock([&] { return external_data_of(source, root); })))
    files.append(nb::bytes(file.c_str(), file.native().size()));
  return files;
}

}  // namespace

void bind_compile(nb::module_& module) {
  using nb::arg;
  module.def("compile", &compile, arg("model"), arg("options") = nb::dict());
  module.def("describe", &describe, arg("model"), arg("options") = nb::dict());
  module.def("external_data", &external_data, arg("model"), arg("root") = "");
  module.def("network", &network, arg("model"), arg("options") = nb::dict());
}

}  // namespace corelane::python
