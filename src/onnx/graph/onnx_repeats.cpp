#include "onnx/graph/onnx_repeats.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "corelane/base/log.h"
#include "onnx/graph/onnx_walk.h"

namespace corelane::onnx {
namespace {

bool same_form(const ::onnx::TensorProto& a, const ::onnx::TensorProto& b) {
  return a.data_type() == b.data_type() && std::ranges::equal(a.dims(), b.dims());
}

bool drop_repeated(::onnx::GraphProto& graph) {
  auto& tensors = *graph.mutable_initializer();
  std::unordered_map<std::string_view, int> last;
  for (int i = 0; i < tensors.size(); ++i) last[tensors[i].name()] = i;
  if (last.size() == static_cast<std::size_t>(tensors.size())) return false;
  int kept = 0;
  for (int i = 0; i < tensors.size(); ++i) {
    const int at = last[tensors[i].name()];
    if (at != i && same_form(tensors[i], tensors[at])) {
      log::debug("onnx", "graph '{}' has the initialiser '{}' twice; the last one counts",
                 graph.name(), tensors[i].name());
      continue;
    }
    if (kept != i) tensors.SwapElements(kept, i);
    ++kept;
  }
  const bool changed = kept < tensors.size();
  tensors.DeleteSubrange(kept, tensors.size() - kept);
  return changed;
}

}  // namespace

bool drop_repeated_initializers(::onnx::ModelProto& model) {
  bool changed = false;
  for_each_graph(*model.mutable_graph(),
                 [&](::onnx::GraphProto& graph) { changed = drop_repeated(graph) || changed; });
  return changed;
}

}  // namespace corelane::onnx
