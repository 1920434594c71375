// `corelane completion bash|zsh|fish`: completion files made from the commands themselves.
#include <fmt/format.h>

#include "cli/command.h"

namespace corelane::cli {
namespace {

/// Every option of a command, long and short.
std::string words(const CLI::App& app) {
  std::string text;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) text += "--" + name + " ";
    for (const auto& name : option->get_snames()) text += "-" + name + " ";
  }
  return text;
}

/// The first word that is a subcommand decides which options are offered; zsh reads the same
/// script.
std::string bash(const CLI::App& root) {
  std::string cases;
  std::string names;
  for (const auto* sub : root.get_subcommands([](const CLI::App*) { return true; })) {
    names += sub->get_name() + " ";
    cases += fmt::format("    {}) words=\"{}\" ;;\n", sub->get_name(), words(*sub));
  }
  return fmt::format(
      "# bash completion for corelane: source this file\n_corelane() {{\n"
      "  local cur=\"${{COMP_WORDS[COMP_CWORD]}}\" words=\"\" w\n"
      "  for w in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do case \"$w\" in\n{}  esac; done\n"
      "  [ -n \"$words\" ] || words=\"{}{}\"\n"
      "  if [ \"${{cur#-}}\" = \"$cur\" ] && [ \"$words\" != \"{}{}\" ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n  else\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n  fi\n}}\n"
      "complete -o filenames -F _corelane corelane\n",
      cases, names, words(root), names, words(root));
}

std::string fish(const CLI::App& root) {
  std::string text = "# fish completion for corelane\n";
  for (const auto* sub : root.get_subcommands([](const CLI::App*) { return true; })) {
    text += fmt::format("complete -c corelane -n __fish_use_subcommand -a {} -d '{}'\n",
                        sub->get_name(), sub->get_description());
    for (const auto* option : sub->get_options()) {
      for (const auto& name : option->get_lnames()) {
        text += fmt::format("complete -c corelane -n '__fish_seen_subcommand_from {}' -l {}\n",
                            sub->get_name(), name);
      }
    }
  }
  return text;
}

}  // namespace

Action add_completion(CLI::App& parent, Global& global) {
  auto* app = parent.add_subcommand("completion", "Print a completion file for a shell");
  auto shell = std::make_shared<std::string>();
  app->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [&parent, &global, shell]() -> Result<int> {
    std::string script;
    if (*shell == "fish")
      script = fish(parent);
    else if (*shell == "zsh")
      script = "#compdef corelane\nautoload -U +X bashcompinit && bashcompinit\n" + bash(parent);
    else
      script = bash(parent);
    print(global, {{"shell", *shell}, {"script", script}}, script);
    return kExitOk;
  };
}

}  // namespace corelane::cli
