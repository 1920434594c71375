#include "mutant.h"

#include <algorithm>
#include <utility>

#include "corelane/base/file.h"
#include "corelane/program/program_file.h"
#include "corelane/runtime/program.h"
#include "graph_mutator.h"
#include "program/testing/program_surgery.h"

namespace corelane::robustness {
namespace {

namespace fs = std::filesystem;

ByteVector bytes_of(const ::onnx::ModelProto& model) {
  const std::string text = model.SerializeAsString();
  const ByteSpan span = as_byte_span(text);
  return {span.begin(), span.end()};
}

/// The same bytes where they are not a model.
ByteVector mutate_fields(const ByteVector& bytes, const ByteVector& other, Mutator& mutator) {
  ::onnx::ModelProto model;
  ::onnx::ModelProto donor;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return bytes;
  if (!donor.ParseFromArray(other.data(), static_cast<int>(other.size()))) donor.Clear();
  mutate_model(model, donor, mutator);
  return bytes_of(model);
}

ByteVector mutate_bytes(const ByteVector& bytes, const ByteVector& other, Mutator& mutator) {
  if (mutator.below(8) == 0 && !bytes.empty())
    return {bytes.begin(),
            bytes.begin() + static_cast<std::ptrdiff_t>(mutator.below(bytes.size()))};
  return mutator.mutate(bytes, other, 0, bytes.size());
}

std::string mutate_onnx(ByteVector& bytes, const ByteVector& other, Mutator& mutator) {
  const bool fields = mutator.below(4) != 0;
  bytes = fields ? mutate_fields(bytes, other, mutator) : mutate_bytes(bytes, other, mutator);
  return fields ? "fields" : "bytes";
}

/// Anything of the description, past its own checksum.
ByteVector mutate_header(ByteVector file, Mutator& mutator) {
  const std::size_t begin = program::kFixedHeaderBytes;
  if (file.size() < begin) return file;
  const std::size_t size =
      testing::read_at<std::uint32_t>(file, offsetof(program::FixedHeader, header_size));
  file = mutator.mutate(file, file, begin, begin + size);
  testing::repair_header(file);
  return file;
}

/// One segment is changed, and the file is written with right checksums. Without the lowered form
/// the load makes one.
Result<ByteVector> mutate_segment(const ProgramFile& file, const ByteVector& other,
                                  Mutator& mutator, std::string& kind) {
  ProgramWriter writer(file.description());
  const auto& segments = file.segments();
  std::vector<ByteVector> contents;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    CORELANE_ASSIGN(const ByteSpan bytes, file.segment(i));
    contents.emplace_back(bytes.begin(), bytes.end());
  }
  const std::size_t at = mutator.below(segments.size());
  const bool lowered = mutator.below(2) == 0;
  kind = segment_kind_name(segments[at].kind);
  if (segments[at].kind == SegmentKind::kConstants) {
    contents[at] = mutate_bytes(contents[at], other, mutator);
  } else if (segments[at].kind != SegmentKind::kVerdict && !contents[at].empty()) {
    mutate_onnx(contents[at], other, mutator);
  } else if (segments[at].kind == SegmentKind::kLowered) {
    contents[at] = contents.front();  // The form is the network itself, or something like it.
    mutate_onnx(contents[at], other, mutator);
  }
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const bool judged =
        segments[i].kind == SegmentKind::kLowered || segments[i].kind == SegmentKind::kVerdict;
    if (judged && i != at && !lowered) continue;
    writer.add_segment(segments[i].kind, segments[i].tag, contents[i]);
  }
  return writer.finish();
}

std::string mutate_program(ByteVector& bytes, const ByteVector& other, Mutator& mutator) {
  const auto file = ProgramFile::from_bytes(bytes);
  if (!file || mutator.below(6) == 0) {
    bytes = mutate_header(std::move(bytes), mutator);
    return "header";
  }
  std::string kind;
  if (auto changed = mutate_segment(**file, other, mutator, kind)) bytes = std::move(*changed);
  return kind;
}

}  // namespace

std::string mutate_file(ByteVector& bytes, const ByteVector& other, Mutator& mutator) {
  if (detect_file_kind(bytes) == FileKind::kProgram)
    return "program." + mutate_program(bytes, other, mutator);
  return "onnx." + mutate_onnx(bytes, other, mutator);
}

std::vector<fs::path> find_models(std::span<const fs::path> folders, std::size_t at_most) {
  std::vector<fs::path> found;
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    for (const auto& entry : fs::recursive_directory_iterator(folder, ignored))
      if (entry.path().extension() == ".onnx" && entry.is_regular_file() &&
          entry.file_size() <= at_most)
        found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

Mutant make_mutant(std::span<const fs::path> models, std::uint64_t number) {
  Mutator mutator(number);
  const fs::path& origin = models[mutator.below(models.size())];
  const fs::path& donor = models[mutator.below(models.size())];
  Mutant mutant{{}, origin.filename().string(), read_file(origin).value_or(ByteVector())};
  const ByteVector other = read_file(donor).value_or(ByteVector());
  if (number % 2 == 1)
    if (auto program = compile_bytes(mutant.bytes)) mutant.bytes = std::move(*program);
  mutant.kind = mutate_file(mutant.bytes, other, mutator);
  return mutant;
}

}  // namespace corelane::robustness
