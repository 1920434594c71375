// What a time limit costs a run: it goes to the lane's thread, and bound memory of the caller is
// copied. ReLU over n floats in bound memory, with a timeout that never comes, against the same
// without one. No targets: who sets a limit knows why.
//
// `--calls N --floats n --limited 0|1` makes N calls and nothing else, for an instruction counter.
#include <memory>
#include <string>
#include <vector>

#include "corelane/runtime/program.h"
#include "harness.h"
#include "tiny_model.h"

namespace corelane::bench {
namespace {

/// One context over memory of its caller.
struct Bound {
  std::vector<float> in, out;
  Context context;
  Bound(const Program& program, std::size_t n)
      : in(n, -1.0F), out(n), context(take(program.new_context())) {
    in[n / 2] = 3;
    const Shape shape{static_cast<std::int64_t>(n)};
    const std::size_t bytes = n * sizeof(float);
    check(context.bind_input(0, {in.data(), bytes, DType::kF32, shape, {}, {}}));
    check(context.bind_output(0, {out.data(), bytes, DType::kF32, shape, {}, {}}));
  }
};

RunOptions limited() {
  RunOptions options;
  options.timeout = std::chrono::minutes(10);
  return options;
}

Contender runs(const std::string& name, std::shared_ptr<Bound> bound, RunOptions options) {
  return {name, [bound, options](Duration block) {
            return run_for(block, 4, [&] { check(bound->context.run(options)); });
          }};
}

Program relu(std::size_t n) { return take(Program::load(as_byte_span(relu_model(n)))); }

Json compare(std::size_t n, const Settings& settings) {
  const Program program = relu(n);
  const auto plain = std::make_shared<Bound>(program, n);
  const auto again = std::make_shared<Bound>(program, n);
  const auto timed = std::make_shared<Bound>(program, n);
  check(plain->context.run());
  check(timed->context.run(limited()));
  if (plain->out != timed->out) fail("answers differ");
  const Times times = measure(
      {runs("plain", plain, {}), runs("plain'", again, {}), runs("limited", timed, limited())},
      settings);
  const Ratio ratio = ratio_of(times[2], times[0]), control = ratio_of(times[1], times[0]);
  Json made{{"floats", n},
            {"ratio", {ratio.median, ratio.low, ratio.high}},
            {"control", {control.median, control.low, control.high}},
            {"plain_us", median_of(times[0]) * 1e6},
            {"limited_us", median_of(times[2]) * 1e6}};
  fmt::print(
      stderr,
      "{} floats: limited / plain {:.3f} [{:.3f}, {:.3f}], A/A {:.3f}; {:.2f} and {:.2f} us\n", n,
      ratio.median, ratio.low, ratio.high, control.median, median_of(times[2]) * 1e6,
      median_of(times[0]) * 1e6);
  return made;
}

Json run(int argc, char** argv) {
  if (const std::string calls = argument(argc, argv, "--calls", ""); !calls.empty()) {
    const auto n = static_cast<std::size_t>(std::stoul(argument(argc, argv, "--floats", "16")));
    const Program program = relu(n);
    Bound bound(program, n);
    const bool limit = argument(argc, argv, "--limited", "0") == "1";
    for (int i = std::stoi(calls); i > 0; --i)
      check(bound.context.run(limit ? limited() : RunOptions{}));
    return {{"calls", calls}};
  }
  Settings settings;
  settings.rounds = std::stoi(argument(argc, argv, "--rounds", "31"));
  Json report{{"benchmark", "timeout"}, {"environment", environment()}};
  report["runs"] = Json::array();
  for (const std::size_t n : {std::size_t{16}, std::size_t{150528}, std::size_t{1} << 22})
    report["runs"].push_back(compare(n, settings));
  return report;
}

}  // namespace
}  // namespace corelane::bench

int main(int argc, char** argv) {
  return corelane::bench::run_program("timeout_benchmark", argc, argv, corelane::bench::run);
}
