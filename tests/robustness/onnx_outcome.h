/// What must hold of any bytes that are imported as ONNX.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "corelane/onnx/onnx_import.h"
#include "outcome.h"

namespace corelane::robustness {

/// The program file of an imported model; failure only for what the writer refuses by name.
inline Result<ByteVector> write_program(const ImportedModel& model) {
  ProgramWriter writer(model.description);
  writer.add_segment(SegmentKind::kGraph, "", model.graph);
  writer.add_segment(SegmentKind::kConstants, "", model.constants);
  for (const LoweredGraph& form : model.lowered) {
    writer.add_segment(SegmentKind::kLowered, form.tag, form.graph);
    if (!form.unfit.empty())
      writer.add_segment(SegmentKind::kVerdict, form.tag, as_byte_span(form.unfit));
  }
  return writer.finish();
}

/// Imports bytes that lie in memory of exactly their size; what is imported becomes a program file
/// that opens, and an ONNX model again, and can be lowered from the file. So may the bytes as they
/// are, which a file may hold unchecked. True when it was imported.
inline bool import_and_judge(const ByteVector& bytes, const ImportOptions& options) {
  const std::unique_ptr<std::byte[]> exact(new std::byte[std::max<std::size_t>(bytes.size(), 1)]);
  std::copy(bytes.begin(), bytes.end(), exact.get());
  const PeakMemory memory;
  const auto model = import_onnx({exact.get(), bytes.size()}, options);
  expect_bounded(memory, bytes.size());
  const auto unchecked = lower_onnx({exact.get(), bytes.size()}, {}, lowerings().front());
  if (!unchecked)
    EXPECT_NE(unchecked.error().code(), Code::kInternal) << unchecked.error().to_string();
  if (!model) {
    EXPECT_NE(model.error().code(), Code::kInternal) << model.error().to_string();
    EXPECT_FALSE(model.error().message().empty());
    return false;
  }
  const auto program = write_program(*model);
  if (!program) {
    EXPECT_EQ(program.error().code(), Code::kInvalidArgument) << program.error().to_string();
    return false;
  }
  open_and_judge(*program);
  const auto whole = inline_constants(model->graph, model->constants);
  EXPECT_TRUE(whole) << whole.error().to_string();
  const auto lowered = lower_onnx(model->graph, model->constants, lowerings().front());
  EXPECT_TRUE(lowered) << lowered.error().to_string();
  return true;
}

}  // namespace corelane::robustness
