// Loads and runs damaged ONNX and program files: none may take the process down, go on forever or
// take much memory to load.
//
//     mutant_runner FOLDER... [--count N] [--from N] [--jobs N] [--limit SECONDS] [--memory MIB]
//                   [--save FOLDER] [--table FILE]
//
// FOLDER: ONNX models, which the mutants are made of (mutant.h). Mutant number N is the same in
// each run over the same models. Each is loaded and run in a process with a limit of address space;
// one that ends it by a signal, takes longer than --limit, or more than --memory to load, is a
// failure. What a run takes, its values decide: the process's limit ends it. --save keeps failures;
// --table writes one line for each mutant.

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "corelane/base/file.h"
#include "corelane/base/log.h"
#include "mutant.h"
#include "mutant_trial.h"
#include "worker_pool.h"

namespace {

using corelane::robustness::make_mutant;
using corelane::robustness::Mutant;
using corelane::robustness::Trial;
using node_tests::Outcome;
using node_tests::Result;
namespace fs = std::filesystem;

struct Arguments {
  std::vector<fs::path> folders;
  std::size_t count = 500;
  std::size_t from = 0;
  std::size_t jobs = 2;
  int limit = 25;
  std::size_t memory = 2048;
  fs::path save;
  fs::path table;
};

bool parse(int argc, char** argv, Arguments& a) {
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (!key.starts_with("--")) {
      a.folders.emplace_back(key);
      continue;
    }
    if (++i == argc) return false;
    const auto number = static_cast<std::size_t>(std::atoll(argv[i]));
    if (key == "--count")
      a.count = number;
    else if (key == "--from")
      a.from = number;
    else if (key == "--jobs")
      a.jobs = std::max<std::size_t>(number, 1);
    else if (key == "--limit")
      a.limit = static_cast<int>(number);
    else if (key == "--memory")
      a.memory = number;
    else if (key == "--save")
      a.save = argv[i];
    else if (key == "--table")
      a.table = argv[i];
    else
      return false;
  }
  return !a.folders.empty();
}

Result run_mutant(const std::vector<fs::path>& models, std::uint64_t number, std::size_t memory) {
  // Far more than a mutant may have resident, and less than the machine has.
  node_tests::limit_memory(std::size_t{8} << 30);
  const Mutant mutant = make_mutant(models, number);
  const Trial trial = corelane::robustness::try_file(mutant.bytes, number);
  Result result;
  result.outcome = trial.load_peak <= memory << 20 ? Outcome::kPass : Outcome::kWrong;
  if (result.outcome == Outcome::kWrong)
    result.text = fmt::format("took {} MiB to load: {}", trial.load_peak >> 20, trial.text);
  result.warnings = trial.text;
  result.verdict = trial.loaded ? fmt::format("{} {} {}", trial.ran > 0 ? "computed" : "loaded",
                                              trial.engine, trial.peak >> 20)
                                : fmt::format("refused - {}", trial.peak >> 20);
  result.verdict += fmt::format(" {}", trial.load_peak >> 20);
  return result;
}

struct Report {
  std::map<std::string, std::size_t> counts;
  std::ofstream table;
  int failures = 0;

  void take(std::uint64_t number, const Mutant& mutant, const Result& result) {
    const bool passed = result.outcome == Outcome::kPass;
    ++counts[passed ? result.verdict.substr(0, result.verdict.find(' ')) : "failed"];
    if (table)
      table << fmt::format("{} {} {} {} {} {}\n", number, mutant.kind, mutant.origin,
                           passed ? "ok" : "FAILED", result.verdict,
                           passed ? result.warnings : result.text);
    if (passed) return;
    ++failures;
    fmt::print("FAILED {} ({} of {}): {}\n", number, mutant.kind, mutant.origin, result.text);
    std::fflush(stdout);
  }
};

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  if (!parse(argc, argv, a)) {
    fmt::print(stderr, "usage: {} FOLDER... --count N [options]\n", argv[0]);
    return 2;
  }
  // The order of the engines is each mutant's own.
  ::unsetenv("CORELANE_TIME_ENGINES");
  const auto models = corelane::robustness::find_models(a.folders, std::size_t{256} << 10);
  if (models.empty()) {
    fmt::print(stderr, "no ONNX files under {}\n", a.folders.front().string());
    return 2;
  }
  const auto results = node_tests::run_forked(a.count, a.jobs, a.limit, [&](std::size_t job) {
    return run_mutant(models, a.from + job, a.memory);
  });
  Report report;
  if (!a.table.empty()) report.table.open(a.table);
  for (std::size_t job = 0; job < a.count; ++job) {
    // Only failures are made again: compiling them is the work.
    const std::uint64_t number = a.from + job;
    Mutant mutant = make_mutant(models, number);
    report.take(number, mutant, results[job]);
    if (results[job].outcome == Outcome::kPass || a.save.empty()) continue;
    const auto saved =
        corelane::write_file_atomic(a.save / (std::to_string(number) + ".bin"), mutant.bytes);
    if (!saved.ok()) fmt::print(stderr, "{}\n", saved.to_string());
  }
  fmt::print("{} mutants of {} models:", a.count, models.size());
  for (const auto& [what, count] : report.counts) fmt::print(" {} {}", count, what);
  fmt::print(", {} failures\n", report.failures);
  return report.failures == 0 ? 0 : 1;
}
