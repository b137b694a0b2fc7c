#include "filigree/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <system_error>
#include <utility>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/file_status.h"
#include "base/folders.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "io/gguf.h"
#include "text/added_tokens.h"
#include "text/bpe_model.h"
#include "text/byte_level.h"
#include "text/chat_template.h"
#include "text/gguf_tokenizer.h"
#include "text/named_tokens.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer_files.h"
#include "text/word_table.h"

namespace filigree {
namespace {

// A text of this many bytes repeats enough words for remembering them to pay.
constexpr std::size_t kCacheFromBytes = 4096;
constexpr std::size_t kMaxCachedWordBytes = 64;
constexpr std::size_t kMaxCachedWords = std::size_t{1} << 17;

// Encodes the words of one text and remembers those it has seen. Belongs to a single call, so that
// threads share nothing.
class WordEncoder {
 public:
  WordEncoder(const BpeModel& model, bool remember) : model_(model), remember_(remember) {}

  void encode(std::string_view word, std::vector<TokenId>& ids) {
    if (!remember_ || word.size() > kMaxCachedWordBytes) {
      model_.encode_word(word, ids);
      return;
    }
    const std::size_t known = words_.size();
    const std::uint32_t index = known < kMaxCachedWords ? words_.intern(word) : words_.find(word);
    if (index == WordTable::kAbsent) {
      model_.encode_word(word, ids);
      return;
    }
    if (index == known) {
      model_.encode_word(word, word_ids_);
      ends_.push_back(word_ids_.size());
    }
    const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
    ids.insert(ids.end(), word_ids_.begin() + static_cast<std::ptrdiff_t>(begin),
               word_ids_.begin() + static_cast<std::ptrdiff_t>(ends_[index]));
  }

 private:
  const BpeModel& model_;
  bool remember_;
  WordTable words_;
  std::vector<TokenId> word_ids_;  // of all known words, one after the other
  std::vector<std::size_t> ends_;
};

}  // namespace

struct Tokenizer::State {
  struct Token {
    std::string bytes;
    std::string name;  // empty: the id is unused
    bool special = false;
  };

  explicit State(const TokenizerSpec& spec)
      : model(Vocabulary(spec.vocabulary, spec.vocabulary_name), spec.rules, spec.rules_name,
              spec.bpe),
        added(spec.added_tokens, spec.normalizer),
        form(without_words(spec)) {
    const Vocabulary& vocabulary = model.vocabulary();
    const std::size_t limit =
        Vocabulary::largest_id_limit(vocabulary.entry_count() + added.tokens().size());
    std::size_t size = vocabulary.id_limit();
    for (const AddedToken& token : added.tokens()) {
      if (token.id < 0 || static_cast<std::size_t>(token.id) >= limit)
        fail("{}: added token '{}' has id {}; an id must be between 0 and {} here",
             spec.vocabulary_name, printable(token.content), token.id, limit - 1);
      size = std::max(size, static_cast<std::size_t>(token.id) + 1);
    }
    tokens.resize(size);
    for (std::size_t i = 0; i < vocabulary.id_limit(); ++i) {
      const auto name = vocabulary.token(static_cast<TokenId>(i));
      if (!name) continue;
      // A token outside the byte-level alphabet stands for itself.
      tokens[i].bytes = bytes_of(*name);
      tokens[i].name = *name;
    }
    for (const AddedToken& token : added.tokens()) {
      Token& slot = tokens[static_cast<std::size_t>(token.id)];
      const std::optional<TokenId> in_vocabulary = vocabulary.find(token.content);
      if (in_vocabulary && *in_vocabulary != token.id)
        fail("{}: added token '{}' has id {}, but {} in the vocabulary", spec.vocabulary_name,
             printable(token.content), token.id, *in_vocabulary);
      if (!in_vocabulary && !slot.name.empty())
        fail("{}: added token '{}' has id {}, which is that of token '{}'", spec.vocabulary_name,
             printable(token.content), token.id, printable(slot.name));
      // Tokens of bytes may be added ones too.
      const bool byte = model.settings().characters && bytes_of(token.content).size() == 1;
      slot = {byte ? bytes_of(token.content) : token.content, token.content, token.special};
    }
    const auto ids_of = [&](const std::vector<std::string>& names, std::vector<TokenId>& to) {
      for (const std::string& name : names) {
        const std::optional<TokenId> id = find(name);
        if (!id)
          fail("{}: the post_processor adds '{}', which is no token", spec.vocabulary_name,
               printable(name));
        to.push_back(*id);
      }
    };
    ids_of(spec.begin_tokens, begin_ids);
    ids_of(spec.end_tokens, end_ids);
    if (spec.end_token) {
      eos = find(*spec.end_token);
      if (!eos)
        warn("{}: the end-of-text token '{}' is not in the vocabulary and is ignored",
             spec.vocabulary_name, printable(*spec.end_token));
    }
    for (const std::string_view usual : {kEndOfText, std::string_view("</s>")})
      if (!eos) eos = find(usual);
  }

