#include "text/tokenizer_files.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "json/object.h"

namespace filigree {
namespace {

using nlohmann::json;

TokenId parse_id(const json& value, std::string_view token, std::string_view name) {
  if (!value.is_number_unsigned() ||
      value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<TokenId>::max()})
    fail("{}: the id of token '{}' is {}; a whole number from 0 to {} is needed", name,
         printable(token), printable(value.dump(-1, ' ', true)),
         std::numeric_limits<TokenId>::max());
  return value.get<TokenId>();
}

std::vector<VocabularyEntry> parse_vocabulary(const JsonObject& object) {
  std::vector<VocabularyEntry> entries;
  entries.reserve(object.raw().size());
  for (const auto& [token, value] : object.raw().get_ref<const json::object_t&>())
    entries.push_back({token, parse_id(value, token, object.source())});
  return entries;
}

std::optional<std::string> optional_string(const JsonObject& object, const char* key) {
  return object.has(key) ? std::optional(object.string(key)) : std::nullopt;
}

std::string type_of(const JsonObject& component) {
  return component.has("type") ? component.string("type") : "(no type)";
}

// The components of a normalizer, pre-tokenizer or decoder: itself, or the list of a Sequence.
std::vector<JsonObject> components(const JsonObject& root, const char* key, const char* list_key) {
  if (!root.has(key)) return {};
  const JsonObject component = root.object(key);
  if (type_of(component) == "Sequence") return component.objects(list_key);
  return {component};
}

std::string types_of(const std::vector<JsonObject>& components) {
  std::string types;
  for (const JsonObject& component : components)
    types += (types.empty() ? "" : ", ") + type_of(component);
  return types.empty() ? "nothing" : printable(types, 200);
}

bool is_only_byte_level(const std::vector<JsonObject>& components) {
  return components.size() == 1 && type_of(components[0]) == "ByteLevel";
}

std::vector<MergeRule> parse_json_rules(const json& list, std::string_view rules_name) {
  std::vector<MergeRule> rules;
  rules.reserve(list.size());
  for (const json& entry : list) {
    const std::size_t place = rules.size();
    if (entry.is_string()) {
      rules.push_back(parse_merge_rule(entry.get_ref<const std::string&>(), rules_name, place));
    } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
               entry[1].is_string()) {
      rules.push_back({entry[0].get<std::string>(), entry[1].get<std::string>(), place});
    } else {
      fail("{} {}: {} is neither \"left right\" nor [\"left\", \"right\"]", rules_name, place,
           printable(entry.dump(-1, ' ', true)));
    }
  }
  return rules;
}

std::vector<AddedToken> parse_added_tokens(const std::vector<JsonObject>& list) {
  std::vector<AddedToken> added;
  for (const JsonObject& entry : list) {
    AddedToken token;
    token.content = entry.string("content");
    token.id = static_cast<TokenId>(entry.integer("id", 0, std::numeric_limits<TokenId>::max()));
    token.special = entry.boolean_or("special", false);
    token.normalized = entry.boolean_or("normalized", !token.special);
    token.strip_left = entry.boolean_or("lstrip", false);
    token.strip_right = entry.boolean_or("rstrip", false);
    if (entry.boolean_or("single_word", false))
      fail("{}: added token '{}' has \"single_word\": true, which is not supported", entry.source(),
           printable(token.content));
    added.push_back(std::move(token));
  }
  return added;
}

// Nothing but byte-level merging may happen inside a word.
void refuse_other_models(const JsonObject& model) {
  const std::string& name = model.source();
  if (const std::string type = model.string_or("type", "BPE"); type != "BPE")
    fail("{}: the model is of type '{}'; only BPE is supported", name, printable(type));
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!model.string_or(key, "").empty())
      fail("{}: the model has a {}, which byte-level BPE does not use", name, key);
  if (const double dropout = model.number_or("dropout", 0); dropout != 0)
    fail("{}: the model has dropout {}; only encoding without dropout is supported", name, dropout);
}

// The literal text of {"String": ...}.
std::string pattern_text(const JsonObject& component) {
  const JsonObject pattern = component.object("pattern");
  require(pattern.has("String"), "{}: a {} by a regular expression is not supported",
          component.source(), printable(type_of(component)));
  const std::string text = pattern.string("String");
  require(!text.empty(), "{}: a {} of an empty text", component.source(),
          printable(type_of(component)));
  return text;
}

