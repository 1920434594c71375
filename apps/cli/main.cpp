// The `corelane` command line: one App, one subcommand a file, one place that turns a Status into
// an exit code.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <vector>

#include "cli/command.h"
#include "cli/top/top_command.h"
#include "corelane/base/log.h"

namespace {

using corelane::cli::Action;
using corelane::cli::report_failure;

/// Also where the command line was not understood.
bool wants_json(int argc, char** argv) {
  return std::find(argv + 1, argv + argc, std::string_view("--json")) != argv + argc;
}

/// A wrong command line: what is wrong, what is allowed, where the help is.
int report_usage(const CLI::App& app, const CLI::ParseError& problem, int argc, char** argv) {
  std::string names;
  const CLI::App* chosen = nullptr;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    names += (names.empty() ? "" : ", ") + sub->get_name();
    if (sub->parsed()) chosen = sub;
  }
  // CLI11 complains of the word that it did not take, which may be the subcommand itself.
  std::string text = problem.what();
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  const auto first = std::find_if(words.begin(), words.end(),
                                  [](std::string_view word) { return !word.starts_with('-'); });
  if (chosen == nullptr && first != words.end())
    text = fmt::format("'{}' is not a subcommand", *first);
  if (chosen == nullptr) text += fmt::format("; allowed are {}", names);
  text += fmt::format("; see corelane {}--help", chosen ? chosen->get_name() + " " : "");
  report_failure(corelane::Status(corelane::Code::kInvalidArgument, text), wants_json(argc, argv));
  return corelane::cli::kExitUsage;
}

/// A closed stderr becomes /dev/null: otherwise the next file that is opened gets its number, and
/// the messages, those of a Python that is started included.
void open_stderr() {
  if (::fcntl(STDERR_FILENO, F_GETFD) >= 0) return;
  const int file = ::open("/dev/null", O_WRONLY);
  if (file < 0 || file == STDERR_FILENO) return;
  ::dup2(file, STDERR_FILENO);
  ::close(file);
}

int run(int argc, char** argv) {
  CLI::App app{"Corelane: compile, inspect, run and measure models on NPUs, virtual or real."};
  app.name("corelane");
  app.set_version_flag("--version", std::string("corelane ") + corelane::version());
  app.require_subcommand(1);
  // --json and --quiet are found after the subcommand, too.
  app.fallthrough();
  app.footer(
      "--json and --quiet go with every subcommand, before or after it.\n"
      "Exit codes: 0 done; 1 a check failed (compare, doctor, qaic-runner); 2 usage; 3 bad name,\n"
      "shape, value or file; 4 broken, foreign or refused model; 5 memory, cores or system; 6 the\n"
      "run failed (timeout, fault, engine); 7 internal; 130 interrupted.");
  corelane::cli::Global global;
  app.add_flag("--json", global.json, "Machine-readable output on stdout");
  app.add_flag("-q,--quiet", global.quiet, "No notes on stderr, only errors");

  const corelane::cli::Register all[] = {
      corelane::cli::add_devices, corelane::cli::add_doctor,    corelane::cli::add_compile,
      corelane::cli::add_inspect, corelane::cli::add_validate,  corelane::cli::add_run,
      corelane::cli::add_bench,   corelane::cli::add_compare,   corelane::cli::add_qaic_runner,
      corelane::cli::add_top,     corelane::cli::add_completion};
  std::vector<Action> actions;
  for (auto add : all) actions.push_back(add(app, global));
  // In the order of `actions`.
  const auto subcommands = app.get_subcommands([](CLI::App*) { return true; });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() != 0) return report_usage(app, e, argc, argv);
    app.exit(e);  // Prints what --help and --version say.
    const corelane::Status written = corelane::cli::flush_output();
    return written.ok() ? corelane::cli::kExitOk : report_failure(written, false);
  }
  if (global.quiet) corelane::log::set_level(corelane::log::Level::kError);
  for (std::size_t i = 0; i < subcommands.size(); ++i) {
    if (!subcommands[i]->parsed()) continue;
    const auto result = actions[i]();
    const int code = result ? *result : report_failure(result.error(), global.json);
    // Also after a failure: what was printed so far may be lost.
    const corelane::Status written = corelane::cli::flush_output();
    return written.ok() ? code : report_failure(written, false);
  }
  return corelane::cli::kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  open_stderr();
  std::signal(SIGXFSZ, SIG_IGN);  // A file beyond its limit is an error like others.
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    const corelane::Status status(corelane::Code::kInternal, e.what());
    const int code = report_failure(status, wants_json(argc, argv));
    // The exit code tells already that something is wrong.
    (void)corelane::cli::flush_output();
    return code;
  }
}
