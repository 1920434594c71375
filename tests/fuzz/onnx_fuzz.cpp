// Any bytes as an ONNX model, and what is imported as a program file.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "corelane/onnx/onnx_import.h"
#include "corelane/program/program_file.h"

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "onnx_fuzz: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace corelane;
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  ImportOptions options;
  options.custom_operators = {"mine.MyOp"};
  options.refuse_known_wrong = size % 2 == 0;
  if (size % 5 == 0) options.dims = {{"d0", 2}};
  const auto unchecked = lower_onnx(bytes, {}, lowerings().front());
  require(unchecked.has_value() || unchecked.error().code() != Code::kInternal,
          "the lowering failed with an internal error");
  auto model = import_onnx(bytes, options);
  if (!model) {
    // The sample with the custom operator is the only one that uses the option.
    options.custom_operators.clear();
    model = import_onnx(bytes, options);
  }
  if (!model) {
    require(model.error().code() != Code::kInternal, "the import failed with an internal error");
    return 0;
  }
  require(inline_constants(model->graph, model->constants).has_value(),
          "the constants of an imported model cannot be inlined");
  require(lower_onnx(model->graph, model->constants, lowerings().front()).has_value(),
          "an imported model cannot be lowered");
  ProgramWriter writer(model->description);
  writer.add_segment(SegmentKind::kGraph, "", model->graph);
  writer.add_segment(SegmentKind::kConstants, "", model->constants);
  for (const LoweredGraph& form : model->lowered) {
    writer.add_segment(SegmentKind::kLowered, form.tag, form.graph);
    if (!form.unfit.empty())
      writer.add_segment(SegmentKind::kVerdict, form.tag, as_byte_span(form.unfit));
    require(form.unfit.find('\n') == std::string::npos, "a verdict of several lines");
  }
  const auto program = writer.finish();
  if (!program) return 0;
  const auto file = ProgramFile::from_bytes(*program, nullptr, Verify::kEverything);
  require(file.has_value(), "a program that was written cannot be read");
  require((*file)->description() == model->description, "the description changed");
  return 0;
}
