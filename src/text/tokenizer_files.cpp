#include "filigree/text/tokenizer_files.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <utility>

#include "filigree/base/error.h"
#include "filigree/base/log.h"
#include "filigree/base/strings.h"
#include "filigree/base/utf8.h"
#include "filigree/text/json_document.h"

namespace filigree {
namespace {

using nlohmann::json;

// Reads fields of one file; messages begin with the file's name.
class FieldReader {
 public:
  explicit FieldReader(std::string_view name) : name_(name) {}

  std::string_view name() const { return name_; }

  void require_object(const json& value, std::string_view what) const {
    if (!value.is_object())
      fail("{}: {} is of type {}; an object is needed", name_, what, value.type_name());
  }

  // Null when the key is absent or holds null.
  const json* optional(const json& object, const char* key) const {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

  bool boolean(const json& object, const char* key, bool absent) const {
    const json* value = optional(object, key);
    if (value == nullptr) return absent;
    if (!value->is_boolean())
      fail("{}: '{}' is of type {}; true or false is needed", name_, key, value->type_name());
    return value->get<bool>();
  }

  std::optional<std::string> string(const json& object, const char* key) const {
    const json* value = optional(object, key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string())
      fail("{}: '{}' is of type {}; a string is needed", name_, key, value->type_name());
    return value->get<std::string>();
  }

  TokenId id(const json& value, std::string_view token) const {
    if (!value.is_number_unsigned() ||
        value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<TokenId>::max()})
      fail("{}: the id of token '{}' is {}; a whole number from 0 to {} is needed", name_,
           printable(token), printable(value.dump(-1, ' ', true)),
           std::numeric_limits<TokenId>::max());
    return value.get<TokenId>();
  }

  std::vector<VocabularyEntry> vocabulary(const json& object) const {
    std::vector<VocabularyEntry> entries;
    entries.reserve(object.size());
    for (const auto& [token, value] : object.get_ref<const json::object_t&>())
      entries.push_back({token, id(value, token)});
    return entries;
  }

  // The components of a normalizer, pre-tokenizer or decoder: itself, or the list of a Sequence.
  std::vector<const json*> components(const json& root, const char* key,
                                      const char* list_key) const {
    const json* component = optional(root, key);
    if (component == nullptr) return {};
    require_object(*component, key);
    if (component->value("type", json()) != "Sequence") return {component};
    std::vector<const json*> listed;
    const json* list = optional(*component, list_key);
    if (list == nullptr || !list->is_array())
      fail("{}: {} is a Sequence without a list '{}'", name_, key, list_key);
    for (const json& entry : *list) {
      require_object(entry, key);
      listed.push_back(&entry);
    }
    return listed;
  }

  static std::string type_of(const json& component) {
    const auto type = component.find("type");
    return type != component.end() && type->is_string() ? type->get<std::string>() : "(no type)";
  }

  static std::string types_of(const std::vector<const json*>& components) {
    std::string types;
    for (const json* component : components)
      types += (types.empty() ? "" : ", ") + type_of(*component);
    return types.empty() ? "nothing" : printable(types, 200);
  }

  static bool is_only_byte_level(const std::vector<const json*>& components) {
    return components.size() == 1 && type_of(*components[0]) == "ByteLevel";
  }

 private:
  std::string_view name_;
};

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

std::vector<AddedToken> parse_added_tokens(const json& list, const FieldReader& reader) {
  if (!list.is_array())
    fail("{}: added_tokens is of type {}; an array is needed", reader.name(), list.type_name());
  std::vector<AddedToken> added;
  for (const json& entry : list) {
    reader.require_object(entry, "an entry of added_tokens");
    AddedToken token;
    const std::optional<std::string> content = reader.string(entry, "content");
    const json* id = reader.optional(entry, "id");
    if (!content || id == nullptr)
      fail("{}: an entry of added_tokens has no 'content' or no 'id'", reader.name());
    token.content = *content;
    token.id = reader.id(*id, token.content);
    token.special = reader.boolean(entry, "special", false);
    token.normalized = reader.boolean(entry, "normalized", !token.special);
    token.strip_left = reader.boolean(entry, "lstrip", false);
    token.strip_right = reader.boolean(entry, "rstrip", false);
    if (reader.boolean(entry, "single_word", false))
      fail("{}: added token '{}' has \"single_word\": true, which is not supported", reader.name(),
           printable(token.content));
    added.push_back(std::move(token));
  }
  return added;
}

// Nothing but byte-level merging may happen inside a word.
void refuse_other_models(const json& model, const FieldReader& reader) {
  if (const auto type = reader.string(model, "type"); type && *type != "BPE")
    fail("{}: the model is of type '{}'; only BPE is supported", reader.name(), printable(*type));
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!reader.string(model, key).value_or("").empty())
      fail("{}: the model has a {}, which byte-level BPE does not use", reader.name(), key);
  if (reader.boolean(model, "byte_fallback", false))
    fail("{}: \"byte_fallback\": true is not supported; byte-level BPE has a token for each byte",
         reader.name());
  if (const json* dropout = reader.optional(model, "dropout"); dropout && *dropout != 0.0)
    fail("{}: the model has dropout {}; only encoding without dropout is supported", reader.name(),
         printable(dropout->dump(-1, ' ', true)));
}

// True when the post-processor puts tokens around a text.
bool adds_tokens(const json& processor, const FieldReader& reader) {
  const std::string type = FieldReader::type_of(processor);
  if (type == "ByteLevel") return false;
  if (type != "TemplateProcessing") return true;
  const json* single = reader.optional(processor, "single");
  return single == nullptr || !single->is_array() || single->size() != 1 ||
         !single->front().is_object() || !single->front().contains("Sequence");
}

}  // namespace

