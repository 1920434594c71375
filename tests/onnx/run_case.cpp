#include "run_case.h"

#include <fmt/core.h>

#include "corelane/onnx/onnx_import.h"
#include "corelane/runtime/program.h"
#include "corelane/tensor/value.h"

namespace node_tests {
namespace {

using corelane::Code;
using corelane::Status;

Result failed(const Status& status) {
  Result result;
  const bool refused = status.code() == Code::kUnsupportedModel;
  result.outcome = refused ? Outcome::kRefused : Outcome::kError;
  result.text = status.to_string();
  return result;
}

Status bind_inputs(const Case& c, corelane::Context& context) {
  const auto descs = context.inputs();
  if (descs.size() != c.inputs.size()) {
    return corelane::error(Code::kInternal, "{} inputs, the case has {}", descs.size(),
                           c.inputs.size());
  }
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const CaseTensor& t = c.inputs[i];
    if (t.onnx_type == 0) {
      CORELANE_TRY(context.set_input(i, corelane::flat_view(t.data)));
      continue;
    }
    static const std::byte kNothing{};
    const corelane::TensorView view{
        t.data.empty() ? &kNothing : t.data.data(), t.data.size(), t.dtype, t.shape, {}, {}};
    if (descs[i].value.empty()) {
      CORELANE_TRY(context.set_input(i, view));
      continue;
    }
    // A tensor of numbers whose rank the model leaves open.
    CORELANE_ASSIGN(const auto bytes, corelane::ValueBuilder().tensor(view).finish());
    CORELANE_TRY(context.set_input(i, corelane::flat_view(bytes)));
  }
  return {};
}

CaseTensor copy_of(const corelane::TensorView& view) {
  CaseTensor t;
  t.dtype = view.dtype;
  t.shape = view.shape;
  const auto* bytes = static_cast<const std::byte*>(view.data);
  if (bytes != nullptr) t.data.assign(bytes, bytes + view.size);
  return t;
}

std::string difference(const CaseTensor& expected, const CaseTensor& got, const Case& c,
                       bool random) {
  if (random) return compare_kinds(expected, got);
  const auto& check = expected.onnx_type == 0 ? compare_flat : compare;
  return check(expected, got, c.rtol, c.atol);
}

Result run_model(const Case& c, bool random, const std::string& engine) {
  corelane::LoadOptions options;
  options.device = "virtual:generic:1";
  if (!engine.empty()) options.device += fmt::format("?engine={}", engine);
  options.cache = false;
  auto program = corelane::Program::load(c.model, options);
  if (!program) return failed(program.error());
  Result result;
  for (const auto& finding : program->description().findings) {
    if (finding.kind != corelane::ImportFinding::Kind::kWarning) continue;
    result.warnings += fmt::format("{} ({}): {}; ", finding.node, finding.op, finding.text);
  }
  auto context = program->new_context();
  if (!context) return failed(context.error());
  if (const Status bound = bind_inputs(c, *context); !bound.ok()) return failed(bound);
  result.engine = program->engine().engine;
  if (const Status ran = context->run(); !ran.ok()) {
    Result refused = failed(ran);
    // What the values are decides at the run: the engine that was named does not take them.
    if (!engine.empty() && ran.code() == Code::kOutOfRange) refused.outcome = Outcome::kRefused;
    return refused;
  }
  if (context->outputs().size() != c.outputs.size()) {
    result.text =
        fmt::format("{} outputs, expected {}", context->outputs().size(), c.outputs.size());
    return result;
  }
  for (std::size_t i = 0; i < c.outputs.size(); ++i) {
    auto view = context->output(i);
    if (!view) return failed(view.error());
    const std::string text = difference(c.outputs[i], copy_of(*view), c, random);
    if (text.empty()) continue;
    result.outcome = Outcome::kWrong;
    result.text = fmt::format("output {} {}", i, text);
    return result;
  }
  result.outcome = Outcome::kPass;
  return result;
}

std::string verdict_on(const Case& c) {
  if (const auto imported = corelane::import_onnx(c.model))
    for (const corelane::LoweredGraph& form : imported->lowered)
      if (!form.unfit.empty()) return form.unfit;
  return "";
}

}  // namespace

Result run_case(const Case& c, bool random, const std::string& engine) {
  Result result = run_model(c, random, engine);
  result.verdict = verdict_on(c);
  return result;
}

}  // namespace node_tests
