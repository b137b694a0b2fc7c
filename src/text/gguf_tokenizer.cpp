#include "text/gguf_tokenizer.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

constexpr std::string_view kSpace = "\u2581";  // how SentencePiece writes a space

// Rules are looked for at every place of a token.
constexpr std::size_t kLongestScoredToken = 1024;

// tokenizer.ggml.token_type.
enum TokenType : std::int64_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

// What tokenizer.ggml.pre names.
struct NamedPattern {
  std::string_view name;
  SplitPattern pattern;
  bool composed = false;      // NFC first
  bool whole_words = false;   // words of the vocabulary need no rules
  bool begins_texts = false;  // unless the file says otherwise
};
constexpr NamedPattern kNamedPatterns[] = {
    {"gpt-2", SplitPattern::kGpt2},
    {"phi-2", SplitPattern::kGpt2},
    {"jina-v1-en", SplitPattern::kGpt2},
    {"jina-v2-es", SplitPattern::kGpt2},
    {"jina-v2-de", SplitPattern::kGpt2},
    {"olmo", SplitPattern::kGpt2, true},
    {"gpt-neox", SplitPattern::kGpt2, true},
    {"mpt", SplitPattern::kGpt2, true},
    {"llama-bpe", SplitPattern::kLlama3, false, true, true},
    {"llama3", SplitPattern::kLlama3, false, true, true},
    {"llama-v3", SplitPattern::kLlama3, false, true, true},
    {"dbrx", SplitPattern::kLlama3},
    {"smaug-bpe", SplitPattern::kLlama3},
    {"qwen2", SplitPattern::kQwen2, true},
    {"deepseek-r1-qwen", SplitPattern::kQwen2, true},
    {"stablelm2", SplitPattern::kQwen2},
    {"smollm", SplitPattern::kDigitsThenGpt2},
    {"starcoder", SplitPattern::kDigitsThenGpt2},
    {"refact", SplitPattern::kDigitsThenGpt2},
    {"codeshell", SplitPattern::kDigitsThenGpt2},
};

const NamedPattern& pattern_of(const GgufMetadata& metadata) {
  constexpr const char* kKey = "tokenizer.ggml.pre";
  const std::string architecture = metadata.text_or("general.architecture", "");
  std::string name = metadata.text_or(kKey, "");
  // Before there were names, there was one pattern.
  if ((name.empty() || name == "default") && architecture == "gpt2") name = "gpt-2";
  if ((name.empty() || name == "default") && architecture == "gptneox") name = "gpt-neox";
  std::vector<std::string> known;
  for (const NamedPattern& pattern : kNamedPatterns) {
    if (pattern.name == name) return pattern;
    known.emplace_back(pattern.name);
  }
  require(!name.empty(), "{}: no '{}' says how text is split into words; the tokenizer is not read",
          metadata.source(), kKey);
  fail("{}: '{}' is '{}', a way to split text that is not supported; {} are", metadata.source(),
       kKey, printable(name), join(known, ", "));
}

struct Tokens {
  std::vector<std::string> names;
  std::vector<std::int64_t> types;  // of each
};

Tokens read_tokens(const GgufMetadata& metadata) {
  Tokens tokens;
  for (const std::string_view name : metadata.texts("tokenizer.ggml.tokens"))
    tokens.names.emplace_back(name);
  require(tokens.names.size() <= std::size_t{std::numeric_limits<TokenId>::max()}, "{}: {} tokens",
          metadata.source(), tokens.names.size());
  tokens.types.assign(tokens.names.size(), kNormal);
  if (metadata.has("tokenizer.ggml.token_type"))
    tokens.types = metadata.integers("tokenizer.ggml.token_type");
  require(tokens.types.size() == tokens.names.size(),
          "{}: {} tokens, but 'tokenizer.ggml.token_type' has {} numbers", metadata.source(),
          tokens.names.size(), tokens.types.size());
  return tokens;
}

// Ids whose tokens are empty stay unused; of equal tokens the last one counts.
std::vector<VocabularyEntry> vocabulary_of(const Tokens& tokens) {
  std::unordered_map<std::string_view, std::size_t> last;
  for (std::size_t i = 0; i < tokens.names.size(); ++i) last[tokens.names[i]] = i;
  std::vector<VocabularyEntry> vocabulary;
  for (std::size_t i = 0; i < tokens.names.size(); ++i)
    if (!tokens.names[i].empty() && last[tokens.names[i]] == i)
      vocabulary.push_back({tokens.names[i], static_cast<TokenId>(i)});
  return vocabulary;
}