std::vector<NormalizerStep> parse_normalizer(const JsonObject& root) {
  constexpr std::size_t kMostSteps = 100;
  std::vector<NormalizerStep> steps;
  const auto found = components(root, "normalizer", "normalizers");
  for (const JsonObject& component : found) {
    const std::string type = type_of(component);
    if (type == "NFC") {
      steps.push_back({NormalizerStep::Kind::kNfc});
    } else if (type == "Prepend") {
      steps.push_back({NormalizerStep::Kind::kPrepend, "", component.string("prepend")});
    } else if (type == "Replace") {
      steps.push_back(
          {NormalizerStep::Kind::kReplace, pattern_text(component), component.string("content")});
    } else {
      fail("{}: the normalizer is {}; NFC, Prepend and Replace are supported", root.source(),
           types_of(found));
    }
    // Each could make a text longer by its own length.
    require(steps.size() <= kMostSteps && steps.back().to.size() <= kMaxAddedTokenBytes,
            "{}: a normalizer of more than {} steps or {} bytes", root.source(), kMostSteps,
            kMaxAddedTokenBytes);
  }
  return steps;
}

// A pre-tokenizer of bytes: ByteLevel with its own pattern or none, or behind Digits or a Split.
bool parse_byte_level(const std::vector<JsonObject>& found, TokenizerSpec& spec) {
  if (found.empty() || found.size() > 2 || type_of(found.back()) != "ByteLevel") return false;
  const std::string first = type_of(found[0]);
  if (found.size() == 2 && first != "Split" && first != "Digits") return false;
  spec.add_prefix_space = found.back().boolean("add_prefix_space");
  spec.use_pattern = found.back().boolean_or("use_regex", true);
  if (found.size() == 1) return true;
  if (first == "Digits") {
    require(found[0].boolean_or("individual_digits", false) && spec.use_pattern &&
                !spec.add_prefix_space,
            "{}: the pre_tokenizer Digits is supported with individual_digits, in front of a "
            "ByteLevel with use_regex and without add_prefix_space",
            found[0].source());
    spec.pattern = SplitPattern::kDigitsThenGpt2;
    return true;
  }
  const JsonObject& split = found[0];
  require(!spec.use_pattern, "{}: a pre_tokenizer that splits twice is not supported",
          split.source());
  const JsonObject pattern = split.object("pattern");
  const std::string regex = pattern.string_or("Regex", "");
  const std::optional<SplitPattern> known = split_pattern(regex);
  require(
      known.has_value(),
      "{}: the pre_tokenizer splits by the pattern '{}', which is not one of GPT-2's, Llama 3's "
      "and Qwen's",
      split.source(), printable(regex, 200));
  require(
      split.string_or("behavior", "Isolated") == "Isolated" && !split.boolean_or("invert", false),
      "{}: a pre_tokenizer Split must be \"Isolated\" and not inverted", split.source());
  spec.use_pattern = true;
  spec.pattern = *known;
  return true;
}

// A pre-tokenizer of characters: none, Metaspace, or a Split at spaces that the normalizer has
// replaced already.
bool parse_character_level(const std::vector<JsonObject>& found, TokenizerSpec& spec) {
  spec.bpe.characters = true;
  spec.use_pattern = false;
  if (found.empty()) return true;
  if (found.size() != 1) return false;
  const JsonObject& only = found[0];
  if (type_of(only) == "Split") {
    const bool replaced = std::ranges::any_of(spec.normalizer, [](const NormalizerStep& step) {
      return step.kind == NormalizerStep::Kind::kReplace && step.from == " ";
    });
    return replaced && only.object("pattern").string_or("String", "") == " ";
  }
  if (type_of(only) != "Metaspace") return false;
  spec.metaspace.character = only.string_or("replacement", "\u2581");
  require(!spec.metaspace.character.empty() && spec.metaspace.character.size() <= 4,
          "{}: Metaspace replaces spaces by '{}'; one character is needed", only.source(),
          printable(spec.metaspace.character));
  const std::string scheme = only.string_or(
      "prepend_scheme", only.boolean_or("add_prefix_space", true) ? "always" : "never");
  require(scheme == "always" || scheme == "first" || scheme == "never",
          "{}: the prepend_scheme '{}' is none of 'always', 'first' and 'never'", only.source(),
          printable(scheme));
  spec.metaspace.prepend = scheme == "always"  ? Metaspace::Prepend::kAlways
                           : scheme == "first" ? Metaspace::Prepend::kFirst
                                               : Metaspace::Prepend::kNever;
  spec.metaspace.split = only.boolean_or("split", true);
  return true;
}

