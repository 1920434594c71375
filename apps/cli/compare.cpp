// `corelane compare`: runs a model on a device and in ONNX Runtime on the same inputs, and compares
// output by output (with --layers inner values as well). Exit code 1 where one is beyond tolerance.
#include <fmt/format.h>

#include <algorithm>

#include "cli/input_feed.h"
#include "cli/options.h"
#include "cli/reference_engine.h"
#include "cli/tensors.h"
#include "corelane/device/device.h"

namespace corelane::cli {
namespace {

struct Arguments {
  OpenArguments open;
  std::string onnx;
  std::vector<std::string> inputs;
  std::uint64_t seed = 1;
  std::string python;
  std::string script;
  double max_error = 1e-3;
  double min_cosine = 0.999;
  bool layers = false;
};

/// `inner`: the engine may carry one element as a scalar where the model says [1].
Result<Json> compare_output(const Arguments& a, const std::string& name, const common::Array& ours,
                            const common::Array& theirs, bool inner) {
  Json j{{"name", name}, {"shape", ours.shape.dims()}};
  const bool one = ours.shape.elements() == 1U && theirs.shape.elements() == 1U;
  if (!(ours.shape == theirs.shape)) {
    j["reference_shape"] = theirs.shape.dims();
    if (!inner || !one) {
      j["ok"] = false;
      return j;
    }
  }
  CORELANE_ASSIGN(auto x, as_doubles(ours.view()));
  CORELANE_ASSIGN(auto y, as_doubles(theirs.view()));
  const Difference found = difference(x, y);
  j.update({{"max_error", found.max_error},
            {"max_relative_error", found.max_relative_error},
            {"cosine", found.cosine},
            {"not_finite_differs", found.not_finite_differs}});
  j["ok"] = found.max_relative_error <= a.max_error && found.cosine >= a.min_cosine &&
            found.not_finite_differs == 0;
  return j;
}

/// Runs both sides on the context's inputs and compares output by output.
Result<Json> compare(const Arguments& a, const Program& program, Context& context,
                     ReferenceEngine& reference) {
  CORELANE_ASSIGN(auto inputs, copy_inputs(context));
  CORELANE_TRY(reference.run(inputs, a.open.exposed));
  CORELANE_TRY(context.run());
  const auto descs = context.outputs();
  CORELANE_ASSIGN(auto ours, copy_outputs(context, descs.size()));
  Json list = Json::array();
  for (std::size_t i = 0; i < descs.size(); ++i) {
    CORELANE_ASSIGN(auto theirs, reference.output(i));
    if (!theirs) {
      return error(Code::kInvalidArgument, "the program has {} outputs, the reference {} has {}",
                   descs.size(), reference.source(), i);
    }
    // Exposed values follow the declared outputs.
    const bool inner = i >= program.description().outputs.size();
    CORELANE_ASSIGN(auto j, compare_output(a, descs[i].name, ours[i], *theirs, inner));
    list.push_back(std::move(j));
  }
  CORELANE_ASSIGN(const auto more, reference.output(descs.size()));
  if (more) {
    return error(Code::kInvalidArgument, "the program has {} output{}, the reference {} has more",
                 descs.size(), descs.size() == 1 ? "" : "s", reference.source());
  }
  return list;
}

std::string left_out_text(const Json& left_out) {
  if (left_out.empty()) return {};
  // A large network loses hundreds of values to constant folding.
  constexpr std::size_t kShown = 20;
  std::string text = fmt::format("left out: {} inner value{} of the reference\n", left_out.size(),
                                 left_out.size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < std::min(kShown, left_out.size()); ++i)
    text += fmt::format("  {}: {}\n", shown(left_out[i]["name"]), shown(left_out[i]["reason"]));
  if (left_out.size() > kShown)
    text += fmt::format("  and {} more; --json lists them\n", left_out.size() - kShown);
  return text;
}

std::string as_text(const Json& out) {
  std::string text =
      fmt::format("{:<5} {:>12} {:>12} {:>12}  output\n", "", "max error", "relative", "cosine");
  for (const auto& j : out["outputs"]) {
    if (!j.contains("cosine")) {
      text += fmt::format("FAIL  shape {} here, {} in the reference  {}\n", j["shape"].dump(),
                          j["reference_shape"].dump(), shown(j["name"]));
      continue;
    }
    text +=
        fmt::format("{:<5} {:>12.3e} {:>12.3e} {:>12.9f}  {}", j["ok"].get<bool>() ? "ok" : "FAIL",
                    j["max_error"].get<double>(), j["max_relative_error"].get<double>(),
                    j["cosine"].get<double>(), shown(j["name"]));
    // The figures are of the others.
    if (const auto bad = j["not_finite_differs"].get<std::size_t>(); bad > 0)
      text += fmt::format("  ({} differ in NaN or an infinity)", bad);
    text += "\n";
  }
  return text + left_out_text(out["left_out"]);
}

Status check_tensors(const ProgramDescription& program) {
  for (const auto* entries : {&program.inputs, &program.outputs})
    for (const IoEntry& io : *entries) {
      if (!io.desc.value.empty())
        return error(Code::kUnsupported,
                     "'{}' is a {}; compare takes tensors of numbers of known "
                     "rank: compare such models in Python",
                     io.desc.name, io.desc.value.to_string());
      // ONNX Runtime has no such tensors in Python.
      if (dtype_bits(io.desc.dtype) < 8 || io.desc.dtype == DType::kF8E8M0)
        return error(
            Code::kUnsupported,
            "'{}' holds {}, which the ONNX Runtime reference neither takes nor gives; compare "
            "a model whose inputs and outputs have 8 bits or more, and are not f8e8m0",
            io.desc.name, dtype_name(io.desc.dtype));
    }
  return {};
}

Result<int> run(const Global& global, Arguments a) {
  const Interrupts interrupts;  // So that the reference's temporary folder is removed in any case.
  CORELANE_ASSIGN(auto options, load_options(a.open));
  CORELANE_ASSIGN(auto reference, ReferenceEngine::make({a.python, a.script, a.open.model, a.onnx,
                                                         std::move(options.import), a.open.part}));
  Json left_out = Json::array();
  if (a.layers) {
    CORELANE_ASSIGN(auto values, reference.inner_values());
    a.open.exposed = std::move(values.shared);
    for (const auto& v : values.left_out)
      left_out.push_back({{"name", v.name}, {"reason", v.reason}});
  }
  CORELANE_ASSIGN(auto program, open_program(a.open));
  CORELANE_TRY(check_tensors(program.description()));
  CORELANE_ASSIGN(const auto offered, shapes_of_files(program.description(), a.inputs));
  CORELANE_ASSIGN(auto context, open_context(program, a.open, offered));
  CORELANE_ASSIGN(
      [[maybe_unused]] const auto fed,
      feed_inputs(context, program.description(), {a.inputs, a.inputs.empty(), a.seed}));
  CORELANE_ASSIGN(auto list, compare(a, program, context, reference));
  if (Interrupts::pending()) return kExitInterrupted;
  // A program without outputs proves nothing.
  bool ok = !list.empty();
  for (const auto& j : list) ok = ok && j["ok"].get<bool>();
  const Json out{{"model", a.open.model},
                 {"reference", reference.source()},
                 {"device", program.device()->info().instance},
                 {"ok", ok},
                 {"max_relative_error_allowed", a.max_error},
                 {"min_cosine", a.min_cosine},
                 {"outputs", list},
                 {"left_out", left_out},
                 {"left_out_count", left_out.size()}};
  print(global, out, as_text(out));
  return ok ? kExitOk : kExitCheckFailed;
}

}  // namespace

Action add_compare(CLI::App& parent, Global& global) {
  auto* app = parent.add_subcommand("compare", "Compare a model's results with ONNX Runtime's");
  auto a = std::make_shared<Arguments>();
  add_open_options(*app, a->open);
  app->add_option(
      "--onnx", a->onnx,
      "Reference model (default: the ONNX model as given, or the one inside the program)");
  add_list(*app, "-i,--input", a->inputs, "[NAME=]FILE as in `run` (default: random)");
  app->add_option("--seed", a->seed, "Seed of random inputs")
      ->capture_default_str()
      ->check(between(0, 1e18));
  app->add_option("--max-error", a->max_error, "Allowed error relative to the largest element")
      ->capture_default_str()
      ->check(between(0, 1e30));
  app->add_option("--min-cosine", a->min_cosine, "Least cosine similarity")
      ->capture_default_str()
      ->check(between(-1, 1));
  app->add_flag("--layers", a->layers,
                "Compare inner values as well; those the program lost are listed");
  app->add_option("--python", a->python, "Python with numpy and onnxruntime");
  app->add_option("--script", a->script, "Where ort_reference.py lies");
  return [&global, a] { return run(global, *a); };
}

}  // namespace corelane::cli