  std::optional<TokenId> find(std::string_view name) const {
    for (const AddedToken& token : added.tokens())
      if (token.content == name) return token.id;
    return model.vocabulary().find(name);
  }

  const Token& token(TokenId id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= tokens.size())
      fail("decode: token id {} is outside the vocabulary of {} tokens", id, tokens.size());
    const Token& found = tokens[static_cast<std::size_t>(id)];
    if (found.name.empty())
      fail("decode: token id {} is unused in the vocabulary of {} tokens", id, tokens.size());
    return found;
  }

  // What a token of the vocabulary stands for. One outside the byte-level alphabet is itself.
  std::string bytes_of(std::string_view name) const {
    if (!model.settings().characters) return from_byte_level(name).value_or(std::string(name));
    if (form.decoding.bytes && name.size() == 6 && name.starts_with("<0x") && name.back() == '>') {
      unsigned value = 0;
      const auto [stop, failure] = std::from_chars(name.data() + 3, name.data() + 5, value, 16);
      if (failure == std::errc() && stop == name.data() + 5)
        return std::string(1, static_cast<char>(value));
    }
    return form.decoding.space.empty() ? std::string(name)
                                       : replace_all(name, form.decoding.space, " ");
  }

  // A text as the vocabulary would write it.
  std::string name_of(std::string_view text) const {
    if (!model.settings().characters) return to_byte_level(text);
    return form.decoding.space.empty() ? std::string(text)
                                       : replace_all(text, " ", form.decoding.space);
  }

  void encode_metaspace(const TextSegment& segment, WordEncoder& encoder,
                        std::vector<TokenId>& ids) const {
    const std::string& mark = form.metaspace.character;
    std::string text = replace_all(segment.text, " ", mark);
    const bool prepends = form.metaspace.prepend == Metaspace::Prepend::kAlways ||
                          (form.metaspace.prepend == Metaspace::Prepend::kFirst && segment.first);
    if (prepends && !text.starts_with(mark)) text.insert(0, mark);
    if (!form.metaspace.split) return encoder.encode(text, ids);
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t stop = std::min(text.find(mark, begin + 1), text.size());
      encoder.encode(std::string_view(text).substr(begin, stop - begin), ids);
      begin = stop;
    }
  }

  void encode_segment(const TextSegment& segment, WordEncoder& encoder,
                      std::vector<TokenId>& ids) const {
    std::string_view text = segment.text;
    if (!form.metaspace.character.empty()) return encode_metaspace(segment, encoder, ids);
    std::string prefixed;
    if (form.add_prefix_space && !text.starts_with(' ')) {
      prefixed.reserve(text.size() + 1);
      prefixed.append(" ").append(text);
      text = prefixed;
    }
    if (!form.use_pattern) {
      encoder.encode(text, ids);
      return;
    }
    PreTokenScanner scanner(text, form.pattern);
    for (std::string_view word; scanner.next(word);) encoder.encode(word, ids);
  }

  // All of it but the vocabulary and the rules, which the model has.
  static TokenizerSpec without_words(TokenizerSpec spec) {
    spec.vocabulary = {};
    spec.rules = {};
    return spec;
  }

  BpeModel model;
  AddedTokens added;
  TokenizerSpec form;
  std::vector<TokenId> begin_ids, end_ids;  // what belongs around a text
  std::vector<Token> tokens;                // by id
  std::optional<TokenId> eos;
};

