// Imports one ONNX file and writes the model as the engine would get it, constants inlined: for
// looking at rewrites, and for running them in another runtime.
//
//     onnx_import_tool IN.onnx OUT.onnx [--warn]     one model
//     onnx_import_tool --dir IN OUT                  every *.onnx of a folder; errors to NAME.error

#include <cstdio>
#include <filesystem>
#include <string>

#include "corelane/base/file.h"
#include "corelane/model/onnx_import.h"

namespace {

using corelane::Status;
namespace fs = std::filesystem;

Status convert(const fs::path& in, const fs::path& out, bool refuse, bool print) {
  corelane::ImportOptions options;
  options.refuse_known_wrong = refuse;
  CORELANE_ASSIGN_OR_STATUS(const auto imported, corelane::import_onnx_file(in, options));
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
  CORELANE_ASSIGN_OR_STATUS(const auto model,
                            corelane::inline_constants(imported.graph, imported.constants));
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
    const Status status = convert(entry.path(), target, true, false);
    if (status.ok()) continue;
    ++failed;
    const Status written =
        corelane::write_file_atomic(error, corelane::as_byte_span(status.to_string()));
    if (!written.ok()) std::fprintf(stderr, "%s\n", written.to_string().c_str());
  }
  std::printf("%d refused\n", failed);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s [--dir] IN OUT [--warn]\n", argv[0]);
    return 2;
  }
  if (std::string(argv[1]) == "--dir" && argc == 4) return convert_folder(argv[2], argv[3]);
  const Status status = convert(argv[1], argv[2], argc < 4, true);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return status.ok() ? 0 : 1;
}
