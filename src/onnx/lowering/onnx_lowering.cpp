#include "corelane/onnx/onnx_lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/guard.h"
#include "corelane/base/log.h"
#include "onnx/graph/onnx_held_model.h"
#include "onnx/graph/onnx_model_bytes.h"
#include "onnx/graph/onnx_stored.h"
#include "onnx/graph/onnx_walk.h"
#include "onnx/lowering/onnx_engines.h"
#include "onnx/lowering/onnx_quantized.h"
#include "onnx/lowering/onnx_quantized_constants.h"
#include "onnx/lowering/onnx_rewriter.h"
#include "onnx/lowering/onnx_shadow.h"
#include "onnx/lowering/onnx_unchecked.h"

namespace corelane {
namespace onnx {
namespace {

/// Revisions of "openvino":
///  1  as the import wrote it until its revision 3, for OpenVINO 2026.4.1
///  2  constants after reductions, Softmax of operator sets 11 and 12, slopes of PRelu, axes of
///     ReduceL1, ReduceLogSum and ReduceLogSumExp
///  3  verdicts; names in subgraphs that hide those around them
///  4  verdicts on places that come with each run
///  5  scans of many steps and losses with ignore_index: a verdict; what the other engine computes
///     as well is not written in other nodes any more
///  6  verdicts on axes that come with each run, of reductions of constants
///  7  overlaps equal to a threshold, rests of divisions by infinity; verdicts on quantization of
///     values as they come, on networks that look for NaN, and on the maximum of nothing
///  8  verdicts on quotients of bytes, coupled gates of LSTM, pools that round up over padding,
///     indices by columns, and open transposed convolutions; sizes of Resize in floats
///  9  integers of shapes below 0, floats to bool; verdicts on recurrences and transforms without
///     samples, constants without elements or beyond 32 bits, many equal values, 8-bit floats
///  10 verdicts on element types that end the process
///  11 verdicts on loops that may make no round, and ranges of floats without elements
///  12 a verdict on outputs that are quantized constants; sizes of Flatten without elements
///  13 sums, means and extremes of one operand; a verdict on outputs that are inputs
///  14 a verdict on casts to bfloat16
constexpr std::array kLowerings{Lowering{"openvino", 14}};

/// Null for a lowering that is not one of kLowerings, of an earlier revision too: what it made
/// cannot be made any more.
const EngineRules* rules_of(const Lowering& lowering) {
  static const EngineRules kOpenVino{openvino_rules(), rewrite_quantized};
  return lowering.tag() == kLowerings[0].tag() ? &kOpenVino : nullptr;
}

/// Names in a model may be of any length and hold any bytes; a verdict is one line that fits into a
/// program file.
std::string one_line(std::string_view text) {
  constexpr std::size_t kMost = 1024;
  std::size_t end = std::min(text.size(), kMost);
  // Not inside a character of several bytes.
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;
  std::string line(text.substr(0, end));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  return line;
}

/// Why a network with texts in it must not reach the engine, which frees what is not its own while
/// it reads some (Unique over a constant of strings); empty where it has none.
std::string text_constant(::onnx::ModelProto& model) {
  std::string found;
  for_each_tensor(model, [&](::onnx::TensorProto& tensor) {
    if (found.empty() && tensor.data_type() == ::onnx::TensorProto::STRING)
      found = fmt::format("constant '{}': strings are not what the engine computes", tensor.name());
  });
  return found;
}

/// The first output that is an input of the network: the engine takes the two for one tensor, so
/// that it reads the input where the result is to be written, and writes over the input.
std::optional<ImportFinding> passed_input(const ::onnx::GraphProto& graph) {
  std::unordered_set<std::string_view> inputs;
  for (const auto& input : graph.input()) inputs.insert(input.name());
  for (const auto& output : graph.output())
    if (inputs.contains(output.name()))
      return ImportFinding{ImportFinding::Kind::kWarning, output.name(), "output",
                           "it is an input, which the engine writes over"};
  return std::nullopt;
}

/// The first reason stays: it names a node.
void add_reason(RewriteReport& report, ImportFinding finding, std::string reason) {
  if (report.unfit.empty()) report.unfit = std::move(reason);
  report.findings.push_back(std::move(finding));
}

}  // namespace

Result<RewriteReport> lower_model(::onnx::ModelProto& model, ByteSpan constants,
                                  const Lowering& lowering) {
  const EngineRules* const rules = rules_of(lowering);
  if (rules == nullptr)
    return error(Code::kInvalidArgument, "there is no lowering '{}'", lowering.tag());
  std::vector<ImportFinding> renamed;
  rename_shadows(*model.mutable_graph(), renamed);
  const auto unchecked = unchecked_values(model.graph());
  const auto constant = quantized_constant(model.graph());
  const auto passed = passed_input(model.graph());
  const std::string text = text_constant(model);
  CORELANE_ASSIGN(RewriteReport report, rewrite(model, constants, rules->nodes));
  if (unchecked) add_reason(report, *unchecked, text_of(*unchecked));
  if (constant) add_reason(report, *constant, text_of(*constant));
  if (passed) add_reason(report, *passed, text_of(*passed));
  if (!text.empty()) add_reason(report, {ImportFinding::Kind::kWarning, "", "network", text}, text);
  report.findings.insert(report.findings.begin(), renamed.begin(), renamed.end());
  report.unfit = one_line(report.unfit);
  rules->graph(*model.mutable_graph(), constants, report.findings);
  // Warnings alone leave the network as it is.
  report.changed = std::ranges::any_of(report.findings, [](const ImportFinding& finding) {
    return finding.kind == ImportFinding::Kind::kRewritten;
  });
  return report;
}

RewriteReport unlowered(const Status& why) {
  RewriteReport report;
  report.findings.push_back(
      {ImportFinding::Kind::kWarning, "", "network", std::string(why.message())});
  report.unfit = one_line(why.message());
  return report;
}

}  // namespace onnx

std::string Lowering::tag() const { return fmt::format("{}/{}", engine, revision); }

std::span<const Lowering> lowerings() noexcept { return onnx::kLowerings; }

const Lowering* lowering_for(std::string_view engine) noexcept {
  // Engines are named with their version: "OpenVINO 2026.4.1".
  const std::string_view name = engine.substr(0, engine.find(' '));
  const auto same = [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); };
  for (const Lowering& lowering : onnx::kLowerings)
    if (std::ranges::equal(lowering.engine, name, same)) return &lowering;
  return nullptr;
}

