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
      "    \"fuse_unk\": {},\n    \"byte_fallback\": false,\n    \"ignore_merges\": {},\n"
      "    \"vocab\": {{",
      settings.unknown_token ? json_string(*settings.unknown_token) : "null",
      truth(settings.fuse_unknown), truth(settings.ignore_merges));
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

}  // namespace

TokenizerFiles write_tokenizer_files(const BpeModel& model, const std::vector<AddedToken>& added,
                                     bool add_prefix_space, bool use_pattern,
                                     std::string_view post_processor) {
  TokenizerFiles files;
  files.vocab_json = vocab_json_text(model.vocabulary());
  files.merges_txt = merges_txt_text(model);
  files.tokenizer_json = fmt::format(
      "{{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n"
      "  \"added_tokens\": {},\n  \"normalizer\": null,\n  \"pre_tokenizer\": {},\n"
      "  \"post_processor\": {},\n  \"decoder\": {},\n  \"model\": {}\n}}",
      added_tokens_text(added), byte_level_text(add_prefix_space, true, use_pattern),
      post_processor.empty() ? byte_level_text(true, false, true) : std::string(post_processor),
      byte_level_text(true, true, true), model_text(model));
  return files;
}

}  // namespace filigree