TokenizerSpec parse_tokenizer_json(std::string_view text, std::string_view name) {
  const json root = parse_json_document(text, name);
  const FieldReader reader(name);
  reader.require_object(root, "the document");
  TokenizerSpec spec;
  spec.vocabulary_name = name;
  spec.rules_name = fmt::format("{}: model.merges entry", name);

  const json* model = reader.optional(root, "model");
  if (model == nullptr) fail("{}: there is no 'model'", name);
  reader.require_object(*model, "'model'");
  refuse_other_models(*model, reader);
  const json* vocabulary = reader.optional(*model, "vocab");
  const json* rules = reader.optional(*model, "merges");
  if (vocabulary == nullptr || !vocabulary->is_object())
    fail("{}: the model has no object 'vocab'", name);
  if (rules == nullptr || !rules->is_array()) fail("{}: the model has no array 'merges'", name);

  if (const auto found = reader.components(root, "normalizer", "normalizers"); !found.empty())
    fail("{}: the normalizer is {}; only tokenizers without one are supported", name,
         FieldReader::types_of(found));
  const auto pre_tokenizer = reader.components(root, "pre_tokenizer", "pretokenizers");
  if (!FieldReader::is_only_byte_level(pre_tokenizer))
    fail("{}: the pre_tokenizer is {}; only ByteLevel by itself is supported", name,
         FieldReader::types_of(pre_tokenizer));
  const auto decoder = reader.components(root, "decoder", "decoders");
  if (!decoder.empty() && !FieldReader::is_only_byte_level(decoder))
    fail("{}: the decoder is {}; only ByteLevel by itself is supported", name,
         FieldReader::types_of(decoder));
  if (reader.optional(*pre_tokenizer[0], "add_prefix_space") == nullptr)
    fail("{}: the ByteLevel pre_tokenizer has no 'add_prefix_space'", name);
  spec.add_prefix_space = reader.boolean(*pre_tokenizer[0], "add_prefix_space", false);
  spec.use_pattern = reader.boolean(*pre_tokenizer[0], "use_regex", true);

  if (const json* processor = reader.optional(root, "post_processor")) {
    reader.require_object(*processor, "'post_processor'");
    if (FieldReader::type_of(*processor) != "ByteLevel") spec.post_processor = processor->dump(2);
    if (adds_tokens(*processor, reader))
      warn("{}: the post_processor {} is not applied: encoding adds no tokens", name,
           printable(FieldReader::type_of(*processor)));
  }

  spec.vocabulary = reader.vocabulary(*vocabulary);
  spec.rules = parse_json_rules(*rules, spec.rules_name);
  spec.bpe.unknown_token = reader.string(*model, "unk_token");
  spec.bpe.fuse_unknown = reader.boolean(*model, "fuse_unk", false);
  spec.bpe.ignore_merges = reader.boolean(*model, "ignore_merges", false);
  if (const json* added = reader.optional(root, "added_tokens"))
    spec.added_tokens = parse_added_tokens(*added, reader);
  return spec;
}

TokenizerSpec parse_vocab_and_merges(std::string_view vocab_json, std::string_view vocab_name,
                                     std::string_view merges_txt, std::string_view merges_name) {
  TokenizerSpec spec;
  spec.vocabulary_name = vocab_name;
  spec.rules_name = fmt::format("{}: line", merges_name);
  const json vocabulary = parse_json_document(vocab_json, vocab_name);
  const FieldReader reader(vocab_name);
  reader.require_object(vocabulary, "the vocabulary");
  spec.vocabulary = reader.vocabulary(vocabulary);
  if (const auto end = vocabulary.find(kEndOfText); end != vocabulary.end())
    spec.added_tokens.push_back({.content = std::string(kEndOfText), .id = end->get<TokenId>()});

  if (merges_txt.size() > kMaxJsonBytes)
    fail("{}: {} bytes; at most {} are accepted", merges_name, merges_txt.size(), kMaxJsonBytes);
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

void apply_tokenizer_config(std::string_view text, std::string_view name, bool has_tokenizer_json,
                            TokenizerSpec& spec) {
  const json root = parse_json_document(text, name);
  const FieldReader reader(name);
  reader.require_object(root, "the document");
  if (const json* token = reader.optional(root, "eos_token")) {
    // Either the text itself or an added token written out.
    const json* content = token->is_object() ? reader.optional(*token, "content") : token;
    if (content == nullptr || !content->is_string())
      fail("{}: 'eos_token' is neither a string nor an object with 'content'", name);
    spec.end_token = content->get<std::string>();
  }
  if (has_tokenizer_json) return;
  spec.add_prefix_space = reader.boolean(root, "add_prefix_space", spec.add_prefix_space);
  if (!spec.end_token || *spec.end_token == kEndOfText) return;
  for (const VocabularyEntry& entry : spec.vocabulary)
    if (entry.token == *spec.end_token)
      spec.added_tokens.push_back({.content = entry.token, .id = entry.id});
}

}  // namespace filigree
