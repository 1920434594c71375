// The constants of several networks in one segment.
#include <algorithm>
#include <functional>
#include <map>
#include <new>
#include <unordered_map>
#include <utility>

#include "base/guard.h"
#include "corelane/onnx/onnx_import.h"
#include "onnx/graph/onnx_constants.h"
#include "onnx/graph/onnx_held_model.h"
#include "onnx/graph/onnx_model_bytes.h"
#include "onnx/graph/onnx_tensor.h"
#include "onnx/graph/onnx_walk.h"

namespace corelane {
namespace onnx {
namespace {

/// Offset and bytes within the constants.
using Extent = std::pair<std::size_t, std::size_t>;

/// The constants that are written, found by their content.
class MergedConstants {
 public:
  Status reserve(std::size_t bytes) {
    try {
      bytes_.reserve(bytes);
    } catch (const std::bad_alloc&) {
      return error(Code::kOutOfMemory, "no memory for {} bytes of constants", bytes);
    }
    return {};
  }

  /// Where equal bytes lie already, or else these from now on.
  std::size_t place(ByteSpan content) {
    const std::size_t hash = std::hash<std::string_view>{}(as_string_view(content));
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto known = first; known != last; ++known) {
      const auto& [offset, size] = known->second;
      // By the bytes: a hash alone would exchange constants that differ.
      if (as_string_view(ByteSpan(bytes_).subspan(offset, size)) == as_string_view(content))
        return offset;
    }
    const std::size_t offset = make_room(content.size(), bytes_);
    std::ranges::copy(content, bytes_.data() + offset);
    by_hash_.emplace(hash, Extent{offset, content.size()});
    return offset;
  }

  LargeBytes take() && { return std::move(bytes_); }

 private:
  LargeBytes bytes_;
  std::unordered_multimap<std::size_t, Extent> by_hash_;
};

/// Moves the constants of one model; the forms of a network share most of them.
class ModelMerge {
 public:
  ModelMerge(ByteSpan constants, MergedConstants& merged)
      : constants_(constants), merged_(merged) {}

  /// Points a graph's external tensors to where their bytes lie now.
  Status move(ByteVector& graph) {
    const HeldModel held;
    ::onnx::ModelProto& model = *held;
    CORELANE_TRY(read_model(graph, model));
    Status status;
    for_each_tensor(model, [&](::onnx::TensorProto& tensor) {
      if (status.ok() && is_external(tensor)) status = move(tensor);
    });
    CORELANE_TRY(status);
    CORELANE_ASSIGN(graph, serialize_model(model));
    return {};
  }

 private:
  Status move(::onnx::TensorProto& tensor) {
    CORELANE_ASSIGN(const ByteSpan content, constants_slice(tensor, constants_));
    const Extent slice{static_cast<std::size_t>(content.data() - constants_.data()),
                       content.size()};
    const auto [place, is_new] = moved_.try_emplace(slice);
    if (is_new) place->second = merged_.place(content);
    for (auto& entry : *tensor.mutable_external_data())
      if (entry.key() == "offset") entry.set_value(std::to_string(place->second));
    return {};
  }

  const ByteSpan constants_;
  MergedConstants& merged_;
  std::map<Extent, std::size_t> moved_;
};

}  // namespace
}  // namespace onnx

Result<LargeBytes> merge_constants(std::span<ImportedModel> models) {
  return no_throw("merging constants", [&]() -> Result<LargeBytes> {
    std::size_t most = 0;
    for (const ImportedModel& model : models) most += model.constants.size() + 64;
    onnx::MergedConstants merged;
    CORELANE_TRY(merged.reserve(most));
    for (ImportedModel& model : models) {
      onnx::ModelMerge merge(model.constants, merged);
      CORELANE_TRY(merge.move(model.graph));
      for (LoweredGraph& form : model.lowered)
        if (!form.graph.empty()) CORELANE_TRY(merge.move(form.graph));
      // One model after the other, so that no more than one is held twice.
      model.constants = LargeBytes();
    }
    return std::move(merged).take();
  });
}

}  // namespace corelane
