#include "apps/cli/program/prompt_option.h"

#include <CLI/CLI.hpp>

#include "apps/cli/program/input.h"
#include "apps/cli/program/session.h"
#include "apps/cli/program/values.h"
#include "filigree/error.h"
#include "filigree/model_study.h"
#include "filigree/study.h"

namespace filigree::cli {
namespace {

template <typename Text>
void add(CLI::App& app, Text& prompt, const char* what) {
  CLI::Option* const text = app.add_option("--prompt", prompt, what)->type_name("TEXT");
  app.add_option_function<std::string>(
         "--ids", [&prompt](const std::string& list) { prompt = prompt_of_ids(list); }, kIdsHelp)
      ->check(ids_check())
      ->type_name("ID,...")
      ->excludes(text);
}

}  // namespace

void add_prompt_option(CLI::App& app, std::string& prompt, const char* what) {
  add(app, prompt, what);
}
void add_prompt_option(CLI::App& app, std::optional<std::string>& prompt, const char* what) {
  add(app, prompt, what);
}

void add_prompts_file_option(CLI::App& app, std::string& file) {
  app.add_option("--prompts-file", file,
                 "prompts, one a line, or in a .jsonl file {\"prompt\": ...} or {\"ids\": [...]} a "
                 "line; - for stdin")
      ->type_name("FILE");
}

std::vector<study::TextPrompt> read_prompts_file(const std::string& file) {
  const std::string text = read_text(file), source = source_name(file);
  return file.ends_with(".jsonl") ? study::prompts_of_json_lines(text, source)
                                  : study::prompt_lines(text, source);
}

CLI::Validator ids_check() {
  return checked_by("ids", [](const std::string& text) {
    if (text != "-") study::parse_token_ids(text);
  });
}

std::string prompt_of_ids(const std::string& list) {
  try {
    return study::id_prompt(list);
  } catch (const Error& error) {
    throw UsageError(std::string("--ids: ") + error.what());
  }
}

}  // namespace filigree::cli