void parse_character_decoder(const JsonObject& root, const std::vector<JsonObject>& found,
                             TokenizerSpec& spec) {
  CharacterDecoding& decoding = spec.decoding;
  for (const JsonObject& component : found) {
    const std::string type = type_of(component);
    if (type == "Replace" && component.string("content") == " ") {
      decoding.space = pattern_text(component);
    } else if (type == "ByteFallback") {
      decoding.bytes = true;
    } else if (type == "Metaspace") {
      decoding.space = component.string_or("replacement", "\u2581");
      decoding.strip_space = component.string_or("prepend_scheme", "always") != "never";
    } else if (type == "Strip" && component.string_or("content", " ") == " " &&
               component.integer_or("start", 0) == 1 && component.integer_or("stop", 0) == 0) {
      decoding.strip_space = true;
    } else if (type != "Fuse") {
      fail("{}: the decoder is {}; of these {} is not supported as it stands", root.source(),
           types_of(found), printable(type));
    }
  }
  require(decoding.space.size() <= 4, "{}: the decoder writes '{}' for a space", root.source(),
          printable(decoding.space));
}

// What belongs around a text: SpecialToken, Sequence, SpecialToken.
void parse_template(const JsonObject& processor, TokenizerSpec& spec) {
  bool after = false;
  for (const JsonObject& piece : processor.objects("single")) {
    if (piece.has("Sequence")) {
      after = true;
      continue;
    }
    const std::string token = piece.object("SpecialToken").string("id");
    std::vector<std::string>& to = after ? spec.end_tokens : spec.begin_tokens;
    // The map may spell a piece as other tokens.
    const bool spelled =
        processor.has("special_tokens") && processor.object("special_tokens").has(token);
    if (!spelled) {
      to.push_back(token);
      continue;
    }
    const JsonObject known = processor.object("special_tokens").object(token);
    for (const nlohmann::json& name : known.array("tokens")) {
      require(name.is_string(), "{}: tokens of '{}' that are no texts", processor.source(),
              printable(token));
      to.push_back(name.get<std::string>());
    }
  }
  require(spec.begin_tokens.size() + spec.end_tokens.size() <= 16,
          "{}: a template of more than 16 tokens", processor.source());
}

void parse_post_processor(const JsonObject& root, TokenizerSpec& spec) {
  if (!root.has("post_processor")) return;
  const JsonObject whole = root.object("post_processor");
  if (type_of(whole) != "ByteLevel") spec.post_processor = whole.raw().dump(2);
  const auto found = components(root, "post_processor", "processors");
  for (const JsonObject& processor : found) {
    const std::string type = type_of(processor);
    if (type == "ByteLevel") continue;
    if (type != "TemplateProcessing")
      fail("{}: the post_processor is {}; ByteLevel and TemplateProcessing are supported",
           root.source(), types_of(found));
    parse_template(processor, spec);
  }
}

}  // namespace

MergeRule parse_merge_rule(std::string_view line, std::string_view rules_name, std::size_t place) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
      line.find(' ', space + 1) != std::string_view::npos)
    fail("{} {}: '{}' is not two tokens with one space between them", rules_name, place,
         printable(line));
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1)), place};
}

TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& name) {
  const JsonObject root = JsonObject::parse(text, name);
  TokenizerSpec spec;
  spec.vocabulary_name = name;
  spec.rules_name = fmt::format("{}: model.merges entry", name);

  const JsonObject model = root.object("model");
  refuse_other_models(model);
  spec.normalizer = parse_normalizer(root);
  const auto pre_tokenizer = components(root, "pre_tokenizer", "pretokenizers");
  const auto decoder = components(root, "decoder", "decoders");
  if (parse_byte_level(pre_tokenizer, spec)) {
    require(!model.boolean_or("byte_fallback", false),
            "{}: byte_fallback beside the pre_tokenizer ByteLevel, which has a token for each byte",
            name);
    if (!decoder.empty() && !is_only_byte_level(decoder))
      fail("{}: the decoder is {}; only ByteLevel by itself goes with the pre_tokenizer", name,
           types_of(decoder));
  } else if (parse_character_level(pre_tokenizer, spec)) {
    spec.bpe.byte_fallback = model.boolean_or("byte_fallback", false);
    parse_character_decoder(root, decoder, spec);
  } else {
    fail(
        "{}: the pre_tokenizer is {}; ByteLevel, alone or behind Digits or a Split, Metaspace or "
        "none are supported",
        name, types_of(pre_tokenizer));
  }
  if (!fits_vocab_and_merges(spec)) spec.source = text;
  parse_post_processor(root, spec);

  spec.vocabulary = parse_vocabulary(model.object("vocab"));
  spec.rules = parse_json_rules(model.array("merges"), spec.rules_name);
  spec.bpe.unknown_token = optional_string(model, "unk_token");
  spec.bpe.fuse_unknown = model.boolean_or("fuse_unk", false);
  spec.bpe.ignore_merges = model.boolean_or("ignore_merges", false);
  if (root.has("added_tokens"))
    spec.added_tokens = parse_added_tokens(root.objects("added_tokens"));
  return spec;
}

