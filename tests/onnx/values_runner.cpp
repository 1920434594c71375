// Runs the node tests of the onnx package with values that nobody expects: no engine may take the
// process down, and what ONNX Runtime refuses is refused.
//
//     onnx_values_runner CASES --engine auto|openvino [--jobs N] [--limit SECONDS] [--only TEXT]
//                        [--every N] [--known FILE] [--write FILE]
//
// CASES: what export_cases.py wrote. Each case runs with patterns of values in its inputs
// (values_of.h), in a process of its own that has a limit of memory, on the engine and on ONNX
// Runtime. The run fails when a process ends by a signal or takes too long, and when one engine
// computes what the other one refuses, unless FILE lists the operator that refuses it ("Operator:
// cause"). --every: only each Nth case.

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>

#include "case_file.h"
#include "corelane/runtime/program.h"
#include "values_of.h"
#include "worker_pool.h"

namespace {

using corelane::Code;
using corelane::Program;
using corelane::Status;
using node_tests::Case;
using node_tests::Outcome;
using node_tests::Result;
namespace fs = std::filesystem;

struct Arguments {
  fs::path cases;
  std::string engine = "auto";
  std::size_t jobs = 2;
  int limit = 60;
  std::string only;
  std::size_t every = 1;
  fs::path known;
  fs::path write;
};

bool parse(int argc, char** argv, Arguments& a) {
  if (argc < 2) return false;
  a.cases = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    const char* const value = argv[i + 1];
    if (key == "--engine")
      a.engine = value;
    else if (key == "--jobs")
      a.jobs = static_cast<std::size_t>(std::max(1, std::atoi(value)));
    else if (key == "--limit")
      a.limit = std::atoi(value);
    else if (key == "--only")
      a.only = value;
    else if (key == "--every")
      a.every = static_cast<std::size_t>(std::max(1, std::atoi(value)));
    else if (key == "--known")
      a.known = value;
    else if (key == "--write")
      a.write = value;
    else
      return false;
  }
  return argc % 2 == 0;
}

/// The program on one engine; a failure where that does not take it.
corelane::Result<Program> load(const Case& c, const std::string& engine) {
  corelane::LoadOptions options;
  options.device = fmt::format("virtual:generic:1?engine={}", engine);
  options.cache = false;
  return Program::load(c.model, options);
}

Status run(const Program& program, const std::vector<node_tests::CaseTensor>& inputs) {
  CORELANE_ASSIGN(corelane::Context context, program.new_context());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& t = inputs[i];
    static const std::byte kNothing{};
    const corelane::TensorView view{
        t.data.empty() ? &kNothing : t.data.data(), t.data.size(), t.dtype, t.shape, {}, {}};
    CORELANE_TRY(context.set_input(i, view));
  }
  // Loops that never end are no crash: both engines end them between two nodes.
  corelane::RunOptions limits;
  limits.timeout = std::chrono::seconds(5);
  return context.run(limits);
}

/// What a run came to, as far as engines must agree: it computed, it refused, it had no end or no
/// memory.
const char* kind_of(const Status& status) {
  if (status.ok()) return "computes";
  if (status.code() == Code::kTimeout || status.code() == Code::kOutOfMemory) return "has no end";
  return "refuses";
}

/// One line for each difference.
Result run_case(const Case& c, const std::string& engine,
                const std::vector<std::size_t>& patterns) {
  node_tests::limit_memory(std::size_t{16} << 30);
  Result result;
  result.outcome = Outcome::kPass;
  for (const auto& input : c.inputs)
    if (input.onnx_type == 0) return result;  // Of a kind that has no values to change.
  const auto program = load(c, engine);
  if (!program) return result;  // Refused at load.
  const auto reference = load(c, "onnxruntime");
  for (const std::size_t pattern : patterns) {
    const auto inputs = node_tests::with_values(c.inputs, pattern);
    const Status ran = run(*program, inputs);
    if (!reference) continue;
    const Status expected = run(*reference, inputs);
    const std::string got = kind_of(ran);
    const std::string wanted = kind_of(expected);
    if (got == wanted || got == "has no end" || wanted == "has no end") continue;
    // Integers beyond 32 bits: OpenVINO by itself refuses a run with them, naming no operator.
    if (engine == "openvino" && ran.code() == Code::kOutOfRange &&
        ran.detail(corelane::Detail::kOperator).empty())
      continue;
    result.outcome = Outcome::kWrong;
    const Status& refused = expected.ok() ? ran : expected;
    result.text += fmt::format("{}: {}/{}: it {} ({}), ONNX Runtime {} ({})\n",
                               refused.detail(corelane::Detail::kOperator), c.name,
                               node_tests::pattern_name(pattern), got, ran.message(), wanted,
                               expected.message());
  }
  return result;
}

struct Report {
  node_tests::List known;
  std::ofstream table;
  int failures = 0;
  int lines = 0;

  void take_lines(const std::string& text) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) take(line);
  }
  void take(const std::string& text) {
    ++lines;
    if (table) table << text << '\n';
    if (known.contains(text.substr(0, text.find(": ")))) return;
    ++failures;
    fmt::print("FAILED {}\n", text);
  }
};

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  if (!parse(argc, argv, a)) {
    fmt::print(stderr,
               "usage: {} CASES --engine auto|openvino [--jobs N] [--limit SECONDS] [--only TEXT] "
               "[--every N] [--known FILE] [--write FILE]\n",
               argv[0]);
    return 2;
  }
  std::vector<std::string> names;
  std::size_t seen = 0;
  for (const auto& name : node_tests::list_cases(a.cases))
    if (name.find(a.only) != name.npos && seen++ % a.every == 0) names.push_back(name);
  std::vector<std::size_t> all(node_tests::kPatterns);
  std::iota(all.begin(), all.end(), std::size_t{0});
  const auto outcome_of = [&](const std::string& name, const std::vector<std::size_t>& patterns) {
    const auto c = node_tests::read_case(a.cases, name);
    return c ? run_case(*c, a.engine, patterns)
             : Result{Outcome::kError, c.error().to_string(), "", ""};
  };
  auto results = node_tests::run_forked(
      names.size(), a.jobs, a.limit, [&](std::size_t job) { return outcome_of(names[job], all); });
  Report report{node_tests::read_list(a.known), std::ofstream(a.write)};
  for (std::size_t job = 0; job < names.size(); ++job) {
    if (results[job].outcome == Outcome::kPass) continue;
    if (results[job].outcome == Outcome::kWrong) {
      report.take_lines(results[job].text);
      continue;
    }
    // A process has ended: each pattern in one of its own says which.
    const auto single = node_tests::run_forked(
        all.size(), a.jobs, a.limit,
        [&](std::size_t pattern) { return outcome_of(names[job], {pattern}); });
    for (const std::size_t pattern : all) {
      const std::string name = names[job] + "/" + node_tests::pattern_name(pattern);
      if (single[pattern].outcome == Outcome::kWrong) report.take_lines(single[pattern].text);
      if (single[pattern].outcome == Outcome::kError &&
          single[pattern].text != node_tests::kNoMemory)
        report.take("process: " + name + ": " + single[pattern].text);
    }
  }
  fmt::print("{} cases with {} patterns, {} differences, {} not as listed\n", names.size(),
             all.size(), report.lines, report.failures);
  return report.failures == 0 && !names.empty() ? 0 : 1;
}
