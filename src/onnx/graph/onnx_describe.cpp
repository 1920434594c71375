#include "onnx/graph/onnx_describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "corelane/base/api.h"
#include "corelane/tensor/value_type.h"
#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_boundary.h"
#include "onnx/graph/onnx_graph.h"
#include "program/program_format.h"

namespace corelane::onnx {
namespace {

Result<IoEntry> describe_value(const ::onnx::ValueInfoProto& value, bool is_input) {
  const std::string bytes = value.type().SerializeAsString();
  auto type = read_onnx_type(as_byte_span(bytes));
  const auto role = is_input ? "input" : "output";
  if (!type) return error(type.error().wrap(fmt::format("{} '{}'", role, value.name())));
  if (type->empty()) {
    return error(Code::kUnsupportedModel, "{} '{}' declares no type; no device can bind it", role,
                 value.name());
  }
  IoEntry entry;
  entry.desc.name = value.name();
  entry.desc.value = border_type(*type, is_input);
  if (!entry.desc.value.empty()) {
    entry.desc.dtype = DType::kU8;
    entry.desc.shape = Shape{Shape::kOpen};
    return entry;
  }
  entry.desc.dtype = type->element;
  // An output's rank may come out of a run.
  entry.desc.shape = type->shape.value_or(Shape{});
  for (const auto& d : value.type().tensor_type().shape().dim())
    entry.desc.dim_names.push_back(d.dim_param());
  return entry;
}

/// What clients of the vendor's interface are told; IoEntry says why f16 stands for a float.
void set_reported(const ImportOptions& options, IoEntry& entry) {
  if (!is_float(entry.desc.dtype))
    entry.reported_dtype = entry.desc.dtype;
  else if (options.io_dtype != DType::kUndefined)
    entry.reported_dtype = options.io_dtype;
  else if (entry.quant_dtype != DType::kUndefined)
    entry.reported_dtype = entry.quant_dtype;
  else
    entry.reported_dtype = DType::kF16;
}

/// The list for an input: its own, or the one for all rank-4 inputs.
const std::vector<float>* list_for(const std::map<std::string, std::vector<float>>& lists,
                                   const IoEntry& entry) {
  const auto own = lists.find(entry.desc.name);
  if (own != lists.end()) return &own->second;
  const auto all = lists.find("");
  const bool pixels = entry.desc.shape.rank() == 4 && !is_opaque(entry.desc.dtype);
  return all != lists.end() && pixels ? &all->second : nullptr;
}

Status set_normalisation(const ImportOptions& options, IoEntry& entry) {
  const struct {
    const char* what;
    const std::map<std::string, std::vector<float>>& lists;
    std::vector<float>& target;
  } both[] = {{"mean", options.mean, entry.mean}, {"std", options.std, entry.std}};
  for (const auto& item : both) {
    const auto* list = list_for(item.lists, entry);
    if (list == nullptr || list->empty()) continue;
    if (entry.desc.shape.rank() != 4) {
      return error(Code::kInvalidArgument, "{} for input '{}' of shape {}; only rank 4 is allowed",
                   item.what, entry.desc.name, entry.desc.shape.to_string());
    }
    if (is_opaque(entry.desc.dtype)) {
      return error(Code::kInvalidArgument, "{} for input '{}' of {}, which no conversion reads",
                   item.what, entry.desc.name, dtype_name(entry.desc.dtype));
    }
    const std::int64_t channels = entry.desc.shape[1];
    const auto n = static_cast<std::int64_t>(list->size());
    // One value serves all channels.
    if (n != 1 && channels != Shape::kOpen && n != channels) {
      return error(Code::kInvalidArgument,
                   "{} for input '{}' has {} values; 1 or {} (its channels) are allowed", item.what,
                   entry.desc.name, n, channels);
    }
    for (const float v : *list) {
      // The normalisation divides by std.
      const bool divides = item.what[0] == 's';
      if (!std::isfinite(v) || (divides && v == 0)) {
        return error(Code::kInvalidArgument,
                     "{} for input '{}' holds {}; finite values{} are allowed", item.what,
                     entry.desc.name, v, divides ? " other than 0" : "");
      }
    }
    item.target = *list;
  }
  return {};
}

Status check_names(const ImportOptions& options, const ProgramDescription& description) {
  std::vector<std::string_view> inputs;
  for (const auto& in : description.inputs) inputs.push_back(in.desc.name);
  for (const auto* lists : {&options.mean, &options.std}) {
    for (const auto& [name, values] : *lists) {
      // "" stands for all inputs of rank 4.
      if (name.empty() || std::ranges::find(inputs, name) != inputs.end()) continue;
      return error(Code::kInvalidArgument, "mean or std for '{}'; the inputs are: {}", name,
                   fmt::format("{}", fmt::join(inputs, ", ")));
    }
  }
  return {};
}

Status set_partial(const ImportOptions& options, ProgramDescription& description) {
  for (const std::string& name : options.partial_inputs) {
    std::vector<std::string_view> inputs;
    bool found = false;
    for (IoEntry& input : description.inputs) {
      inputs.push_back(input.desc.name);
      if (input.desc.name != name) continue;
      input.partial_allowed = true;
      found = true;
    }
    if (found) continue;
    return error(Code::kInvalidArgument, "'{}' is to be partial; the inputs are: {}", name,
                 fmt::format("{}", fmt::join(inputs, ", ")));
  }
  return {};
}

/// Counts the nodes of subgraphs, too.
std::uint64_t count_nodes(const ::onnx::GraphProto& graph) {
  std::uint64_t n = 0;
  for (const auto& node : graph.node()) {
    ++n;
    for (const auto* g : subgraphs(node)) n += count_nodes(*g);
  }
  return n;
}

void describe_model(const ::onnx::ModelProto& model, const ImportOptions& options,
                    ProgramDescription& d) {
  // `producer` is one text for people; `origin` keeps the parts as the model has them.
  d.name = model.graph().name();
  d.producer = model.producer_name();
  if (!model.producer_version().empty())
    d.producer += (d.producer.empty() ? "" : " ") + model.producer_version();
  d.origin = {model.producer_name(), model.producer_version(),   model.domain(),
              model.doc_string(),    model.graph().doc_string(), {}};
  if (model.has_model_version()) d.origin.version = model.model_version();
  d.opset = opset_of(model);
  d.compiler_version = std::string("corelane ") + version();
  for (const auto& entry : model.metadata_props()) d.metadata[entry.key()] = entry.value();
  d.custom_string = options.custom_string;
  d.batch = options.batch;
  d.batch_range = options.batch_range;
  d.cores = options.cores;
  d.node_count = count_nodes(model.graph());
}

}  // namespace

std::vector<int> real_inputs(const ::onnx::GraphProto& graph) {
  // Before IR version 4 every initialiser is an input as well, with the tensor as its default.
  std::unordered_set<std::string_view> constants;
  for (const auto& t : graph.initializer()) constants.insert(t.name());
  for (const auto& t : graph.sparse_initializer()) constants.insert(t.values().name());
  std::vector<int> inputs;
  for (int i = 0; i < graph.input_size(); ++i)
    if (!constants.contains(graph.input(i).name())) inputs.push_back(i);
  return inputs;
}

namespace {

/// From IR version 4 on an initialiser that is declared as an input, too, is a default. A type that
/// cannot be bound is left out.
Status describe_overridable(const ::onnx::ModelProto& model, const ImportOptions& options,
                            ProgramDescription& d) {
  constexpr std::int64_t kFirst = 4;
  if (model.ir_version() < kFirst) return {};
  std::unordered_set<std::string_view> constants;
  for (const auto& t : model.graph().initializer()) constants.insert(t.name());
  for (const auto& value : model.graph().input()) {
    if (!constants.contains(value.name())) continue;
    auto entry = describe_value(value, true);
    if (!entry) continue;
    // The list informs; a program file has room for so many.
    if (d.overridable.size() == program::kMaxIo) break;
    set_reported(options, *entry);
    d.overridable.push_back(std::move(*entry));
  }
  return {};
}

}  // namespace

Status check_values(const ::onnx::GraphProto& graph, const ImportOptions& options) {
  if (options.batch == 1 && !options.batch_range && options.shape_sets.empty()) return {};
  const auto check = [](const ::onnx::ValueInfoProto& value, bool is_input) -> Status {
    // A type that cannot be bound is refused later.
    const auto entry = describe_value(value, is_input);
    if (!entry || entry->desc.value.empty()) return {};
    return error(Code::kInvalidArgument,
                 "'{}' is a {}: a program with one has no batch, batch range or shape sets; "
                 "compile it without",
                 value.name(), entry->desc.value.to_string());
  };
  for (const int i : real_inputs(graph)) CORELANE_TRY(check(graph.input(i), true));
  for (const auto& value : graph.output()) CORELANE_TRY(check(value, false));
  return {};
}

Status describe(const ::onnx::ModelProto& model, ByteSpan constants, const ImportOptions& options,
                ProgramDescription& d) {
  if (options.io_dtype != DType::kUndefined && !is_float(options.io_dtype)) {
    return error(Code::kInvalidArgument,
                 "io dtype {}; f32, f16, bf16 and f64 are allowed (integer forms come from the "
                 "model's own quantization)",
                 dtype_name(options.io_dtype));
  }
  const GraphIndex index(model.graph());
  for (const int i : real_inputs(model.graph())) {
    CORELANE_ASSIGN(IoEntry entry, describe_value(model.graph().input(i), true));
    find_input_quant(index, constants, entry);
    set_reported(options, entry);
    CORELANE_TRY(set_normalisation(options, entry));
    // A layout is offered for images: 4-D tensors of numbers that may be pixels.
    const DType type = entry.desc.dtype;
    const bool pixels = type != DType::kBool && type != DType::kI64 && !is_opaque(type);
    if (entry.desc.shape.rank() == 4 && pixels) entry.preferred_layout = options.input_layout;
    d.inputs.push_back(std::move(entry));
  }
  CORELANE_TRY(describe_overridable(model, options, d));
  for (const auto& value : model.graph().output()) {
    CORELANE_ASSIGN(IoEntry entry, describe_value(value, false));
    find_output_quant(index, constants, entry);
    set_reported(options, entry);
    if (entry.desc.value.empty() && !shape_of(value.type())) {
      d.findings.push_back({ImportFinding::Kind::kWarning, value.name(), "output",
                            "its rank is not known before a run: the shape [] stands for any, not "
                            "for a scalar; declare it in the model to have it known"});
    }
    d.outputs.push_back(std::move(entry));
  }
  // After the inputs, which the message lists.
  CORELANE_TRY(check_names(options, d));
  CORELANE_TRY(set_partial(options, d));
  describe_model(model, options, d);
  return {};
}

}  // namespace corelane::onnx