Tokenizer::Tokenizer(const TokenizerSpec& spec) : state_(std::make_shared<const State>(spec)) {}

Tokenizer Tokenizer::from_folder(const std::filesystem::path& folder) {
  if (has_gguf_ending(folder) && is_file(folder))
    return Tokenizer(gguf_tokenizer(GgufFile::open(folder).metadata()));
  const auto json_file = folder / "tokenizer.json";
  const auto vocab_file = folder / "vocab.json";
  const auto merges_file = folder / "merges.txt";
  const auto config_file = folder / "tokenizer_config.json";
  const bool has_json = is_there(json_file);
  TokenizerSpec spec;
  if (has_json) {
    const auto mapped = MappedFile::open(json_file);
    spec = parse_tokenizer_json(mapped->text(), json_file.string());
  } else if (is_there(vocab_file) && is_there(merges_file)) {
    const auto vocab = MappedFile::open(vocab_file);
    const auto merges = MappedFile::open(merges_file);
    spec = parse_vocab_and_merges(vocab->text(), vocab_file.string(), merges->text(),
                                  merges_file.string());
  } else {
    fail("no tokenizer in '{}': neither tokenizer.json nor vocab.json with merges.txt is there",
         folder.string());
  }
  if (is_there(config_file)) {
    const auto config = MappedFile::open(config_file);
    apply_tokenizer_config(config->text(), config_file.string(), has_json, spec);
  }
  if (!has_json) require_all_rules(spec, merges_file.string());
  const auto template_file = folder / "chat_template.jinja";
  if (is_there(template_file)) spec.chat_template = MappedFile::open(template_file)->text();
  return Tokenizer(spec);
}

Tokenizer Tokenizer::from_tokenizer_json(const std::filesystem::path& file) {
  const auto mapped = MappedFile::open(file);
  return Tokenizer(parse_tokenizer_json(mapped->text(), file.string()));
}

Tokenizer Tokenizer::from_vocab_and_merges(const std::filesystem::path& vocab_file,
                                           const std::filesystem::path& merges_file) {
  const auto vocab = MappedFile::open(vocab_file);
  const auto merges = MappedFile::open(merges_file);
  const TokenizerSpec spec = parse_vocab_and_merges(vocab->text(), vocab_file.string(),
                                                    merges->text(), merges_file.string());
  require_all_rules(spec, merges_file.string());
  return Tokenizer(spec);
}

Tokenizer Tokenizer::from_tokenizer_json_text(std::string_view text) {
  return Tokenizer(parse_tokenizer_json(text, "tokenizer.json"));
}

Tokenizer Tokenizer::from_vocab_and_merges_text(std::string_view vocab_json,
                                                std::string_view merges_txt) {
  return Tokenizer(parse_vocab_and_merges(vocab_json, "vocab.json", merges_txt, "merges.txt"));
}

bool Tokenizer::is_in(const std::filesystem::path& folder) {
  if (has_gguf_ending(folder) && is_file(folder))
    return has_gguf_tokenizer(GgufFile::open(folder).metadata());
  return is_there(folder / "tokenizer.json") || is_there(folder / "vocab.json");
}

