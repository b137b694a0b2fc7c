#include "apps/cli/attention/prompt_options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/cli/program/choices.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/prompt_option.h"

namespace filigree::cli {

void add_prompt_options(CLI::App& app, PromptOptions& options) {
  app.add_option("--prompt", options.texts, "text; may be given several times")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("TEXT");
  app.add_option("--ids", options.ids, std::string(kIdsHelp) + "; may be given several times")
      ->check(ids_check())
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("ID,...");
  add_prompts_file_option(app, options.file);
  app.add_option("--data", options.shards.folder,
                 "windows of token shards, as filigree prepare writes them")
      ->type_name("SHARDS");
  add_choice(app, "--split", options.shards.split, "part of the shards");
  app.add_option("--samples", options.shards.samples, "windows of the shards, drawn by --seed")
      ->each([&options](const std::string&) { options.samples_given = true; })
      ->check(whole_number(1, 1 << 24))
      ->type_name("N")
      ->capture_default_str();
  app.add_option(
         "--context", options.length,
         fmt::format("tokens a window (default {}, or the context); of a longer prompt only "
                     "the first so many are taken",
                     study::kPromptWindowLength))
      ->check(whole_number(1, 1 << 30))
      ->type_name("N");
  app.add_flag("--replace-invalid", options.replace_invalid,
               "read invalid UTF-8 as U+FFFD instead of failing");
  add_chat_option(app, options.chat);
}

study::PromptRequest prompt_request(const PromptOptions& options) {
  const bool shards = !options.shards.folder.empty();
  const int sources = (options.texts.empty() && options.ids.empty() ? 0 : 1) +
                      (options.file.empty() ? 0 : 1) + static_cast<int>(shards);
  if (sources > 1)
    throw UsageError(
        "give prompts in one way: --prompt TEXT or --ids ID,..., --prompts-file FILE or --data "
        "SHARDS");
  if (!shards && options.samples_given)
    throw UsageError("--samples goes with --data; --prompt and --prompts-file are taken whole");
  if (options.chat && (shards || options.replace_invalid))
    throw UsageError("--chat goes with --prompt and --prompts-file, and with valid UTF-8");
  if (shards && options.replace_invalid)
    throw UsageError("--replace-invalid goes with text; shards hold tokens");
  study::PromptRequest request;
  request.length = options.length;
  request.replace_invalid_utf8 = options.replace_invalid;
  request.chat = options.chat;
  if (shards)
    request.source = options.shards;
  else if (!options.file.empty())
    request.source = read_prompts_file(options.file);
  else {
    std::vector<std::string> texts = options.texts;
    for (const std::string& ids : options.ids) texts.push_back(prompt_of_ids(ids));
    request.source = study::numbered_prompts(texts);
  }
  return request;
}

}  // namespace filigree::cli
