/// ZipMap at the end of a network: classifiers of skl2onnx end with it. The engine makes a map of
/// each row, and its C interface takes each apart by a dozen calls; the flat form of the rows is
/// written from the tensor before it instead, at a tenth of the time.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "corelane/tensor/desc.h"
#include "drivers/virtual/common/onnx_patch.h"

namespace corelane::drivers::virtual_npu::ort {

/// The keys of a ZipMap, numbers or texts, in ascending order, as the engine's maps have them.
struct ZipLabels {
  std::vector<std::int64_t> numbers;
  std::vector<std::string> texts;
  std::vector<std::size_t> columns;  ///< Of each key; empty: in the same order.

  std::size_t size() const noexcept { return texts.empty() ? numbers.size() : texts.size(); }
};

/// By output.
using ZippedOutputs = std::map<std::size_t, ZipLabels>;

/// Replaces each ZipMap that makes an output, and that nothing else reads, by an Identity: the
/// output is the tensor before it then. `patched.outputs` stay as declared.
Result<ZippedOutputs> unzip_outputs(PatchedModel& patched);

/// The flat form of the sequence that ZipMap makes of `rows`: f32, of rank 1 or 2, with as many
/// columns as labels. kEngineFailed for other shapes, as the engine has it.
Result<ByteVector> zip_rows(const TensorView& rows, const ZipLabels& labels,
                            std::string_view output);

}  // namespace corelane::drivers::virtual_npu::ort
