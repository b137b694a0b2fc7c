// The two file forms of a BPE tokenizer, to and from plain data: Hugging Face's tokenizer.json, and
// GPT-2's pair vocab.json + merges.txt. All input is untrusted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe_model.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/vocabulary.h"

namespace filigree {

inline constexpr std::string_view kEndOfText = "<|endoftext|>";

// Spaces written as another character, with one more in front of the text, or of every stretch of
// it between added tokens; words may begin at each of them.
struct Metaspace {
  enum class Prepend { kNever, kFirst, kAlways };
  std::string character = {};  // empty: off
  Prepend prepend = Prepend::kNever;
  bool split = false;
};

// How tokens of characters become text again.
struct CharacterDecoding {
  std::string space = {};    // this is written for a space; empty: nothing is
  bool bytes = false;        // "<0x0A>" is a byte
  bool strip_space = false;  // one space at the beginning is not part of the text
};

// Everything that makes a tokenizer.
struct TokenizerSpec {
  std::vector<VocabularyEntry> vocabulary;
  std::vector<MergeRule> rules;
  std::vector<AddedToken> added_tokens;
  BpeSettings bpe;
  // A space is put before every text that does not begin with one.
  bool add_prefix_space = false;
  // Words are cut by a pattern; otherwise the text between added tokens is one word.
  bool use_pattern = true;
  SplitPattern pattern = SplitPattern::kGpt2;
  std::vector<NormalizerStep> normalizer = {};
  Metaspace metaspace = {};
  CharacterDecoding decoding = {};  // of models whose words begin as characters
  // A text is names of tokens with spaces or commas between them (named_tokens.h); no rules then.
  bool by_name = false;
  // Tokens that belong around a text, as the post-processor says.
  std::vector<std::string> begin_tokens = {}, end_tokens = {};
  std::string source;  // tokenizer.json itself, where it cannot be written anew from the rest
  std::optional<std::string> begin_token, end_token;  // of a text
  // How a conversation becomes a text (chat_template.h); empty: nobody said.
  std::string chat_template;
  // JSON text, kept for saving; empty: the byte-level default, which adds no tokens.
  std::string post_processor;

  std::string vocabulary_name = "vocabulary";  // begins messages about the vocabulary
  std::string rules_name = "merge rule";       // begins messages about a rule
};

// Accepts a BPE model, either of bytes (ByteLevel, alone or behind Digits or a Split by a pattern
// that is known) or of characters with byte fallback (Llama 2, Mistral, Gemma); normalizers NFC,
// Prepend and Replace; a post-processor ByteLevel or TemplateProcessing. Anything else is an Error
// that names what was found. Merges may be "a b" strings or ["a", "b"] pairs. Truncation and
// padding are ignored: they concern batches. `name` is what messages call the file.
TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& name);

// "left right" with exactly one space between two tokens; messages begin "RULES_NAME PLACE:".
MergeRule parse_merge_rule(std::string_view line, std::string_view rules_name, std::size_t place);

// Makes <|endoftext|> special when the vocabulary has it.
TokenizerSpec parse_vocab_and_merges(std::string_view vocab_json, const std::string& vocab_name,
                                     std::string_view merges_txt, const std::string& merges_name);

// Throws Error when the vocabulary has tokens of several bytes that no rule makes, other than added
// ones and such as "<pad>" or "[MASK]": merges.txt has lost its end, or belongs to another
// vocabulary. Text would be cut into other tokens than the model learned.
void require_all_rules(const TokenizerSpec& spec, const std::string& merges_name);

// What a folder's tokenizer_config.json adds: "bos_token", "eos_token" and "chat_template"; and
// where there is no tokenizer.json, which has both, the end token as a special one and
// "add_prefix_space".
void apply_tokenizer_config(std::string_view text, const std::string& name, bool has_tokenizer_json,
                            TokenizerSpec& spec);

// The three files' contents, as Hugging Face's tokenizers writes them.
struct TokenizerFiles {
  std::string tokenizer_json;
  std::string vocab_json;
  std::string merges_txt;
};

// Whether vocab.json and merges.txt say all of a tokenizer but its added tokens.
bool fits_vocab_and_merges(const TokenizerSpec& spec);

// Vocabulary and rules are the model's, the rest `spec`'s. Where fits_vocab_and_merges() is false,
// tokenizer.json alone. Throws Error when merges.txt cannot hold a rule because a token contains
// white space.
TokenizerFiles write_tokenizer_files(const BpeModel& model, const TokenizerSpec& spec);

// tokenizer_config.json for what tokenizer.json does not say.
std::string tokenizer_config_text(const TokenizerSpec& spec);

}  // namespace filigree
