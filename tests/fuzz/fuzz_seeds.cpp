// Writes the seeds of the fuzz targets: fuzz_seeds <folder>.
#include <cstdio>
#include <filesystem>
#include <string>

#include "corelane/base/file.h"
#include "corelane/onnx/onnx_import.h"
#include "corelane/program/program_file.h"
#include "program/testing/random_program.h"
#include "sample_models.h"

namespace {

using corelane::ByteSpan;
using corelane::Status;

Status write_seeds(const std::filesystem::path& folder) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const auto program = corelane::testing::sample_program(seed);
    CORELANE_TRY(corelane::write_file_atomic(
        folder / "program_fuzz" / ("random" + std::to_string(seed) + ".rknn"), program));
    const auto parts = corelane::testing::sample_parts(seed);
    CORELANE_TRY(corelane::write_file_atomic(
        folder / "program_fuzz" / ("parts" + std::to_string(seed) + ".rknn"), parts));
  }
  for (const auto& model : corelane::robustness::rule_models()) {
    CORELANE_TRY(
        corelane::write_file_atomic(folder / "onnx_fuzz" / (model.name + ".onnx"), model.bytes));
  }
  for (const auto& model : corelane::robustness::sample_models()) {
    CORELANE_TRY(
        corelane::write_file_atomic(folder / "onnx_fuzz" / (model.name + ".onnx"), model.bytes));
    corelane::ImportOptions options;
    if (model.name == "custom") options.custom_operators = {"mine.MyOp"};
    CORELANE_ASSIGN(const auto imported, corelane::import_onnx(model.bytes, options));
    corelane::ProgramWriter writer(imported.description);
    writer.add_segment(corelane::SegmentKind::kGraph, "", imported.graph);
    writer.add_segment(corelane::SegmentKind::kConstants, "", imported.constants);
    CORELANE_ASSIGN(const auto program, writer.finish());
    CORELANE_TRY(
        corelane::write_file_atomic(folder / "program_fuzz" / (model.name + ".rknn"), program));
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: fuzz_seeds <folder>\n", stderr);
    return 2;
  }
  const Status status = write_seeds(argv[1]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "fuzz_seeds: %s\n", status.to_string().c_str());
  return 1;
}
