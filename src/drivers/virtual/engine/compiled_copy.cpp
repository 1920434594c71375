#include "drivers/virtual/engine/compiled_copy.h"

#include <algorithm>
#include <exception>
#include <openvino/op/constant.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "corelane/base/log.h"
#include "drivers/virtual/common/heap_growth.h"
#include "drivers/virtual/common/log_part.h"
#include "drivers/virtual/engine/engine_complaint.h"

namespace corelane::drivers::virtual_npu {
namespace {

/// 0 for sizes that are known only at the run.
std::size_t output_bytes(const ov::Output<const ov::Node>& output) {
  if (output.get_partial_shape().is_dynamic()) return 0;
  return (ov::shape_size(output.get_shape()) * output.get_element_type().bitwidth() + 7) / 8;
}

/// The engine's name for the kind of a node in its own graph.
std::string layer_type(const ov::Node& node) {
  const auto found = node.get_rt_info().find("layerType");
  return found == node.get_rt_info().end() ? std::string{} : found->second.as<std::string>();
}

struct GraphFigures {
  std::size_t packed_constants = 0;
  std::size_t live_activations = 0;
};

/// Layers that make another form of a constant, or whose kernels do, between spaces. The others
/// read constants as they are.
constexpr std::string_view kPacking =
    " Convert Convolution Deconvolution DeformableConvolution FullyConnected GroupDeconvolution"
    " MatMul RNNCell RNNSeq Reorder Transpose ";

/// True for a constant that is read where the image has it.
bool read_in_place(const ov::Node& node, const std::set<std::string>& in_place) {
  if (!in_place.contains(node.get_friendly_name())) return false;
  for (const auto& output : node.outputs())
    for (const auto& reader : output.get_target_inputs())
      if (kPacking.find(" " + layer_type(*reader.get_node()) + " ") != std::string_view::npos)
        return false;
  return true;
}

/// Walks the engine's graph in its order: an activation lives from its node to its last reader.
GraphFigures measure_graph(const ov::Model& runtime, const std::set<std::string>& in_place) {
  GraphFigures figures;
  const ov::NodeVector nodes = runtime.get_ordered_ops();
  std::unordered_map<const ov::Node*, std::size_t> last_reader;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::size_t k = 0; k < nodes[i]->get_input_size(); ++k)
      last_reader[nodes[i]->get_input_node_ptr(k)] = i;
  std::vector<std::size_t> freed(nodes.size() + 1, 0);
  std::size_t live = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::size_t bytes = 0;
    for (const auto& output : nodes[i]->outputs())
      bytes += output_bytes(ov::Output<const ov::Node>(output.get_node(), output.get_index()));
    const std::string type = layer_type(*nodes[i]);
    if (type == "Const") {
      if (!read_in_place(*nodes[i], in_place)) figures.packed_constants += bytes;
      continue;
    }
    if (type == "Input" || type == "Output" || type == "Result") continue;  // Bound memory.
    live += bytes;
    figures.live_activations = std::max(figures.live_activations, live);
    const auto last = last_reader.find(nodes[i].get());
    freed[last == last_reader.end() ? i : last->second] += bytes;
    live -= std::min(live, freed[i]);
  }
  return figures;
}

/// Bytes of the constants in the network as it was read, without those that lie in the image.
std::size_t constants_of(const ov::Model& network, const std::set<std::string>& in_place) {
  std::size_t bytes = 0;
  for (const auto& node : network.get_ops())
    if (const auto* constant = dynamic_cast<const ov::op::v0::Constant*>(node.get()))
      if (!in_place.contains(node->get_friendly_name())) bytes += constant->get_byte_size();
  return bytes;
}

}  // namespace

/// Computed at the first call: most programs are never asked.
CompiledCopy::Figures CompiledCopy::figures() const {
  std::call_once(measured_, [this] {
    GraphFigures graph;
    try {
      graph = measure_graph(*model_.get_runtime_model(), in_place_);
    } catch (const std::exception& e) {
      log::warn(kLogPart, "the engine does not show its graph, its memory is not counted: {}",
                e.what());
    }
    figures_.weights = kept_constants_ + graph.packed_constants;
    figures_.internal = graph.live_activations * settings_.streams;
    const std::size_t known = figures_.weights + figures_.internal;
    figures_.code = heap_growth_ > known ? heap_growth_ - known : 0;
    figures_.later = known > heap_growth_ ? known - heap_growth_ : 0;
  });
  return figures_;
}

Result<std::shared_ptr<const CompiledCopy>> compile_copy(const std::shared_ptr<ov::Model>& network,
                                                         const CopySettings& settings,
                                                         const device::PrepareOptions& options,
                                                         const NodeNames& names,
                                                         const std::set<std::string>& in_place) {
  using Copy = Result<std::shared_ptr<const CompiledCopy>>;
  constexpr std::string_view kWhat = "the engine cannot compile the network";
  const auto compile = [&]() -> Copy {
    ov::Core& core = engine_core();
    const HeapGrowth growth;
    log::debug(kLogPart, "compiling a copy of {} streams, {} threads", settings.streams,
               settings.threads);
    auto model = core.compile_model(network, "CPU", compile_settings(settings, options));
    // The network's constants were on the heap already and stay with the copy.
    const std::size_t kept = constants_of(*network, in_place);
    return std::make_shared<const CompiledCopy>(std::move(model), settings, nullptr, kept,
                                                growth.bytes() + kept, in_place);
  };
  auto copy = engine_call(kWhat, Code::kUnsupportedModel, compile, names);
  if (!copy) return error(with_remedy(copy.error()));
  return copy;
}

/// The engine reads the blob in place, so the copy holds it.
Result<std::shared_ptr<const CompiledCopy>> import_copy(std::shared_ptr<const Blob> blob,
                                                        const CopySettings& settings,
                                                        const device::PrepareOptions& options) {
  using Copy = Result<std::shared_ptr<const CompiledCopy>>;
  constexpr std::string_view kWhat = "the engine refuses the pre-compiled form";
  return engine_call(kWhat, Code::kUnsupportedModel, [&]() -> Copy {
    ov::Core& core = engine_core();
    const HeapGrowth growth;
    log::debug(kLogPart, "importing a copy of {} streams, {} threads", settings.streams,
               settings.threads);
    // The engine only reads; its tensor type has no const form.
    auto* data = const_cast<std::byte*>(blob->bytes.data());
    const ov::Tensor tensor(ov::element::u8, ov::Shape{blob->bytes.size()}, data);
    auto model = core.import_model(tensor, "CPU", compile_settings(settings, options));
    return std::make_shared<const CompiledCopy>(std::move(model), settings, std::move(blob), 0,
                                                growth.bytes());
  });
}

/// The form holds the constants too: a copy that is imported from it reads them there.
Result<std::shared_ptr<const Blob>> export_blob(const CompiledCopy& copy) {
  using Made = Result<std::shared_ptr<const Blob>>;
  return engine_call("the engine cannot export the program", Code::kEngineFailed, [&]() -> Made {
    std::ostringstream stream;
    ov::CompiledModel model = copy.model();  // export_model() is not const.
    model.export_model(stream);
    const bool written = stream.good();
    const auto bytes = std::make_shared<const std::string>(std::move(stream).str());
    if (!written || bytes->empty())
      return error(Code::kEngineFailed, "the engine wrote no pre-compiled form");
    return std::make_shared<const Blob>(Blob{as_byte_span(*bytes), bytes, bytes->size()});
  });
}

}  // namespace corelane::drivers::virtual_npu
