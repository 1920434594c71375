// Runs the node tests of the onnx package through import, load and run, and holds the results
// against three lists.
//
//     onnx_node_runner CASES LISTS [--jobs N] [--limit SECONDS] [--only PATTERN] [--write FILE]
//                      [--unfit refused|any] [--engine NAME]
//
// CASES: what export_cases.py wrote. LISTS: the folder of refused.txt, known_wrong.txt and
// random.txt, lines "name: cause". A cause in refused.txt that begins with "by machine" allows that
// the case passes. Of cases in random.txt types and shapes alone are compared. The run fails when a
// case in neither of the first two lists does not pass, and when one of theirs ends otherwise.
// --unfit: how a case may end whose network has a verdict of the lowering, beside passing: as
// listed (default), refused, or refused or wrong, where a device computes all with the engine that
// the verdict is about.
// --engine: the device computes with this engine alone. A case may be refused then, whatever the
// lists say, with a message that names what is refused; and it may pass. A wrong result may not be.

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "case_file.h"
#include "run_case.h"
#include "worker_pool.h"

namespace {

using node_tests::Outcome;
namespace fs = std::filesystem;

struct Arguments {
  fs::path cases;
  fs::path lists;
  std::size_t jobs = std::min(2U, std::max(1U, std::thread::hardware_concurrency()));
  int limit = 60;
  std::string only;
  std::string unfit;
  std::string engine;
  fs::path write;
};

using node_tests::List;
using node_tests::read_list;

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
      return "pass";
    case Outcome::kRefused:
      return "refused";
    case Outcome::kWrong:
      return "wrong";
    default:
      return "error";
  }
}

/// "" when the result is as the lists say.
std::string complaint(const std::string& name, Outcome outcome, const List& refused,
                      const List& wrong) {
  const auto w = wrong.find(name);
  const auto r = refused.find(name);
  const bool by_machine = r != refused.end() && r->second.starts_with("by machine");
  if (refused.contains(name) && w != wrong.end()) return "it is in both lists";
  if (outcome == Outcome::kPass) {
    if (r != refused.end() && !by_machine) return "it passes: remove it from refused.txt";
    if (w != wrong.end()) return "it passes: remove it from known_wrong.txt";
    return "";
  }
  if (outcome == Outcome::kRefused)
    return refused.contains(name) ? "" : "it is refused, but not in refused.txt";
  if (outcome == Outcome::kWrong && w != wrong.end()) return "";
  return outcome == Outcome::kWrong ? "its result is wrong, but it is not in known_wrong.txt"
                                    : "it failed";
}

/// The same where one engine alone computes: see --engine.
std::string complaint_of_one_engine(const node_tests::Result& result, bool known_wrong) {
  if (result.outcome == Outcome::kPass) return "";
  if (result.outcome == Outcome::kRefused) {
    for (const char* named : {"node ", "input ", "output ", "operator ", "constant "})
      if (result.text.find(named) != std::string::npos) return "";
    return "its refusal names nothing";
  }
  if (result.outcome == Outcome::kWrong && known_wrong) return "";
  return result.outcome == Outcome::kWrong ? "its result is wrong, and nothing says so"
                                           : "it failed";
}

/// True for an end that a verdict on the network allows.
bool is_excused(const node_tests::Result& result, const std::string& unfit) {
  if (result.verdict.empty()) return false;
  if (result.outcome == Outcome::kRefused) return unfit == "refused" || unfit == "any";
  return result.outcome == Outcome::kWrong && unfit == "any";
}

struct Counts {
  int pass = 0, refused = 0, wrong = 0, error = 0;
  void add(Outcome o) {
    ++(o == Outcome::kPass      ? pass
       : o == Outcome::kRefused ? refused
       : o == Outcome::kWrong   ? wrong
                                : error);
  }
  int total() const { return pass + refused + wrong + error; }
};

const char* band_of(std::int64_t opset) {
  if (opset == 0) return "no opset";  // Only operators of other domains.
  if (opset <= 13) return "opset <= 13";
  if (opset <= 17) return "opset 14-17";
  if (opset <= 21) return "opset 18-21";
  return opset <= 25 ? "opset 22-25" : "opset 26+";
}

