// Imports one ONNX file and writes the model as the engine would get it, constants inlined: for
// looking at rewrites, and for running them in another runtime.
//
//     onnx_import_tool IN.onnx OUT.onnx [--warn] [--dim NAME=N]... [--shape INPUT=1,3,?,?]...
//     onnx_import_tool --dir IN OUT                  every *.onnx of a folder; errors to NAME.error

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "corelane/base/file.h"
#include "corelane/onnx/onnx_import.h"

namespace {

using corelane::Status;
namespace fs = std::filesystem;

Status convert(const fs::path& in, const fs::path& out, const corelane::ImportOptions& options,
               bool print) {
  CORELANE_ASSIGN(const auto imported, corelane::import_onnx_file(in, options));
  for (const auto& finding : imported.description.findings) {
    if (print) {
      std::printf("%s: node %s (%s): %s\n", in.c_str(), finding.node.c_str(), finding.op.c_str(),
                  finding.text.c_str());
    }
  }
  if (print) {
    for (const auto& o : imported.description.outputs) {
      std::printf("output %s, reported %s\n", o.desc.to_string().c_str(),
                  std::string(corelane::dtype_name(o.reported_dtype)).c_str());
    }
    std::printf("nodes %llu constants %llu macs %llu\n",
                static_cast<unsigned long long>(imported.description.node_count),
                static_cast<unsigned long long>(imported.description.constant_bytes),
                static_cast<unsigned long long>(imported.description.macs));
  }
  CORELANE_ASSIGN(const auto model, corelane::inline_constants(imported.graph, imported.constants));
  return corelane::write_file_atomic(out, model);
}

int convert_folder(const fs::path& in, const fs::path& out) {
  int failed = 0;
  fs::create_directories(out);
  for (const auto& entry : fs::directory_iterator(in)) {
    if (entry.path().extension() != ".onnx") continue;
    const fs::path target = out / entry.path().filename();
    const fs::path error = fs::path(target).replace_extension(".error");
    fs::remove(error);
    fs::remove(target);
    const Status status = convert(entry.path(), target, {}, false);
    if (status.ok()) continue;
    ++failed;
    const Status written =
        corelane::write_file_atomic(error, corelane::as_byte_span(status.to_string()));
    if (!written.ok()) std::fprintf(stderr, "%s\n", written.to_string().c_str());
  }
  std::printf("%d refused\n", failed);
  return 0;
}

/// False for what is not an option.
bool read_option(const std::string& key, const std::string& value,
                 corelane::ImportOptions& options) {
  const auto equals = value.find('=');
  if (equals == std::string::npos) return false;
  const std::string name = value.substr(0, equals);
  const std::string rest = value.substr(equals + 1);
  if (key == "--dim") {
    options.dims[name] = std::atoll(rest.c_str());
    return true;
  }
  const auto shape = corelane::parse_shape(rest);
  if (key != "--shape" || !shape) return false;
  options.input_shapes[name] = *shape;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s [--dir] IN OUT [--warn] [--dim N=V] [--shape I=S]\n", argv[0]);
    return 2;
  }
  if (std::string(argv[1]) == "--dir" && argc == 4) return convert_folder(argv[2], argv[3]);
  corelane::ImportOptions options;
  for (int i = 3; i < argc; ++i) {
    if (std::string(argv[i]) == "--warn") {
      options.refuse_known_wrong = false;
    } else if (i + 1 >= argc || !read_option(argv[i], argv[i + 1], options)) {
      std::fprintf(stderr, "unknown option %s\n", argv[i]);
      return 2;
    } else {
      ++i;
    }
  }
  const Status status = convert(argv[1], argv[2], options, true);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return status.ok() ? 0 : 1;
}
