// Writes tokenizer.json, vocab.json and merges.txt by hand rather than through a JSON tree: a
// vocabulary must be in the order of its ids, which the JSON library's objects do not keep.

#include <nlohmann/json.hpp>

#include <string>

#include "filigree/error.h"
#include "filigree/names.h"
#include "text/tokenizer_files.h"

namespace filigree {
namespace {

std::string json_string(std::string_view text) { return nlohmann::json(text).dump(); }
const char* truth(bool value) { return value ? "true" : "false"; }

// Calls visit(token, id) in the order of ids.
template <typename Visit>
void for_each_token(const Vocabulary& vocabulary, Visit&& visit) {
  for (std::size_t i = 0; i < vocabulary.id_limit(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (const auto token = vocabulary.token(id)) visit(*token, id);
  }
}

std::string vocab_json_text(const Vocabulary& vocabulary) {
  std::string text = "{";
  for_each_token(vocabulary, [&](std::string_view token, TokenId id) {
    text += fmt::format("{}{}:{}", text.size() > 1 ? "," : "", json_string(token), id);
  });
  return text + "}";
}

std::string merges_txt_text(const BpeModel& model) {
  std::string text = "#version: 0.2\n";
  for (const auto& [left, right] : model.rules()) {
    const std::string_view parts[] = {*model.vocabulary().token(left),
                                      *model.vocabulary().token(right)};
    for (const std::string_view part : parts)
      if (part.find_first_of(" \n\r") != std::string_view::npos)
        fail("merges.txt cannot hold the merge of '{}' and '{}': tokens there have no white space",
             printable(parts[0]), printable(parts[1]));
    text += fmt::format("{} {}\n", parts[0], parts[1]);
  }
  return text;
}

std::string added_tokens_text(const std::vector<AddedToken>& added) {
  if (added.empty()) return "[]";
  std::string text = "[\n";
  for (const AddedToken& token : added) {
    text += fmt::format(
        "    {{\n      \"id\": {},\n      \"content\": {},\n      \"single_word\": false,\n"
        "      \"lstrip\": {},\n      \"rstrip\": {},\n      \"normalized\": {},\n"
        "      \"special\": {}\n    }}{}\n",
        token.id, json_string(token.content), truth(token.strip_left), truth(token.strip_right),
        truth(token.normalized), truth(token.special), &token == &added.back() ? "" : ",");
  }
  return text + "  ]";
}

std::string byte_level_text(bool add_prefix_space, bool trim_offsets, bool use_pattern) {
  return fmt::format(
      "{{\n    \"type\": \"ByteLevel\",\n    \"add_prefix_space\": {},\n"
      "    \"trim_offsets\": {},\n    \"use_regex\": {}\n  }}",
      truth(add_prefix_space), truth(trim_offsets), truth(use_pattern));
}

std::string model_text(const BpeModel& model) {
  const BpeSettings& settings = model.settings();
  std::string text = fmt::format(
      "{{\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": {},\n"
      "    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n"
      "    \"fuse_unk\": {},\n    \"byte_fallback\": {},\n    \"ignore_merges\": {},\n"
      "    \"vocab\": {{",
      settings.unknown_token ? json_string(*settings.unknown_token) : "null",
      truth(settings.fuse_unknown), truth(settings.byte_fallback), truth(settings.ignore_merges));
  const char* separator = "\n";
  for_each_token(model.vocabulary(), [&](std::string_view token, TokenId id) {
    text += fmt::format("{}      {}: {}", separator, json_string(token), id);
    separator = ",\n";
  });
  text += "\n    },\n    \"merges\": [";
  separator = "\n";
  for (const auto& [left, right] : model.rules()) {
    text += fmt::format("{}      [\n        {},\n        {}\n      ]", separator,
                        json_string(*model.vocabulary().token(left)),
                        json_string(*model.vocabulary().token(right)));
    separator = ",\n";
  }
  return text + (model.rules().empty() ? "]\n  }" : "\n    ]\n  }");
}

// What few tokenizers have is written as JSON's library does, the keys in the order given.
using Ordered = nlohmann::ordered_json;

std::string component(const Ordered& part) {
  std::string text = part.dump(2);
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1))
    text.insert(at + 1, "  ");
  return text;
}

Ordered replacing(std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

std::string normalizer_text(const std::vector<NormalizerStep>& steps) {
  Ordered list = Ordered::array();
  for (const NormalizerStep& step : steps) switch (step.kind) {
      case NormalizerStep::Kind::kNfc: list.push_back({{"type", "NFC"}}); break;
      case NormalizerStep::Kind::kPrepend:
        list.push_back({{"type", "Prepend"}, {"prepend", step.to}});
        break;
      case NormalizerStep::Kind::kReplace: list.push_back(replacing(step.from, step.to)); break;
    }
  if (list.empty()) return "null";
  if (list.size() == 1) return component(list[0]);
  return component({{"type", "Sequence"}, {"normalizers", list}});
}

std::string pre_tokenizer_text(const TokenizerSpec& spec) {
  if (spec.bpe.characters) {
    const Metaspace& metaspace = spec.metaspace;
    if (metaspace.character.empty()) return "null";
    const char* scheme = metaspace.prepend == Metaspace::Prepend::kAlways  ? "always"
                         : metaspace.prepend == Metaspace::Prepend::kFirst ? "first"
                                                                           : "never";
    return component({{"type", "Metaspace"},
                      {"replacement", metaspace.character},
                      {"prepend_scheme", scheme},
                      {"split", metaspace.split}});
  }
  if (!spec.use_pattern || spec.pattern == SplitPattern::kGpt2)
    return byte_level_text(spec.add_prefix_space, true, spec.use_pattern);
  const bool digits = spec.pattern == SplitPattern::kDigitsThenGpt2;
  Ordered first = {{"type", "Digits"}, {"individual_digits", true}};
  if (!digits)
    first = {{"type", "Split"},
             {"pattern", {{"Regex", regex_of(spec.pattern)}}},
             {"behavior", "Isolated"},
             {"invert", false}};
  const Ordered bytes = {{"type", "ByteLevel"},
                         {"add_prefix_space", spec.add_prefix_space},
                         {"trim_offsets", true},
                         {"use_regex", digits}};
  return component({{"type", "Sequence"}, {"pretokenizers", {first, bytes}}});
}

std::string post_processor_text(const TokenizerSpec& spec, const BpeModel& model) {
  if (!spec.post_processor.empty()) return spec.post_processor;
  if (spec.begin_tokens.empty() && spec.end_tokens.empty())
    return spec.bpe.characters ? "null" : byte_level_text(true, false, true);
  const auto id_of = [&](const std::string& token) {
    for (const AddedToken& added : spec.added_tokens)
      if (added.content == token) return added.id;
    return model.vocabulary().find(token).value_or(0);
  };
  Ordered single = Ordered::array(), special = Ordered::object();
  const auto add = [&](const std::vector<std::string>& tokens) {
    for (const std::string& token : tokens) {
      single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
      special[token] = {{"id", token}, {"ids", {id_of(token)}}, {"tokens", {token}}};
    }
  };
  add(spec.begin_tokens);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  add(spec.end_tokens);
  Ordered pair = single;
  for (Ordered piece : single) {
    auto& part = *piece.begin();
    part["type_id"] = 1;
    if (part["id"] == "A" && piece.contains("Sequence")) part["id"] = "B";
    pair.push_back(piece);
  }
  return component({{"type", "TemplateProcessing"},
                    {"single", single},
                    {"pair", pair},
                    {"special_tokens", special}});
}

std::string decoder_text(const TokenizerSpec& spec) {
  if (!spec.bpe.characters) return byte_level_text(true, true, true);
  Ordered list = Ordered::array();
  if (!spec.decoding.space.empty()) list.push_back(replacing(spec.decoding.space, " "));
  if (spec.decoding.bytes) list.push_back({{"type", "ByteFallback"}});
  list.push_back({{"type", "Fuse"}});
  if (spec.decoding.strip_space)
    list.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return component({{"type", "Sequence"}, {"decoders", list}});
}

}  // namespace

bool fits_vocab_and_merges(const TokenizerSpec& spec) {
  return !spec.bpe.characters && spec.normalizer.empty() && spec.pattern == SplitPattern::kGpt2;
}

TokenizerFiles write_tokenizer_files(const BpeModel& model, const TokenizerSpec& spec) {
  TokenizerFiles files;
  if (fits_vocab_and_merges(spec)) {
    files.vocab_json = vocab_json_text(model.vocabulary());
    files.merges_txt = merges_txt_text(model);
  }
  files.tokenizer_json = fmt::format(
      "{{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n"
      "  \"added_tokens\": {},\n  \"normalizer\": {},\n  \"pre_tokenizer\": {},\n"
      "  \"post_processor\": {},\n  \"decoder\": {},\n  \"model\": {}\n}}",
      added_tokens_text(spec.added_tokens), normalizer_text(spec.normalizer),
      pre_tokenizer_text(spec), post_processor_text(spec, model), decoder_text(spec),
      model_text(model));
  return files;
}

std::string tokenizer_config_text(const TokenizerSpec& spec) {
  Ordered config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                    {"clean_up_tokenization_spaces", false}};
  if (spec.begin_token) config["bos_token"] = *spec.begin_token;
  if (spec.end_token) config["eos_token"] = *spec.end_token;
  if (spec.bpe.unknown_token) config["unk_token"] = *spec.bpe.unknown_token;
  if (!spec.chat_template.empty()) config["chat_template"] = spec.chat_template;
  return config.dump(2) + "\n";
}

}  // namespace filigree
