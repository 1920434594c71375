#include "drivers/virtual/engine/compiled_copy.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <openvino/op/constant.hpp>
#include <ostream>
#include <streambuf>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "corelane/base/log.h"
#include "drivers/virtual/engine/heap_growth.h"

namespace corelane::drivers::virtual_npu {
namespace {

constexpr std::string_view kPart = "virtual";

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

/// Walks the engine's graph in its order: an activation lives from its node to its last reader.
GraphFigures measure_graph(const ov::Model& runtime) {
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
      figures.packed_constants += bytes;
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

/// Bytes of the constants in the network as it was read.
std::size_t constants_of(const ov::Model& network) {
  std::size_t bytes = 0;
  for (const auto& node : network.get_ops())
    if (const auto* constant = dynamic_cast<const ov::op::v0::Constant*>(node.get()))
      bytes += constant->get_byte_size();
  return bytes;
}

/// A stream into a vector. The engine goes back to complete its header.
class VectorBuffer : public std::streambuf {
 public:
  explicit VectorBuffer(ByteVector& out) : out_(out) {}

 protected:
  std::streamsize xsputn(const char* data, std::streamsize size) override {
    const auto count = static_cast<std::size_t>(size);
    if (out_.size() < at_ + count) out_.resize(at_ + count);
    if (count > 0) std::memcpy(out_.data() + at_, data, count);
    at_ += count;
    return size;
  }
  int_type overflow(int_type c) override {
    if (c == traits_type::eof()) return 0;
    const char byte = traits_type::to_char_type(c);
    xsputn(&byte, 1);
    return c;
  }
  pos_type seekoff(off_type offset, std::ios_base::seekdir from, std::ios_base::openmode) override {
    const std::size_t base = from == std::ios_base::beg   ? 0
                             : from == std::ios_base::cur ? at_
                                                          : out_.size();
    const off_type target = static_cast<off_type>(base) + offset;
    if (target < 0 || target > static_cast<off_type>(out_.size())) return pos_type(off_type(-1));
    at_ = static_cast<std::size_t>(target);
    return pos_type(target);
  }
  pos_type seekpos(pos_type position, std::ios_base::openmode mode) override {
    return seekoff(off_type(position), std::ios_base::beg, mode);
  }

 private:
  ByteVector& out_;
  std::size_t at_ = 0;
};

}  // namespace

/// Computed at the first call: most programs are never asked.
CompiledCopy::Figures CompiledCopy::figures() const {
  std::call_once(measured_, [this] {
    GraphFigures graph;
    try {
      graph = measure_graph(*model_.get_runtime_model());
    } catch (const std::exception& e) {
      log::warn(kPart, "the engine does not show its graph, its memory is not counted: {}",
                e.what());
    }
    figures_.weights = kept_constants_ + graph.packed_constants;
    figures_.internal = graph.live_activations * settings_.streams;
    const std::size_t known = figures_.weights + figures_.internal;
    figures_.code = heap_growth_ > known ? heap_growth_ - known : 0;
  });
  return figures_;
}

Result<std::shared_ptr<const CompiledCopy>> compile_copy(const std::shared_ptr<ov::Model>& network,
                                                         const CopySettings& settings,
                                                         const device::PrepareOptions& options,
                                                         const NodeNames& names) {
  try {
    ov::Core& core = engine_core();
    const HeapGrowth growth;
    log::debug(kPart, "compiling a copy of {} streams, {} threads", settings.streams,
               settings.threads);
    auto model = core.compile_model(network, "CPU", compile_settings(settings, options));
    // The network's constants were on the heap already and stay with the copy.
    const std::size_t kept = constants_of(*network);
    return std::make_shared<const CompiledCopy>(std::move(model), settings, nullptr, kept,
                                                growth.bytes() + kept);
  } catch (...) {
    return error(status_of_exception(Code::kUnsupportedModel,
                                     "the engine cannot compile the network", names));
  }
}

/// The engine reads the blob in place, so the copy holds it.
Result<std::shared_ptr<const CompiledCopy>> import_copy(std::shared_ptr<const Blob> blob,
                                                        const CopySettings& settings,
                                                        const device::PrepareOptions& options) {
  try {
    ov::Core& core = engine_core();
    const HeapGrowth growth;
    log::debug(kPart, "importing a copy of {} streams, {} threads", settings.streams,
               settings.threads);
    // The engine only reads; its tensor type has no const form.
    auto* data = const_cast<std::byte*>(blob->bytes.data());
    const ov::Tensor tensor(ov::element::u8, ov::Shape{blob->bytes.size()}, data);
    auto model = core.import_model(tensor, "CPU", compile_settings(settings, options));
    return std::make_shared<const CompiledCopy>(std::move(model), settings, std::move(blob), 0,
                                                growth.bytes());
  } catch (...) {
    return error(
        status_of_exception(Code::kUnsupportedModel, "the engine refuses the pre-compiled form"));
  }
}

/// The form holds the constants too: a copy that is imported from it reads them there.
Result<std::shared_ptr<const Blob>> export_blob(const CompiledCopy& copy) {
  try {
    auto bytes = std::make_shared<ByteVector>();
    VectorBuffer buffer(*bytes);
    std::ostream stream(&buffer);
    ov::CompiledModel model = copy.model();  // export_model() is not const.
    model.export_model(stream);
    if (!stream.good() || bytes->empty())
      return error(Code::kEngineFailed, "the engine wrote no pre-compiled form");
    auto blob = std::make_shared<Blob>();
    blob->bytes = *bytes;
    blob->heap_bytes = bytes->size();
    blob->owner = std::move(bytes);
    return blob;
  } catch (...) {
    return error(status_of_exception(Code::kEngineFailed, "the engine cannot export the program"));
  }
}

}  // namespace corelane::drivers::virtual_npu