void print_row(const std::string& label, const Counts& c) {
  fmt::print("{:12} {:5} cases {:5} pass {:4} refused {:4} wrong {:3} error  {:5.1f} %\n", label,
             c.total(), c.pass, c.refused, c.wrong, c.error,
             c.total() > 0 ? 100.0 * c.pass / c.total() : 0.0);
}

bool parse(int argc, char** argv, Arguments& a) {
  if (argc < 3) return false;
  a.cases = argv[1];
  a.lists = argv[2];
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    if (key == "--jobs")
      a.jobs = static_cast<std::size_t>(std::max(1, std::atoi(argv[i + 1])));
    else if (key == "--limit")
      a.limit = std::atoi(argv[i + 1]);
    else if (key == "--only")
      a.only = argv[i + 1];
    else if (key == "--unfit")
      a.unfit = argv[i + 1];
    else if (key == "--engine")
      a.engine = argv[i + 1];
    else if (key == "--write")
      a.write = argv[i + 1];
    else
      return false;
  }
  return argc % 2 == 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    fmt::print(stderr,
               "usage: {} CASES LISTS [--jobs N] [--limit SECONDS] [--only TEXT] "
               "[--write FILE] [--unfit refused|any] [--engine NAME]\n",
               argv[0]);
    return 2;
  }
  auto names = node_tests::list_cases(arguments.cases);
  std::erase_if(names, [&](const std::string& n) { return n.find(arguments.only) == n.npos; });
  if (names.empty()) {
    fmt::print(stderr, "no cases in '{}'; write them with export_cases.py\n",
               arguments.cases.string());
    return 2;
  }
  std::map<std::string, std::int64_t> opsets;
  for (const auto& name : names) {
    const auto c = node_tests::read_case(arguments.cases, name);
    if (c) opsets[name] = c->opset;
  }
  const List random = read_list(arguments.lists / "random.txt");
  const auto results = node_tests::run_forked(
      names.size(), arguments.jobs, arguments.limit, [&](std::size_t i) -> node_tests::Result {
        const auto c = node_tests::read_case(arguments.cases, names[i]);
        if (!c) return {Outcome::kError, c.error().to_string(), "", ""};
        return node_tests::run_case(*c, random.contains(names[i]), arguments.engine);
      });

  const List refused = read_list(arguments.lists / "refused.txt");
  const List wrong = read_list(arguments.lists / "known_wrong.txt");
  std::map<std::string, Counts> bands;
  std::map<std::string, int> engines;
  Counts all, until21;
  int complaints = 0, unfit = 0;
  std::ofstream table;
  if (!arguments.write.empty()) table.open(arguments.write);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& result = results[i];
    const std::int64_t opset = opsets[names[i]];
    all.add(result.outcome);
    bands[band_of(opset)].add(result.outcome);
    if (opset > 0 && opset <= 21) until21.add(result.outcome);
    if (table) {
      table << names[i] << '\t' << opset << '\t' << name_of(result.outcome) << '\t' << result.text
            << '\t' << result.warnings << '\t' << result.verdict << '\n';
    }
    if (!result.verdict.empty()) ++unfit;
    if (!result.engine.empty()) ++engines[result.engine];
    const std::string text = arguments.engine.empty()
                                 ? complaint(names[i], result.outcome, refused, wrong)
                                 : complaint_of_one_engine(result, wrong.contains(names[i]));
    if (text.empty() || is_excused(result, arguments.unfit)) continue;
    ++complaints;
    fmt::print("FAILED {}: {}\n    {}\n", names[i], text, result.text);
  }
  for (const auto& [label, counts] : bands) print_row(label, counts);
  print_row("up to 21", until21);
  print_row("all", all);
  fmt::print("{} with a verdict\n", unfit);
  for (const auto& [engine, count] : engines) fmt::print("{} on {}\n", count, engine);
  if (arguments.only.empty()) {
    for (const List* list : {&refused, &wrong, &random}) {
      for (const auto& [name, cause] : *list) {
        if (opsets.contains(name)) continue;
        ++complaints;
        fmt::print("FAILED {}: it is listed, but there is no such case\n", name);
      }
    }
  }
  fmt::print("{}\n", complaints == 0 ? "as listed" : fmt::format("{} not as listed", complaints));
  return complaints == 0 ? 0 : 1;
}