Result<LoweredGraph> lower_onnx(ByteSpan graph, ByteSpan constants, const Lowering& lowering) {
  return no_throw("the lowering", [&]() -> Result<LoweredGraph> {
    const onnx::HeldModel held;
    ::onnx::ModelProto& model = *held;
    CORELANE_ASSIGN(const bool sorted, onnx::read_stored(graph, constants, model));
    auto report = onnx::lower_model(model, constants, lowering);
    if (!report) {
      if (report.error().code() != Code::kUnsupportedModel) return error(report.error());
      return LoweredGraph{lowering.tag(), {}, onnx::unlowered(report.error()).unfit};
    }
    for (const ImportFinding& finding : report->findings)
      if (finding.kind == ImportFinding::Kind::kWarning)
        log::debug("onnx", "node {} ({}): {}", finding.node, finding.op, finding.text);
    LoweredGraph lowered{lowering.tag(), {}, std::move(report->unfit)};
    // Engines may want nodes in order.
    if (report->changed || sorted) {
      // The macro is two statements.
      CORELANE_ASSIGN(lowered.graph, onnx::serialize_model(model));
    }
    return lowered;
  });
}

Result<std::string> check_network(ByteSpan graph, ByteSpan constants, bool in_order) {
  return no_throw("the check of the network", [&]() -> Result<std::string> {
    const onnx::HeldModel held;
    ::onnx::ModelProto& model = *held;
    CORELANE_ASSIGN(const bool sorted, onnx::read_stored(graph, constants, model));
    if (sorted && in_order)
      return error(Code::kMalformed,
                   "a node reads what a later one makes, in a form that is in order");
    if (const auto unchecked = onnx::unchecked_values(model.graph()))
      return onnx::one_line(onnx::text_of(*unchecked));
    return onnx::one_line(onnx::text_constant(model));
  });
}

}  // namespace corelane