std::vector<std::string> Tokenizer::save(const std::filesystem::path& folder) const {
  if (!state_->form.source.empty()) {
    make_folders(folder);
    write_file_atomically(folder / "tokenizer.json", state_->form.source);
    return {"tokenizer.json"};
  }
  const TokenizerFiles files = write_tokenizer_files(state_->model, state_->form);
  make_folders(folder);
  const bool all = fits_vocab_and_merges(state_->form);
  if (all) {
    write_file_atomically(folder / "vocab.json", files.vocab_json);
    write_file_atomically(folder / "merges.txt", files.merges_txt);
  }
  // Last, because loading prefers it: until it is there, the old one still goes with itself.
  write_file_atomically(folder / "tokenizer.json", files.tokenizer_json);
  if (!all) return {"tokenizer.json"};
  return {"tokenizer.json", "vocab.json", "merges.txt"};
}

void Tokenizer::save_with_config(const std::filesystem::path& folder) const {
  make_folders(folder);
  write_file_atomically(folder / "tokenizer_config.json", tokenizer_config_text(state_->form));
  save(folder);
}

std::uint64_t Tokenizer::rules_fingerprint() const {
  std::string rules;
  const auto add = [&](std::string_view part) {
    rules += part;
    rules += '\0';
  };
  for (const auto& [left, right] : state_->model.rules()) add(fmt::format("{} {}", left, right));
  const BpeSettings& bpe = state_->model.settings();
  add(fmt::format("ignore_merges {}", bpe.ignore_merges));
  if (bpe.characters)
    add(fmt::format("characters, byte_fallback {} fuse_unknown {} unknown {}", bpe.byte_fallback,
                    bpe.fuse_unknown, bpe.unknown_token.value_or("")));
  add(fmt::format("prefix_space {}", state_->form.add_prefix_space));
  add(fmt::format("pattern {}",
                  state_->form.use_pattern ? static_cast<int>(state_->form.pattern) : -1));
  const Metaspace& metaspace = state_->form.metaspace;
  add(fmt::format("metaspace {} {} {}", metaspace.character, static_cast<int>(metaspace.prepend),
                  metaspace.split));
  for (const NormalizerStep& step : state_->added.normalizer())
    for (const std::string& part :
         {fmt::format("normalizer {}", static_cast<int>(step.kind)), step.from, step.to})
      add(part);
  return xxh64(rules);
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::string repaired;
  if (const std::size_t bad = first_invalid_utf8(text); bad != text.size()) {
    if (!options.replace_invalid_utf8)
      fail("encode: invalid UTF-8 at byte {} of {} (0x{:02X})", bad, text.size(),
           static_cast<unsigned char>(text[bad]));
    repaired = replace_invalid_utf8(text);
    text = repaired;
  }
  if (state_->form.by_name) return encode_names(*this, text);
  std::vector<TokenId> ids;
  WordEncoder encoder(state_->model, text.size() >= kCacheFromBytes);
  if (options.add_template) ids = state_->begin_ids;
  std::deque<std::string> storage;
  for (const TextSegment& segment : state_->added.split(text, options.special_tokens, storage)) {
    if (segment.id == TextSegment::kText)
      state_->encode_segment(segment, encoder, ids);
    else
      ids.push_back(segment.id);
  }
  if (options.add_template) ids.insert(ids.end(), state_->end_ids.begin(), state_->end_ids.end());
  return ids;
}

bool Tokenizer::has_chat_template() const { return !state_->form.chat_template.empty(); }

std::string Tokenizer::chat_text(std::span<const ChatMessage> messages) const {
  const TokenizerSpec& form = state_->form;
  require(has_chat_template(),
          "chat: no chat template came with the tokenizer (tokenizer_config.json, "
          "chat_template.jinja or tokenizer.chat_template of a GGUF file); give the prompt as the "
          "model was trained on it");
  return filigree::chat_text(
      form.chat_template, messages, true,
      {.begin = form.begin_token, .end = form.end_token, .unknown = form.bpe.unknown_token});
}