void add_special_tokens(const Tokens& tokens, TokenizerSpec& spec) {
  for (const VocabularyEntry& entry : spec.vocabulary) {
    const std::int64_t type = tokens.types[static_cast<std::size_t>(entry.id)];
    const bool special = type == kControl || type == kUnknown;
    if (special || type == kUserDefined)
      spec.added_tokens.push_back({.content = entry.token, .id = entry.id, .special = special});
  }
}

std::optional<std::string> named_token(const GgufMetadata& metadata, const Tokens& tokens,
                                       const char* key) {
  if (!metadata.has(key)) return std::nullopt;
  // Some programs write -1, as an unsigned number too, for none.
  const std::int64_t id = metadata.integer(key, -1, std::int64_t{1} << 32);
  if (id < 0 || id == std::int64_t{UINT32_MAX}) return std::nullopt;
  require(static_cast<std::size_t>(id) < tokens.names.size(),
          "{}: '{}' is {}, but there are {} tokens", metadata.source(), key, id,
          tokens.names.size());
  const std::string& name = tokens.names[static_cast<std::size_t>(id)];
  return name.empty() ? std::nullopt : std::optional(name);
}

// The rules that merging by scores amounts to: each way to make a token of two others, best token
// first, of a token's ways the one with the longest left part first.
struct ScoredRule {
  std::string_view whole;
  std::size_t split = 0;        // bytes of the left part
  std::size_t left_length = 0;  // characters of it
  std::size_t right_length = 0;
  double score = 0.0;
  TokenId left = 0, right = 0;
};

std::vector<MergeRule> rules_by_scores(const std::vector<VocabularyEntry>& vocabulary,
                                       const std::vector<double>& scores,
                                       const std::string& source) {
  std::unordered_map<std::string_view, TokenId> ids;
  for (const VocabularyEntry& entry : vocabulary) ids.emplace(entry.token, entry.id);
  std::vector<ScoredRule> rules;
  for (const VocabularyEntry& entry : vocabulary) {
    const std::string_view token = entry.token;
    require(token.size() <= kLongestScoredToken,
            "{}: token {} is {} bytes long; with scores {} are the limit", source, entry.id,
            token.size(), kLongestScoredToken);
    const std::size_t characters = static_cast<std::size_t>(
        std::ranges::count_if(token, [](char byte) { return !continues_utf8(byte); }));
    std::size_t before = 0;
    const std::size_t first = rules.size();
    for (std::size_t at = 1; at < token.size(); ++at) {
      if (continues_utf8(token[at])) continue;
      ++before;
      const auto left = ids.find(token.substr(0, at)), right = ids.find(token.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      rules.push_back({token, at, before, characters - before,
                       scores[static_cast<std::size_t>(entry.id)], left->second, right->second});
    }
    std::sort(rules.begin() + static_cast<std::ptrdiff_t>(first), rules.end(),
              [](const ScoredRule& a, const ScoredRule& b) {
                return std::tie(a.left, a.right) < std::tie(b.left, b.right);
              });
  }
  std::stable_sort(rules.begin(), rules.end(), [](const ScoredRule& a, const ScoredRule& b) {
    return std::tie(b.score, b.left_length, b.right_length) <
           std::tie(a.score, a.left_length, a.right_length);
  });
  std::vector<MergeRule> merges;
  merges.reserve(rules.size());
  for (const ScoredRule& rule : rules)
    merges.push_back({std::string(rule.whole.substr(0, rule.split)),
                      std::string(rule.whole.substr(rule.split)), merges.size()});
  return merges;
}

void read_bytes_model(const GgufMetadata& metadata, TokenizerSpec& spec) {
  const NamedPattern& pattern = pattern_of(metadata);
  spec.pattern = pattern.pattern;
  spec.bpe.ignore_merges = pattern.whole_words;
  if (pattern.composed) spec.normalizer.push_back({NormalizerStep::Kind::kNfc});
  for (const std::string_view line : metadata.texts("tokenizer.ggml.merges"))
    spec.rules.push_back(parse_merge_rule(line, spec.rules_name, spec.rules.size()));
}

// Gemma's files have runs of spaces as they are.
void respell_spaces(Tokens& tokens) {
  for (std::string& name : tokens.names)
    if (!name.empty() && name.find_first_not_of(' ') == std::string::npos)
      name = replace_all(name, " ", kSpace);
}

void read_characters_model(const GgufMetadata& metadata, const Tokens& tokens,
                           TokenizerSpec& spec) {
  spec.bpe.characters = spec.bpe.byte_fallback = spec.bpe.fuse_unknown = true;
  spec.bpe.unknown_token = named_token(metadata, tokens, "tokenizer.ggml.unknown_token_id");
  spec.use_pattern = false;
  const std::string architecture = metadata.text_or("general.architecture", "");
  const bool prefix = metadata.boolean_or("tokenizer.ggml.add_space_prefix", true);
  spec.decoding = {.space = std::string(kSpace), .bytes = true, .strip_space = prefix};
  const bool gemma = architecture.starts_with("gemma");
  if (gemma || architecture == "phi3") {
    if (prefix && !gemma)
      spec.normalizer.push_back({NormalizerStep::Kind::kPrepend, "", std::string(kSpace)});
    spec.normalizer.push_back({NormalizerStep::Kind::kReplace, " ", std::string(kSpace)});
    if (gemma) spec.decoding.strip_space = false;
  } else {
    spec.metaspace = {.character = std::string(kSpace),
                      .prepend = prefix ? Metaspace::Prepend::kFirst : Metaspace::Prepend::kNever};
  }
  if (metadata.has("tokenizer.ggml.merges")) {
    for (const std::string_view line : metadata.texts("tokenizer.ggml.merges"))
      spec.rules.push_back(parse_merge_rule(line, spec.rules_name, spec.rules.size()));
    return;
  }
  // Gemma's scores are not in the order of its rules; its tokens are.
  std::vector<double> scores;
  if (gemma)
    for (std::size_t i = 0; i < tokens.names.size(); ++i) scores.push_back(-static_cast<double>(i));
  else
    scores = metadata.numbers("tokenizer.ggml.scores");
  require(scores.size() == tokens.names.size(),
          "{}: {} tokens, but 'tokenizer.ggml.scores' has {} numbers", metadata.source(),
          tokens.names.size(), scores.size());
  spec.rules = rules_by_scores(spec.vocabulary, scores, metadata.source());
}

}  // namespace