TokenizerSpec parse_vocab_and_merges(std::string_view vocab_json, const std::string& vocab_name,
                                     std::string_view merges_txt, const std::string& merges_name) {
  TokenizerSpec spec;
  spec.vocabulary_name = vocab_name;
  spec.rules_name = fmt::format("{}: line", merges_name);
  const JsonObject vocabulary = JsonObject::parse(vocab_json, vocab_name);
  spec.vocabulary = parse_vocabulary(vocabulary);
  if (const auto end = vocabulary.raw().find(kEndOfText); end != vocabulary.raw().end())
    spec.added_tokens.push_back({.content = std::string(kEndOfText), .id = end->get<TokenId>()});

  if (merges_txt.size() > JsonLimits().max_bytes)
    fail("{}: {} bytes long, the limit is {}", merges_name, merges_txt.size(),
         JsonLimits().max_bytes);
  if (const std::size_t bad = first_invalid_utf8(merges_txt); bad != merges_txt.size())
    fail("{}: not valid UTF-8 at byte {}", merges_name, bad);
  for (std::size_t begin = 0, number = 1; begin < merges_txt.size(); ++number) {
    const std::size_t end = std::min(merges_txt.find('\n', begin), merges_txt.size());
    std::string_view line = merges_txt.substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool header = number == 1 && line.starts_with("#version");
    if (!line.empty() && !header)
      spec.rules.push_back(parse_merge_rule(line, spec.rules_name, number));
  }
  return spec;
}

void require_all_rules(const TokenizerSpec& spec, const std::string& merges_name) {
  std::unordered_set<std::string> made;
  for (const MergeRule& rule : spec.rules) made.insert(rule.left + rule.right);
  for (const AddedToken& token : spec.added_tokens) made.insert(token.content);
  const auto is_named = [](std::string_view token) {
    return (token.front() == '<' && token.back() == '>') ||
           (token.front() == '[' && token.back() == ']');
  };
  std::size_t missing = 0;
  std::string_view first;
  for (const VocabularyEntry& entry : spec.vocabulary) {
    const std::string_view token = entry.token;
    if (token.empty() || utf8_sequence(token).length == token.size()) continue;  // a single byte
    if (made.contains(entry.token) || is_named(token)) continue;
    if (missing++ == 0) first = token;
  }
  require(missing == 0,
          "{}: no rule makes {} of the vocabulary's tokens, such as '{}'; the file was cut short, "
          "or belongs to another vocabulary",
          merges_name, missing, printable(first));
}

namespace {

// A text, or a list of named ones of which "default" counts.
std::string chat_template_of(const JsonObject& config) {
  if (!config.raw()["chat_template"].is_array()) return config.string("chat_template");
  for (const JsonObject& entry : config.objects("chat_template"))
    if (entry.string("name") == "default") return entry.string("template");
  return "";
}

}  // namespace

void apply_tokenizer_config(std::string_view text, const std::string& name, bool has_tokenizer_json,
                            TokenizerSpec& spec) {
  const JsonObject root = JsonObject::parse(text, name);
  // Either the text itself or an added token written out.
  const auto token_of = [&](const char* key, std::optional<std::string>& to) {
    if (!root.has(key)) return;
    to = root.raw()[key].is_object() ? root.object(key).string("content") : root.string(key);
  };
  token_of("bos_token", spec.begin_token);
  token_of("eos_token", spec.end_token);
  if (root.has("chat_template")) spec.chat_template = chat_template_of(root);
  if (has_tokenizer_json) return;
  spec.add_prefix_space = root.boolean_or("add_prefix_space", spec.add_prefix_space);
  if (!spec.end_token || *spec.end_token == kEndOfText) return;
  for (const VocabularyEntry& entry : spec.vocabulary)
    if (entry.token == *spec.end_token)
      spec.added_tokens.push_back({.content = entry.token, .id = entry.id});
}

}  // namespace filigree
