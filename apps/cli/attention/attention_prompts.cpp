#include "apps/cli/attention/attention_prompts.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "apps/cli/data/shard_input.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/session.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/text/shard_loader.h"

namespace filigree::cli {
namespace {

struct NamedText {
  std::string text;
  std::string name;  // for messages
};

void check_options(const PromptOptions& options) {
  const int sources = (options.texts.empty() ? 0 : 1) + (options.file.empty() ? 0 : 1) +
                      (options.data.empty() ? 0 : 1);
  if (sources != 1)
    throw UsageError("give prompts in one way: --prompt TEXT, --file FILE or --data SHARDS");
  if (options.data.empty() && options.samples > 0)
    throw UsageError("--samples goes with --data; --prompt and --file are taken whole");
  if (!options.data.empty() && options.replace_invalid)
    throw UsageError("--replace-invalid goes with text; shards hold tokens");
}

// One a line; the last line may end with a newline or not.
std::vector<NamedText> lines_of(const std::string& file) {
  const std::string text = read_text(file);
  std::vector<NamedText> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(
        {std::move(line), fmt::format("line {} of {}", lines.size() + 1, source_name(file))});
    begin = end + 1;
  }
  require(!lines.empty(), "{} is empty; write one prompt a line", source_name(file));
  return lines;
}

std::int64_t least_context(const std::vector<PromptModel>& models) {
  std::int64_t context = models[0].config.context;
  for (const PromptModel& model : models) context = std::min(context, model.config.context);
  return context;
}

Tokenizer common_tokenizer(const std::vector<PromptModel>& models) {
  const Tokenizer tokenizer = open_tokenizer(model_folder(models[0].name).string());
  for (std::size_t m = 1; m < models.size(); ++m)
    require(
        tokenizer_fingerprint(open_tokenizer(model_folder(models[m].name).string())) ==
            tokenizer_fingerprint(tokenizer),
        "models '{}' and '{}' have different tokenizers: the same text is other tokens to each, "
        "so that their maps cannot be laid side by side; give models with one tokenizer",
        printable(models[0].name), printable(models[m].name));
  return tokenizer;
}

void show_tokens(const Tokenizer& tokenizer, Prompt& prompt) {
  for (const TokenId id : prompt.ids)
    prompt.tokens.push_back(tokenizer.has_token(id) ? tokenizer.token_text(id)
                                                    : fmt::format("<{}>", id));
}

PromptSet from_texts(const PromptOptions& options, const std::vector<PromptModel>& models) {
  std::vector<NamedText> texts;
  if (options.file.empty())
    for (const std::string& text : options.texts)
      texts.push_back({text, options.texts.size() == 1
                                 ? "the prompt"
                                 : fmt::format("prompt {}", texts.size() + 1)});
  else
    texts = lines_of(options.file);
  PromptSet set;
  set.tokenizer = common_tokenizer(models);
  const std::int64_t context = least_context(models);
  for (const NamedText& text : texts) {
    Prompt prompt;
    prompt.ids = encode_text(*set.tokenizer, text.text, text.name,
                             {.replace_invalid_utf8 = options.replace_invalid}, kReplaceInvalid);
    require(!prompt.ids.empty(), "{} is empty; attention needs at least one token", text.name);
    const auto limit = static_cast<std::size_t>(options.length > 0 ? options.length : context);
    if (options.length > 0 && prompt.ids.size() > limit) prompt.ids.resize(limit);
    require(prompt.ids.size() <= static_cast<std::size_t>(context),
            "{} has {} tokens, more than the context of {}; shorten it, or take its first {} with "
            "--length {}",
            text.name, prompt.ids.size(), context, context, context);
    for (const PromptModel& model : models)
      check_ids(prompt.ids, model.config.vocabulary, model.name);
    show_tokens(*set.tokenizer, prompt);
    set.prompts.push_back(std::move(prompt));
  }
  return set;
}

PromptSet from_shards(const PromptOptions& options, const std::vector<PromptModel>& models,
                      std::uint64_t seed) {
  const TokenShards shards = TokenShards::open(options.data);
  for (const PromptModel& model : models)
    check_shards_fit(shards.index(), options.data, model_folder(model.name), model.config);
  PromptSet set;
  if (has_tokenizer(options.data))
    set.tokenizer = open_tokenizer(options.data);
  else if (has_tokenizer(model_folder(models[0].name)))
    set.tokenizer = open_tokenizer(models[0].name);
  const std::int64_t context = least_context(models);
  const std::int64_t length =
      options.length > 0 ? options.length : std::min(context, kDefaultLength);
  require(length <= context, "--length {} is more than the context of {}; give at most that",
          length, context);
  const std::int64_t samples = options.samples > 0 ? options.samples : kDefaultSamples;
  ShardLoader loader(shards.split(options.split), {.batch = 1, .length = length, .seed = seed});
  const std::uint64_t windows = loader.windows(0);
  require(static_cast<std::uint64_t>(samples) <= windows,
          "--samples {} are more than the {} windows of {} tokens that the split '{}' of '{}' has",
          samples, windows, length, printable(options.split), printable(options.data));
  for (std::int64_t s = 0; s < samples; ++s) {
    const TokenBatch batch = loader.next();
    Prompt prompt;
    prompt.ids.assign(batch.ids.i32(), batch.ids.i32() + length);
    if (set.tokenizer) show_tokens(*set.tokenizer, prompt);
    set.prompts.push_back(std::move(prompt));
  }
  return set;
}

}  // namespace

PromptSet read_prompts(const PromptOptions& options, const std::vector<PromptModel>& models,
                       std::uint64_t seed) {
  check_options(options);
  return options.data.empty() ? from_texts(options, models) : from_shards(options, models, seed);
}

void add_prompt_options(CLI::App& app, PromptOptions& prompts) {
  app.add_option("--prompt", prompts.texts, "text; may be given several times")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("TEXT");
  app.add_option("--file", prompts.file, "read prompts from a file, one a line; - for stdin")
      ->type_name("FILE");
  app.add_option("--data", prompts.data, "windows of token shards, as filigree prepare writes them")
      ->type_name("SHARDS");
  app.add_option("--split", prompts.split, "split of the shards")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option(
         "--samples", prompts.samples,
         fmt::format("windows of the shards, drawn by --seed (default {})", kDefaultSamples))
      ->check(whole_number(1, 1 << 24))
      ->type_name("N");
  app.add_option(
         "--length", prompts.length,
         fmt::format("tokens a window (default {}, or the context); of a longer prompt only "
                     "the first so many are taken",
                     kDefaultLength))
      ->check(whole_number(1, 1 << 30))
      ->type_name("N");
  app.add_flag("--replace-invalid", prompts.replace_invalid,
               "read invalid UTF-8 as U+FFFD instead of failing");
}

}  // namespace filigree::cli