bool has_gguf_tokenizer(const GgufMetadata& metadata) {
  return metadata.has("tokenizer.ggml.model") &&
         metadata.text_or("tokenizer.ggml.model", "") != "none";
}

TokenizerSpec gguf_tokenizer(const GgufMetadata& metadata) {
  const std::string model = metadata.text("tokenizer.ggml.model");
  require(model == "gpt2" || model == "llama",
          "{}: 'tokenizer.ggml.model' is '{}', which is not supported; gpt2 and llama are",
          metadata.source(), printable(model));
  Tokens tokens = read_tokens(metadata);
  if (model == "llama") respell_spaces(tokens);
  TokenizerSpec spec;
  spec.vocabulary_name = metadata.source();
  spec.rules_name = fmt::format("{}: merge", metadata.source());
  spec.vocabulary = vocabulary_of(tokens);
  bool begins = model == "llama";
  if (model == "gpt2") {
    read_bytes_model(metadata, spec);
    begins = pattern_of(metadata).begins_texts;
  } else {
    read_characters_model(metadata, tokens, spec);
  }
  add_special_tokens(tokens, spec);
  spec.begin_token = named_token(metadata, tokens, "tokenizer.ggml.bos_token_id");
  spec.end_token = named_token(metadata, tokens, "tokenizer.ggml.eos_token_id");
  if (spec.begin_token && metadata.boolean_or("tokenizer.ggml.add_bos_token", begins))
    spec.begin_tokens.push_back(*spec.begin_token);
  if (spec.end_token && metadata.boolean_or("tokenizer.ggml.add_eos_token", false))
    spec.end_tokens.push_back(*spec.end_token);
  spec.chat_template = metadata.text_or("tokenizer.chat_template", "");
  return spec;
}

