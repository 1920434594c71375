#include "onnx/onnx_complete.h"

#include <string>
#include <utility>

#include "base/deadline.h"
#include "onnx/graph/onnx_describe.h"
#include "onnx/graph/onnx_model_bytes.h"
#include "onnx/graph/onnx_tensor.h"
#include "onnx/graph/onnx_walk.h"
#include "onnx/lowering/onnx_engines.h"
#include "onnx/onnx_custom.h"

namespace corelane::onnx {
namespace {

std::uint64_t total_constants(::onnx::ModelProto& model) {
  std::uint64_t total = 0;
  for_each_tensor(model, [&](::onnx::TensorProto& t) { total += tensor_bytes(t).value_or(0); });
  return total;
}

/// What the lowerings find out about the network given, beside their own results.
struct Lowered {
  RewriteReport report;
  std::vector<CustomOperatorDecl> custom_operators;
};

Status read_again(ByteSpan given, ::onnx::ModelProto& model) {
  model.Clear();
  if (model.ParseFromArray(given.data(), static_cast<int>(given.size()))) return {};
  return error(Code::kInternal, "protobuf cannot read what it wrote");
}

/// Adds the form for one engine. `model` is the network `given`, before and after, but for the
/// shapes of its outputs, of which the lowering may find out more. Lowered in place and read again,
/// since a copy beside it would take as much memory again.
Result<Lowered> lower(::onnx::ModelProto& model, ByteSpan given, ByteSpan constants,
                      const Lowering& lowering, const ImportOptions& options,
                      ImportedModel& imported) {
  Lowered found;
  if (auto report = lower_model(model, constants, lowering)) {
    found.report = std::move(*report);
  } else {
    if (report.error().code() != Code::kUnsupportedModel) return error(report.error());
    found.report = unlowered(report.error());
    CORELANE_TRY(read_again(given, model));
  }
  CORELANE_ASSIGN(found.custom_operators, find_custom_operators(model, options.custom_operators));
  LoweredGraph& form = imported.lowered.emplace_back(LoweredGraph{lowering.tag(), {}, {}});
  if (options.refuse_known_wrong) form.unfit = found.report.unfit;
  if (!found.report.changed) return found;
  CORELANE_TRY(
      describe_custom_outputs(model, constants, found.custom_operators, options.custom_operators));
  CORELANE_ASSIGN(form.graph, serialize_model(model));
  // Kept over the reading: the lowering has filled in their open dimensions.
  auto outputs = std::move(*model.mutable_graph()->mutable_output());
  CORELANE_TRY(read_again(given, model));
  *model.mutable_graph()->mutable_output() = std::move(outputs);
  return found;
}

/// The outputs as the model declares them.
std::string outputs_text(const ::onnx::ModelProto& model) {
  std::string text;
  for (const auto& output : model.graph().output()) output.AppendToString(&text);
  return text;
}

}  // namespace

Status complete_model(::onnx::ModelProto& model, ByteSpan constants, const ImportOptions& options,
                      const std::vector<ImportFinding>& earlier, ImportedModel& imported) {
  ProgramDescription& description = imported.description;
  CORELANE_ASSIGN(ByteVector given, serialize_model(model));
  const std::string outputs = outputs_text(model);
  for (const Lowering& lowering : lowerings()) {
    CORELANE_TRY(check_deadline(options.deadline, "the network is lowered"));
    CORELANE_ASSIGN(Lowered found, lower(model, given, constants, lowering, options, imported));
    description.findings.insert(description.findings.end(), found.report.findings.begin(),
                                found.report.findings.end());
    description.macs = found.report.macs;
    description.custom_operators = std::move(found.custom_operators);
  }
  description.findings.insert(description.findings.end(), earlier.begin(), earlier.end());
  CORELANE_TRY(describe_custom_outputs(model, constants, description.custom_operators,
                                       options.custom_operators));
  CORELANE_TRY(check_deadline(options.deadline, "the network is described"));
  // Last: it reads what all steps before have settled.
  CORELANE_TRY(describe(model, constants, options, description));
  description.constant_bytes = total_constants(model);
  // What was learned since is in the outputs, and in the nodes of custom operators.
  if (description.custom_operators.empty() && outputs_text(model) == outputs) {
    imported.graph = std::move(given);
  } else {
    // The macro is two statements.
    CORELANE_ASSIGN(imported.graph, serialize_model(model));
  }
  return {};
}

}  // namespace corelane::onnx
