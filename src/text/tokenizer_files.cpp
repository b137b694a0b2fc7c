#include "filigree/text/tokenizer_files.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <unordered_set>
#include <utility>

#include "filigree/base/error.h"
#include "filigree/base/log.h"
#include "filigree/base/strings.h"
#include "filigree/base/utf8.h"
#include "filigree/json/object.h"

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

// "left right" with exactly one space between two tokens.
MergeRule parse_rule(std::string_view line, std::string_view rules_name, std::size_t place) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
      line.find(' ', space + 1) != std::string_view::npos)
    fail("{} {}: '{}' is not two tokens with one space between them", rules_name, place,
         printable(line));
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1)), place};
}

std::vector<MergeRule> parse_json_rules(const json& list, std::string_view rules_name) {
  std::vector<MergeRule> rules;
  rules.reserve(list.size());
  for (const json& entry : list) {
    const std::size_t place = rules.size();
    if (entry.is_string()) {
      rules.push_back(parse_rule(entry.get_ref<const std::string&>(), rules_name, place));
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
  if (model.boolean_or("byte_fallback", false))
    fail("{}: \"byte_fallback\": true is not supported; byte-level BPE has a token for each byte",
         name);
  if (const double dropout = model.number_or("dropout", 0); dropout != 0)
    fail("{}: the model has dropout {}; only encoding without dropout is supported", name, dropout);
}

// True when the post-processor puts tokens around a text.
bool adds_tokens(const JsonObject& processor) {
  const std::string type = type_of(processor);
  if (type == "ByteLevel") return false;
  if (type != "TemplateProcessing") return true;
  const auto single = processor.raw().find("single");
  return single == processor.raw().end() || !single->is_array() || single->size() != 1 ||
         !single->front().is_object() || !single->front().contains("Sequence");
}

}  // namespace

TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& name) {
  const JsonObject root = JsonObject::parse(text, name);
  TokenizerSpec spec;
  spec.vocabulary_name = name;
  spec.rules_name = fmt::format("{}: model.merges entry", name);

  const JsonObject model = root.object("model");
  refuse_other_models(model);
  if (const auto found = components(root, "normalizer", "normalizers"); !found.empty())
    fail("{}: the normalizer is {}; only tokenizers without one are supported", name,
         types_of(found));
  const auto pre_tokenizer = components(root, "pre_tokenizer", "pretokenizers");
  if (!is_only_byte_level(pre_tokenizer))
    fail("{}: the pre_tokenizer is {}; only ByteLevel by itself is supported", name,
         types_of(pre_tokenizer));
  const auto decoder = components(root, "decoder", "decoders");
  if (!decoder.empty() && !is_only_byte_level(decoder))
    fail("{}: the decoder is {}; only ByteLevel by itself is supported", name, types_of(decoder));
  spec.add_prefix_space = pre_tokenizer[0].boolean("add_prefix_space");
  spec.use_pattern = pre_tokenizer[0].boolean_or("use_regex", true);

  if (root.has("post_processor")) {
    const JsonObject processor = root.object("post_processor");
    if (type_of(processor) != "ByteLevel") spec.post_processor = processor.raw().dump(2);
    if (adds_tokens(processor))
      warn("{}: the post_processor {} is not applied: encoding adds no tokens", name,
           printable(type_of(processor)));
  }

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
    if (!line.empty() && !header) spec.rules.push_back(parse_rule(line, spec.rules_name, number));
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

void apply_tokenizer_config(std::string_view text, const std::string& name, bool has_tokenizer_json,
                            TokenizerSpec& spec) {
  const JsonObject root = JsonObject::parse(text, name);
  if (root.has("eos_token"))  // either the text itself or an added token written out
    spec.end_token = root.raw()["eos_token"].is_object()
                         ? root.object("eos_token").string("content")
                         : root.string("eos_token");
  if (has_tokenizer_json) return;
  spec.add_prefix_space = root.boolean_or("add_prefix_space", spec.add_prefix_space);
  if (!spec.end_token || *spec.end_token == kEndOfText) return;
  for (const VocabularyEntry& entry : spec.vocabulary)
    if (entry.token == *spec.end_token)
      spec.added_tokens.push_back({.content = entry.token, .id = entry.id});
}

}  // namespace filigree