void write_gguf_tokenizer(const Tokenizer& tokenizer, std::int64_t vocabulary,
                          GgufEntries& entries) {
  const TokenizerSpec& form = tokenizer.form();
  const bool characters = form.bpe.characters;
  const bool composed =
      !form.normalizer.empty() && form.normalizer[0].kind == NormalizerStep::Kind::kNfc;
  entries.text("tokenizer.ggml.model", characters ? "llama" : "gpt2");
  if (!characters) {
    require(form.use_pattern && !form.add_prefix_space && form.normalizer.size() <= 1,
            "the tokenizer splits text in a way that GGUF has no name for");
    const auto named = std::ranges::find_if(kNamedPatterns, [&](const NamedPattern& pattern) {
      return pattern.pattern == form.pattern && pattern.composed == composed &&
             pattern.whole_words == form.bpe.ignore_merges;
    });
    require(named != std::end(kNamedPatterns),
            "the tokenizer splits text in a way that GGUF has no name for");
    entries.text("tokenizer.ggml.pre", named->name);
  }
  std::vector<std::string> names(static_cast<std::size_t>(vocabulary));
  std::vector<std::int32_t> types(names.size(), kUnused);
  require(tokenizer.vocab_size() <= names.size(),
          "the tokenizer has {} tokens, the model an embedding for {}", tokenizer.vocab_size(),
          names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (tokenizer.has_token(id)) {
      const std::string_view name = tokenizer.token_name(id);
      const bool byte = characters && name.size() == 6 && name.starts_with("<0x");
      names[i] = name;
      types[i] = byte ? kByte : kNormal;
    } else {
      names[i] = fmt::format("[PAD{}]", i);
    }
  }
  for (const AddedToken& token : form.added_tokens) {
    const bool unknown = form.bpe.unknown_token == token.content;
    types[static_cast<std::size_t>(token.id)] = unknown && characters ? kUnknown
                                                : token.special       ? kControl
                                                                      : kUserDefined;
  }
  entries.texts("tokenizer.ggml.tokens", names);
  entries.integers("tokenizer.ggml.token_type", types);
  std::vector<std::string> merges;
  const BpeModel& model = tokenizer.model();
  for (const auto& [left, right] : model.rules()) {
    merges.push_back(
        fmt::format("{} {}", *model.vocabulary().token(left), *model.vocabulary().token(right)));
    require(std::ranges::count(merges.back(), ' ') == 1,
            "the tokenizer merges tokens with spaces, which GGUF cannot say");
  }
  if (characters) {
    // A token's score is the place of the first rule that makes it.
    std::vector<float> scores(names.size(), 0.0f);
    std::size_t place = model.rules().size();
    for (auto rule = model.rules().rbegin(); rule != model.rules().rend(); ++rule) {
      --place;
      const std::string whole = std::string(*model.vocabulary().token(rule->first)) +
                                std::string(*model.vocabulary().token(rule->second));
      if (const auto id = model.vocabulary().find(whole))
        scores[static_cast<std::size_t>(*id)] = -static_cast<float>(place);
    }
    entries.numbers("tokenizer.ggml.scores", scores);
    entries.boolean("tokenizer.ggml.add_space_prefix",
                    form.metaspace.prepend != Metaspace::Prepend::kNever ||
                        std::ranges::any_of(form.normalizer, [](const NormalizerStep& step) {
                          return step.kind == NormalizerStep::Kind::kPrepend;
                        }));
  }
  entries.texts("tokenizer.ggml.merges", merges);
  const auto add_id = [&](const char* key, const std::optional<std::string>& token) {
    if (const auto id = token ? tokenizer.id_of(*token) : std::nullopt) entries.integer(key, *id);
  };
  const std::optional<std::string> begin =
      !form.begin_tokens.empty() ? std::optional(form.begin_tokens[0]) : form.begin_token;
  add_id("tokenizer.ggml.bos_token_id", begin);
  if (const auto end = tokenizer.eos_id()) entries.integer("tokenizer.ggml.eos_token_id", *end);
  add_id("tokenizer.ggml.unknown_token_id", form.bpe.unknown_token);
  entries.boolean("tokenizer.ggml.add_bos_token", !form.begin_tokens.empty());
  entries.boolean("tokenizer.ggml.add_eos_token", !form.end_tokens.empty());
  if (!form.chat_template.empty()) entries.text("tokenizer.chat_template", form.chat_template);
}

}  // namespace filigree
