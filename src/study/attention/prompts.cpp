#include <fmt/format.h>

#include <algorithm>

#include "filigree/attention_study.h"
#include "filigree/data.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/training_study.h"
#include "json/object.h"

namespace filigree::study {
namespace {

constexpr std::size_t kMostTokensInJson = 4096;

std::int64_t least_context(Models models) {
  std::int64_t context = models[0].config().context;
  for (const LoadedModel& model : models) context = std::min(context, model.config().context);
  return context;
}

void show_tokens(const Tokenizer& tokenizer, Prompt& prompt) {
  for (const TokenId id : prompt.ids) {
    // Between tokens that are names there are spaces, as others have them in front.
    const char* space = tokenizer.by_name() && !prompt.tokens.empty() ? " " : "";
    prompt.tokens.push_back(space + shown_token(tokenizer, id));
  }
}

PromptSet from_texts(const std::vector<TextPrompt>& texts, const PromptRequest& request,
                     Models models) {
  PromptSet set;
  set.tokenizer = common_tokenizer(models);
  const std::int64_t context = least_context(models);
  for (const TextPrompt& text : texts) {
    Prompt prompt;
    prompt.ids = request.chat
                     ? encode_chat(*set.tokenizer, text.text, text.name)
                     : encode_prompt(*set.tokenizer, text.text, text.name,
                                     {.replace_invalid_utf8 = request.replace_invalid_utf8},
                                     "; mend the text, or have invalid bytes read as U+FFFD");
    require(!prompt.ids.empty(), "{} is empty; attention needs at least one token", text.name);
    if (request.length > 0 && prompt.ids.size() > static_cast<std::size_t>(request.length))
      prompt.ids.resize(static_cast<std::size_t>(request.length));
    require(prompt.ids.size() <= static_cast<std::size_t>(context),
            "{} has {} tokens, more than the context of {}; shorten it, or take only its first {} "
            "tokens",
            text.name, prompt.ids.size(), context, context);
    for (const LoadedModel& model : models)
      check_ids(prompt.ids, model.config().vocabulary, model.name());
    show_tokens(*set.tokenizer, prompt);
    set.prompts.push_back(std::move(prompt));
  }
  return set;
}

PromptSet from_shards(const ShardWindows& windows, const PromptRequest& request, Models models,
                      std::uint64_t seed) {
  const TokenShards shards = TokenShards::open(windows.folder);
  for (const LoadedModel& model : models)
    check_shards_fit(shards.index(), windows.folder, model.folder(), model.config());
  PromptSet set;
  if (has_tokenizer(windows.folder))
    set.tokenizer = open_tokenizer(windows.folder);
  else if (const Tokenizer* tokenizer = models[0].tokenizer_if_any())
    set.tokenizer = *tokenizer;
  const std::int64_t context = least_context(models);
  const std::int64_t length =
      request.length > 0 ? request.length : std::min(context, kPromptWindowLength);
  require(length <= context,
          "windows of {} tokens are longer than the context of {}; choose at most that", length,
          context);
  ShardLoader loader(shards.split(name_of(windows.split)),
                     {.batch = 1, .length = length, .seed = seed});
  const std::uint64_t there = loader.windows(0);
  require(static_cast<std::uint64_t>(windows.samples) <= there,
          "{} samples are more than the {} windows of {} tokens that the split '{}' of '{}' has",
          windows.samples, there, length, name_of(windows.split), printable(windows.folder));
  for (std::int64_t s = 0; s < windows.samples; ++s) {
    const TokenBatch batch = loader.next();
    Prompt prompt;
    prompt.ids.assign(batch.ids.i32(), batch.ids.i32() + length);
    if (set.tokenizer) show_tokens(*set.tokenizer, prompt);
    set.prompts.push_back(std::move(prompt));
  }
  return set;
}

}  // namespace

const Tokenizer& common_tokenizer(Models models) {
  const Tokenizer& tokenizer = models[0].tokenizer();
  for (const LoadedModel& model : models.subspan(1))
    require(
        tokenizer_fingerprint(model.tokenizer()) == tokenizer_fingerprint(tokenizer),
        "models '{}' and '{}' have different tokenizers: the same text is other tokens to each, "
        "so that their maps cannot be laid side by side; give models with one tokenizer",
        printable(models[0].name()), printable(model.name()));
  return tokenizer;
}

std::vector<TextPrompt> numbered_prompts(const std::vector<std::string>& texts) {
  std::vector<TextPrompt> prompts;
  for (const std::string& text : texts)
    prompts.push_back(
        {text, texts.size() == 1 ? "the prompt" : fmt::format("prompt {}", prompts.size() + 1)});
  return prompts;
}

std::vector<TextPrompt> prompt_lines(const std::string& text, const std::string& source) {
  std::vector<TextPrompt> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back({std::move(line), fmt::format("line {} of {}", lines.size() + 1, source)});
    begin = end + 1;
  }
  require(!lines.empty(), "{} is empty; write one prompt a line", source);
  return lines;
}

std::vector<TextPrompt> prompts_of_json_lines(const std::string& text, const std::string& source) {
  std::vector<TextPrompt> prompts;
  for (const TextPrompt& line : prompt_lines(text, source)) {
    if (line.text.find_first_not_of(" \t") == std::string::npos) continue;
    const JsonObject json = JsonObject::parse(line.text, line.name);
    for (const std::string& key : json.keys())
      require(key == "prompt" || key == "ids", "{}: unknown key '{}'; a line has prompt or ids",
              line.name, printable(key));
    require(json.has("prompt") != json.has("ids"), "{}: a line has either prompt or ids",
            line.name);
    if (json.has("prompt")) {
      prompts.push_back({json.string("prompt"), line.name});
      continue;
    }
    std::string ids;
    for (const nlohmann::json& id : json.array("ids")) {
      require(id.is_number_integer() && id.get<std::int64_t>() >= 0,
              "{}: ids hold {}, which is no id", line.name, printable(id.dump(), 40));
      ids += (ids.empty() ? "" : ",") + id.dump();
    }
    prompts.push_back({id_prompt(ids), line.name});
  }
  require(!prompts.empty(), "{} has no prompts", source);
  return prompts;
}

bool PromptRequest::empty() const {
  const auto* texts = std::get_if<std::vector<TextPrompt>>(&source);
  return texts != nullptr && texts->empty();
}

PromptSet read_prompts(const PromptRequest& request, Models models, const Context& context) {
  if (request.empty()) throw RequestError("there are no prompts; give texts or token shards");
  if (const auto* windows = std::get_if<ShardWindows>(&request.source))
    return from_shards(*windows, request, models, context.seed);
  return from_texts(std::get<std::vector<TextPrompt>>(request.source), request, models);
}

Json to_json(const std::vector<Prompt>& prompts) {
  std::size_t tokens = 0;
  for (const Prompt& prompt : prompts) tokens += prompt.ids.size();
  Json list;
  if (tokens <= kMostTokensInJson) {
    list = Json::array();
    for (const Prompt& prompt : prompts)
      list.push_back({{"ids", prompt.ids}, {"tokens", prompt.tokens}});
  }
  return {{"count", prompts.size()}, {"tokens", tokens}, {"list", list}};
}

}  // namespace filigree::study
