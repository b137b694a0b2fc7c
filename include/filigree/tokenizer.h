// Text to tokens and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace filigree {

// -------------------------------------------------------------------------------------------------
// The number of a token, as models and token shards store it.

using TokenId = std::int32_t;

// -------------------------------------------------------------------------------------------------
// BPE exactly as Hugging Face's tokenizers: text to token ids and back. Of bytes, as GPT-2, Llama
// 3, Qwen and GPT-NeoX have it, or of characters with bytes for those that are unknown, as Llama 2,
// Mistral and Gemma do.
//
// A Tokenizer is immutable: copies share one state, and any number of threads may use it at once.
// Round trip: decode(encode(text)) == text for every well-formed text, unless the tokenizer adds a
// prefix space, normalizes, replaces bytes it does not know, or has added tokens that strip white
// space.

struct AddedToken;
struct TokenizerSpec;
class BpeModel;

struct EncodeOptions {
  // Recognise special tokens such as <|endoftext|> in the text. Turn this off for text of unknown
  // origin: a special token's name is then spelled with ordinary tokens.
  bool special_tokens = true;
  // Put U+FFFD in place of invalid UTF-8 instead of failing.
  bool replace_invalid_utf8 = false;
  // Put the tokens around the text that belong there, such as a begin-of-text token. Otherwise
  // nothing is added that the text does not contain.
  bool add_template = false;
};

struct DecodeOptions {
  bool skip_special_tokens = false;
};

// Of a conversation: the role is "user", "assistant" or "system".
struct ChatMessage {
  std::string role, content;
};

class Tokenizer {
 public:
  // Reads tokenizer.json if the folder has one, else vocab.json and merges.txt; in both cases also
  // tokenizer_config.json and chat_template.jinja, if present, for the tokens that begin and end a
  // text and for the chat template. A GGUF file may stand for a folder. All loading functions throw
  // Error naming the file and what is wrong in it.
  static Tokenizer from_folder(const std::filesystem::path& folder);
  // Whether there is something for from_folder() to read.
  static bool is_in(const std::filesystem::path& folder);
  static Tokenizer from_tokenizer_json(const std::filesystem::path& file);
  static Tokenizer from_vocab_and_merges(const std::filesystem::path& vocab_file,
                                         const std::filesystem::path& merges_file);

  // The same from memory.
  static Tokenizer from_tokenizer_json_text(std::string_view text);
  static Tokenizer from_vocab_and_merges_text(std::string_view vocab_json,
                                              std::string_view merges_txt);

  // For a model without a tokenizer: `count` tokens whose names are their ids, so that a text is
  // "3, 17, 5" or "3 17 5"; or the names of a vocab.json, {"name": id}, which ids may stand for.
  static Tokenizer of_ids(std::int64_t count);
  static Tokenizer from_names(const std::filesystem::path& vocab_file, std::int64_t count);

  explicit Tokenizer(const TokenizerSpec& spec);

  // Writes vocab.json, merges.txt and tokenizer.json, each atomically, for Hugging Face to load; of
  // a tokenizer that these cannot tell, tokenizer.json alone, as it was read. Creates the folder
  // when it is missing. Returns the names of the files.
  std::vector<std::string> save(const std::filesystem::path& folder) const;
  // The same, and tokenizer_config.json: the tokens that begin and end a text, the chat template.
  void save_with_config(const std::filesystem::path& folder) const;

  // Throws Error naming the byte offset of invalid UTF-8.
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // Whether a chat template came with the tokenizer.
  bool has_chat_template() const;
  // A conversation as that template writes it, up to where the model answers, and its ids: special
  // tokens are those that the text names, and none are added. Throws Error where there is no template
  // or it does what is not supported, by name.
  std::string chat_text(std::span<const ChatMessage> messages) const;
  std::vector<TokenId> encode_chat(std::span<const ChatMessage> messages) const;

  // The bytes the tokens stand for; a part of a text may begin or end inside a character. Throws
  // Error naming an id that is out of range or unused.
  std::string decode(std::span<const TokenId> ids, const DecodeOptions& options = {}) const;

  // Largest id + 1: the number of rows an embedding needs.
  std::size_t vocab_size() const;

  // False for ids that are out of range or unused.
  bool has_token(TokenId id) const;

  // The bytes of one token.
  std::string_view token_bytes(TokenId id) const;
  // A token as the vocabulary writes it: "Ġthe".
  std::string_view token_name(TokenId id) const;
  // A token as a person wants to see it: " the", with escapes for control characters and for bytes
  // that are no whole character.
  std::string token_text(TokenId id) const;

  // Id of a token as the vocabulary writes it, or of an added token's content.
  std::optional<TokenId> id_of(std::string_view name) const;
  // Also accepts the text of a token (" the"). Throws Error that lists the nearest names.
  TokenId require_id(std::string_view token) const;

  const std::vector<AddedToken>& added_tokens() const;
  bool is_special(TokenId id) const;

  // Whether it is one of ids or names.
  bool by_name() const;

  // Whether words begin as bytes, else as characters.
  bool of_bytes() const;

  // What the post-processor puts in front of a text: a begin-of-text token, or nothing.
  const std::vector<TokenId>& begin_ids() const;

  // A number that tells ways of cutting a text into tokens apart: the checksum of the merge rules
  // in their order, the pattern that cuts words, and what is done to the text before. What the
  // tokens are called is not in it: tokenizer_fingerprint() (filigree/data.h) is about that.
  std::uint64_t rules_fingerprint() const;

  // End of text: the eos_token of tokenizer_config.json, else <|endoftext|>, else </s>.
  std::optional<TokenId> eos_id() const;

  // What the tokenizer was made of, without vocabulary and rules, and these.
  const TokenizerSpec& form() const;
  const BpeModel& model() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

// Decodes tokens as they are generated: gives out text only in whole characters, invalid bytes as
// U+FFFD, so that what is shown is always well-formed UTF-8.
class StreamingDecoder {
 public:
  explicit StreamingDecoder(Tokenizer tokenizer, DecodeOptions options = {});

  // The text that this token completes; often empty inside a character of several tokens.
  std::string push(TokenId id);

  // What is left at the end: U+FFFD when a character was never completed.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  DecodeOptions options_;
  std::string pending_;  // the start of a character, at most 3 bytes
};

}  // namespace filigree
