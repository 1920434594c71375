// The `corelane` command line: one App, one subcommand a file, one place that turns a Status into
// an exit code.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <vector>

#include "cli/command.h"

namespace {

using corelane::cli::Action;

int report(const corelane::Status& status, bool json) {
  if (json) {
    const corelane::cli::Json j{{"error", corelane::code_name(status.code())},
                                {"code", static_cast<int>(status.code())},
                                {"message", status.to_string()}};
    corelane::cli::print_json(j);
  }
  std::fputs(fmt::format("corelane: {}\n", status.to_string()).c_str(), stderr);
  return corelane::cli::exit_code(status);
}

int run(int argc, char** argv) {
  CLI::App app{"Corelane: compile, inspect, run and measure models on NPUs, virtual or real."};
  app.name("corelane");
  app.set_version_flag("--version", std::string("corelane ") + corelane::version());
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(
      "Exit codes: 0 done; 1 a check failed (compare, doctor); 2 usage; 3 bad name, shape, value\n"
      "or file; 4 broken, foreign or refused model; 5 memory, cores or system; 6 the run failed\n"
      "(timeout, fault, engine); 7 internal.");
  corelane::cli::Global global;
  app.add_flag("--json", global.json, "Machine-readable output on stdout");
  app.add_flag("-q,--quiet", global.quiet, "No progress on stderr");

  const corelane::cli::Register all[] = {corelane::cli::add_devices, corelane::cli::add_doctor,
                                         corelane::cli::add_compile, corelane::cli::add_inspect,
                                         corelane::cli::add_run,     corelane::cli::add_bench,
                                         corelane::cli::add_compare, corelane::cli::add_completion};
  std::vector<Action> actions;
  for (auto add : all) actions.push_back(add(app, global));
  const auto subcommands = app.get_subcommands([](CLI::App*) { return true; });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? 0 : corelane::cli::kExitUsage;
  }
  for (std::size_t i = 0; i < subcommands.size(); ++i) {
    if (!subcommands[i]->parsed()) continue;
    const auto result = actions[i]();
    return result ? *result : report(result.error(), global.json);
  }
  return corelane::cli::kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fputs(fmt::format("corelane: internal error: {}\n", e.what()).c_str(), stderr);
    return corelane::cli::kExitInternal;
  }
}
