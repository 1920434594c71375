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

/// How a shell takes the lines that a command prints as its offers.
std::string offers_in_bash(const std::string& command) {
  return "mapfile -t COMPREPLY < <(" + command + ")";
}
std::string offers_in_zsh(const std::string& command) {  // It has no mapfile.
  return "COMPREPLY=($(" + command + "))";
}

/// The first word that is a subcommand decides which options are offered. For zsh, too.
std::string bash(const CLI::App& root, std::string (*offers)(const std::string&)) {
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
      "    local IFS=$'\\n'\n    {}\n  else\n    {}\n  fi\n}}\n"
      "complete -o filenames -F _corelane corelane\n",
      cases, names, words(root), names, words(root), offers("compgen -f -- \"$cur\""),
      offers("compgen -W \"$words\" -- \"$cur\""));
}

/// Between the single quotes of fish.
std::string quoted_for_fish(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return "'" + quoted + "'";
}

std::string fish(const CLI::App& root) {
  std::string text = "# fish completion for corelane\n";
  for (const auto* sub : root.get_subcommands([](const CLI::App*) { return true; })) {
    text += fmt::format("complete -c corelane -n __fish_use_subcommand -a {} -d {}\n",
                        sub->get_name(), quoted_for_fish(sub->get_description()));
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
      script = "#compdef corelane\nautoload -U +X bashcompinit && bashcompinit\n" +
               bash(parent, offers_in_zsh);
    else
      script = bash(parent, offers_in_bash);
    print(global, {{"shell", *shell}, {"script", script}}, script);
    return kExitOk;
  };
}

}  // namespace corelane::cli