std::vector<TokenId> Tokenizer::encode_chat(std::span<const ChatMessage> messages) const {
  return encode(chat_text(messages));
}

std::string Tokenizer::decode(std::span<const TokenId> ids, const DecodeOptions& options) const {
  std::string bytes;
  for (const TokenId id : ids) {
    const State::Token& token = state_->token(id);
    if (state_->form.by_name && !bytes.empty()) bytes += ' ';
    if (!token.special || !options.skip_special_tokens) bytes += token.bytes;
  }
  if (state_->form.decoding.strip_space && bytes.starts_with(' ')) bytes.erase(0, 1);
  return bytes;
}

std::size_t Tokenizer::vocab_size() const { return state_->tokens.size(); }

bool Tokenizer::has_token(TokenId id) const {
  return id >= 0 && static_cast<std::size_t>(id) < vocab_size() &&
         !state_->tokens[static_cast<std::size_t>(id)].name.empty();
}

std::string_view Tokenizer::token_bytes(TokenId id) const { return state_->token(id).bytes; }

std::string_view Tokenizer::token_name(TokenId id) const { return state_->token(id).name; }

std::string Tokenizer::token_text(TokenId id) const {
  const std::string& bytes = state_->token(id).bytes;
  return printable(bytes, bytes.size());
}

std::optional<TokenId> Tokenizer::id_of(std::string_view name) const { return state_->find(name); }

TokenId Tokenizer::require_id(std::string_view token) const {
  if (const auto id = id_of(token)) return *id;
  if (const auto id = id_of(state_->name_of(token))) return *id;
  std::vector<std::string> names;
  for (const State::Token& candidate : state_->tokens)
    if (!candidate.name.empty()) names.push_back(candidate.name);
  // A name far longer than any token would only make the search slow.
  const auto nearest = nearest_names(state_->name_of(token.substr(0, 64)), names, 3);
  fail("the vocabulary has no token '{}'; the nearest are '{}'", printable(token),
       join(nearest, "', '"));
}

const std::vector<AddedToken>& Tokenizer::added_tokens() const { return state_->added.tokens(); }

bool Tokenizer::is_special(TokenId id) const { return state_->token(id).special; }

bool Tokenizer::by_name() const { return state_->form.by_name; }

bool Tokenizer::of_bytes() const { return !state_->model.settings().characters; }

const std::vector<TokenId>& Tokenizer::begin_ids() const { return state_->begin_ids; }

std::optional<TokenId> Tokenizer::eos_id() const { return state_->eos; }

const TokenizerSpec& Tokenizer::form() const { return state_->form; }

const BpeModel& Tokenizer::model() const { return state_->model; }

StreamingDecoder::StreamingDecoder(Tokenizer tokenizer, DecodeOptions options)
    : tokenizer_(std::move(tokenizer)), options_(options) {}

std::string StreamingDecoder::push(TokenId id) {
  // By itself: what a tokenizer strips from the beginning of a text is not at that of a token.
  if (!options_.skip_special_tokens || !tokenizer_.is_special(id)) {
    if (tokenizer_.by_name()) pending_ += ' ';
    pending_ += tokenizer_.token_bytes(id);
  }
  // Hold back the start of a character that the next token may complete.
  std::size_t complete = 0;
  while (complete < pending_.size()) {
    const Utf8Sequence sequence = utf8_sequence(std::string_view(pending_).substr(complete));
    if (sequence.kind == Utf8Sequence::Kind::kIncomplete) break;
    complete += sequence.length;
  }
  std::string text = replace_invalid_utf8(std::string_view(pending_).substr(0, complete));
  pending_.erase(0, complete);
  return text;
}

std::string StreamingDecoder::finish() {
  std::string text = replace_invalid_utf8(pending_);
  pending_.clear();
  return text;
}

}  // namespace filigree
