// Writes the seeds of the fuzz targets: fuzz_seeds <folder>.
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/file.h"
#include "corelane/onnx/onnx_import.h"
#include "corelane/program/program_file.h"
#include "corelane/tensor/value.h"
#include "program/testing/random_program.h"
#include "sample_models.h"
#include "scheduler/config/testing/named_backends.h"
#include "vendor_containers.h"

namespace {

using corelane::ByteSpan;
using corelane::Status;

/// Nodes in TOML; some are refused.
Status write_nodes(const std::filesystem::path& folder) {
  const std::vector<std::string> nodes = {
      corelane::scheduler::testing::kThreePrograms,
      "batching_timeout = 2.5\n\"Interpreter::backend\" = \"PipelineV3[Mine]\"\n[n]\nspeed = 1\n",
      "[n]\nbackend = 'S[a(k=\"1,2\"),(swap)b]'\n\"a::k\" = \"x&y\"\npadding = true\n",
      "[n]\nbatching = 'learned'\nmax_batch = 4\nplan = 'cost'\nqueue_policy = 'reject'\n",
      "a = [1, {b = 1979-05-27}]\n[n.m]\nx.y = 0x10\n",
      "[[n]]\nPipelineV3::backend = 'Mine'\n"};
  int number = 0;
  for (const std::string& node : nodes)
    CORELANE_TRY(corelane::write_file_atomic(
        folder / "node_toml_fuzz" / (std::to_string(number++) + ".toml"),
        std::as_bytes(std::span(node))));
  return {};
}

/// A file for the target of its kind, and for the one that loads and runs it.
Status write_file(const std::filesystem::path& folder, const std::string& target,
                  const std::string& name, ByteSpan bytes) {
  CORELANE_TRY(corelane::write_file_atomic(folder / target / name, bytes));
  return corelane::write_file_atomic(folder / "load_fuzz" / name, bytes);
}

/// One value of each kind.
Status write_values(const std::filesystem::path& folder) {
  using corelane::DType;
  const std::vector<std::string_view> words = {"a", "", "bcd"};
  const std::vector<float> numbers = {1, 2, 3};
  const corelane::TensorView floats{
      numbers.data(), numbers.size() * sizeof(float), DType::kF32, corelane::Shape{3}, {}, {}};
  corelane::ValueBuilder builders[5];
  builders[0].strings({3}, words);
  builders[1].tensor(floats);
  builders[2].sequence(2).tensor(floats).strings({1, 3}, words);
  builders[3].map(DType::kString).strings({3}, words).tensor(floats);
  builders[4].optional(true).sequence(1).optional(false);
  int number = 0;
  for (corelane::ValueBuilder& builder : builders) {
    CORELANE_ASSIGN(const auto bytes, builder.finish());
    CORELANE_TRY(corelane::write_file_atomic(
        folder / "value_fuzz" / (std::to_string(number++) + ".bin"), bytes));
  }
  return {};
}

Status write_containers(const std::filesystem::path& folder) {
  int number = 0;
  for (const corelane::ByteVector& file : corelane::robustness::vendor_containers())
    CORELANE_TRY(corelane::write_file_atomic(
        folder / "vendor_container_fuzz" / (std::to_string(number++) + ".bin"), file));
  return {};
}

Status write_seeds(const std::filesystem::path& folder) {
  CORELANE_TRY(write_containers(folder));
  CORELANE_TRY(write_nodes(folder));
  CORELANE_TRY(write_values(folder));
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const auto program = corelane::testing::sample_program(seed);
    CORELANE_TRY(corelane::write_file_atomic(
        folder / "program_fuzz" / ("random" + std::to_string(seed) + ".rknn"), program));
    const auto parts = corelane::testing::sample_parts(seed);
    CORELANE_TRY(corelane::write_file_atomic(
        folder / "program_fuzz" / ("parts" + std::to_string(seed) + ".rknn"), parts));
  }
  for (const auto& model : corelane::robustness::rule_models())
    CORELANE_TRY(write_file(folder, "onnx_fuzz", model.name + ".onnx", model.bytes));
  for (const auto& model : corelane::robustness::sample_models()) {
    CORELANE_TRY(write_file(folder, "onnx_fuzz", model.name + ".onnx", model.bytes));
    corelane::ImportOptions options;
    if (model.name == "custom") options.custom_operators = {"mine.MyOp"};
    CORELANE_ASSIGN(const auto imported, corelane::import_onnx(model.bytes, options));
    corelane::ProgramWriter writer(imported.description);
    writer.add_segment(corelane::SegmentKind::kGraph, "", imported.graph);
    writer.add_segment(corelane::SegmentKind::kConstants, "", imported.constants);
    CORELANE_ASSIGN(const auto program, writer.finish());
    CORELANE_TRY(write_file(folder, "program_fuzz", model.name + ".rknn", program));
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
