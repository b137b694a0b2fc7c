// filigree --completion: scripts that let a shell complete commands and options, made from the
// program's own list of them.
#include "apps/cli/program/completion.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/program/program.h"

namespace filigree::cli {
namespace {

struct OptionEntry {
  std::string name, description;
  std::vector<std::string> choices;
};

std::vector<OptionEntry> options_of(const CLI::App& app) {
  std::vector<OptionEntry> entries;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames())
      entries.push_back({"--" + name, option->get_description(), value_kind(*option).choices});
  return entries;
}

std::string option_names(const CLI::App& app) {
  std::string names;
  for (const OptionEntry& entry : options_of(app)) names += (names.empty() ? "" : " ") + entry.name;
  return names;
}

// What the first argument can be, where it is one of a few words.
std::vector<std::string> first_argument(const CLI::App& app) {
  std::vector<std::string> inside;
  for (const CLI::App* command : commands_under(app)) inside.push_back(command->get_name());
  if (!inside.empty()) return inside;
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional()) return value_kind(*option).choices;
  return {};
}

constexpr const char* kBashScript =
    R"script(# bash completion for filigree; to use it in this shell:
#   eval "$(filigree --completion bash)"
_filigree() {
  local word=${COMP_WORDS[COMP_CWORD]} options= choices= before=
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "@COMMANDS@" -- "$word"))
    return
  fi
  case ${COMP_WORDS[1]} in
@CASES@  esac
  case "${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD-1]}" in
@CHOICES@  esac
  # Anything else is a file or folder, which bash completes by itself.
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [[ -n $choices ]]; then
    [[ $word == *,* ]] && before=${word%,*},
    COMPREPLY=($(compgen -P "$before" -W "$choices" -- "${word##*,}"))
  fi
}
complete -o default -F _filigree filigree
)script";

constexpr const char* kZshScript = R"script(#compdef filigree
# zsh completion for filigree; to use it in this shell:
#   eval "$(filigree --completion zsh)"
_filigree() {
  local -a commands options choices
  commands=(
@COMMANDS@  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  case $words[2] in
@CASES@  esac
  case "$words[2] $words[CURRENT-1]" in
@CHOICES@  esac
  if [[ $PREFIX == -* ]]; then
    _describe option options
  elif (($#choices)); then
    compset -P '*,'
    compadd -- $choices
  else
    _files
  fi
}
# Read from a file of $fpath, this is the function's own body at its first call.
if [[ $funcstack[1] == _filigree ]]; then _filigree "$@"; else compdef _filigree filigree; fi
)script";

std::string filled(std::string script, const std::string& commands, const std::string& cases,
                   const std::string& choices) {
  for (const auto& [mark, text] :
       {std::pair{"@COMMANDS@", commands}, {"@CASES@", cases}, {"@CHOICES@", choices}})
    script.replace(script.find(mark), std::strlen(mark), text);
  return script;
}

// "    'eval --split') choices=(train held-out) ;;": a line for every option or first argument that
// is one of a few words.
std::string choice_cases(const CLI::App& app, std::string_view open, std::string_view close) {
  std::string cases;
  const auto add = [&](const std::string& before, const std::vector<std::string>& choices) {
    if (!choices.empty())
      cases += fmt::format("    '{}') choices={}{}{} ;;\n", before, open, fmt::join(choices, " "),
                           close);
  };
  for (const CLI::App* command : commands_under(app)) {
    const std::string& name = command->get_name();
    add(fmt::format("{} {}", name, name), first_argument(*command));
    // Options of a group's commands that have one name take the same words.
    std::vector<const CLI::App*> with = commands_under(*command);
    with.push_back(command);
    for (const CLI::App* one : with)
      for (const OptionEntry& entry : options_of(*one))
        add(fmt::format("{} {}", name, entry.name), entry.choices);
  }
  return cases;
}

std::string bash_script(const CLI::App& app) {
  std::string commands, cases;
  const auto options_case = [](const CLI::App& command) {
    return fmt::format("    {}) options=\"{}\" ;;\n", command.get_name(), option_names(command));
  };
  for (const CLI::App* command : commands_under(app)) {
    commands += command->get_name();
    commands += ' ';
    const std::vector<const CLI::App*> inside = commands_under(*command);
    if (inside.empty()) {
      cases += options_case(*command);
      continue;
    }
    cases += fmt::format("    {}) case ${{COMP_WORDS[2]}} in\n", command->get_name());
    for (const CLI::App* one : inside) cases += options_case(*one);
    cases += "    esac ;;\n";
  }
  return filled(kBashScript, commands + option_names(app), cases, choice_cases(app, "\"", "\""));
}

// 'name:description', quoted for the shell.
std::string zsh_entry(const std::string& name, const std::string& description) {
  std::string text;
  for (const char c : fmt::format("{}:{}", name, description))
    text += c == '\'' ? "'\\''" : std::string(1, c);
  return "'" + text + "'";
}

std::string zsh_script(const CLI::App& app) {
  std::string commands, cases;
  const auto options_case = [](const CLI::App& command) {
    std::string text = fmt::format("    {})\n      options=(\n", command.get_name());
    for (const OptionEntry& entry : options_of(command))
      text += fmt::format("        {}\n", zsh_entry(entry.name, entry.description));
    return text + "      ) ;;\n";
  };
  for (const CLI::App* command : commands_under(app)) {
    commands += fmt::format("    {}\n", zsh_entry(command->get_name(), command->get_description()));
    const std::vector<const CLI::App*> inside = commands_under(*command);
    if (inside.empty()) {
      cases += options_case(*command);
      continue;
    }
    cases += fmt::format("    {}) case $words[3] in\n", command->get_name());
    for (const CLI::App* one : inside) cases += options_case(*one);
    cases += "    esac ;;\n";
  }
  return filled(kZshScript, commands, cases, choice_cases(app, "(", ")"));
}

}  // namespace

std::string completion_script(const CLI::App& app, std::string_view shell) {
  return shell == "bash" ? bash_script(app) : zsh_script(app);
}

}  // namespace filigree::cli
