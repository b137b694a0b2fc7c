// Feeds arbitrary bytes to everything in the text module that reads untrusted input:
// tokenizer.json, vocab.json + merges.txt (separated by a zero byte), tokenizer_config.json and the
// text to encode. Only filigree::Error may come out; what loads must survive being saved and loaded
// again, and decode(encode(text)) must give the text back.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/tokenizer.h"
#include "fuzz_target.h"
#include "text/byte_level.h"
#include "text/tokenizer_files.h"

namespace {

using filigree::TokenId;
using filigree::Tokenizer;
using filigree::TokenizerSpec;
using filigree::fuzz::expect;

constexpr std::string_view kSampleText =
    "It's 12 o'clock,\n\n  she said \xE6\x97\xA5<|endoftext|>aab!";

template <typename Action>
void allowing_errors(Action&& action) {
  try {
    action();
  } catch (const filigree::Error& error) {
    filigree::fuzz::note_outcome(error.what());
  }
}

// A tokenizer with all bytes, a few rules and a special token.
const Tokenizer& embedded_tokenizer() {
  static const Tokenizer tokenizer = [] {
    TokenizerSpec spec;
    const auto add = [&](std::string token) {
      spec.vocabulary.push_back({std::move(token), static_cast<TokenId>(spec.vocabulary.size())});
    };
    for (const std::uint8_t byte : filigree::bytes_in_alphabet_order())
      add(std::string(filigree::byte_level_character(byte)));
    for (const auto& [left, right] :
         {std::pair("Ġ", "t"), std::pair("a", "a"), std::pair("aa", "aa"), std::pair("Ã", "©"),
          std::pair("Ġt", "he"), std::pair("h", "e")}) {
      spec.rules.push_back({left, right, spec.rules.size()});
      add(std::string(left) + right);
    }
    add(std::string(filigree::kEndOfText));
    spec.added_tokens.push_back({.content = std::string(filigree::kEndOfText),
                                 .id = static_cast<TokenId>(spec.vocabulary.size() - 1)});
    return Tokenizer(spec);
  }();
  return tokenizer;
}

void check_round_trip(std::string_view text) {
  const Tokenizer& tokenizer = embedded_tokenizer();
  const bool valid = filigree::first_invalid_utf8(text) == text.size();
  const std::string repaired = filigree::replace_invalid_utf8(text);
  expect(!valid || repaired == text, "valid text was changed");
  for (const bool special : {true, false}) {
    const std::vector<TokenId> ids =
        tokenizer.encode(text, {.special_tokens = special, .replace_invalid_utf8 = true});
    expect(tokenizer.decode(ids) == repaired, "decode(encode(text)) is not the text");
    filigree::StreamingDecoder decoder(tokenizer);
    std::string streamed;
    for (const TokenId id : ids) streamed += decoder.push(id);
    expect(streamed + decoder.finish() == repaired, "streaming gives another text");
  }
  bool refused = false;
  try {
    tokenizer.encode(text);
  } catch (const filigree::Error&) {
    refused = true;
  }
  expect(refused == !valid, "exactly invalid UTF-8 must be refused");
}

// What a tokenizer makes of a text: token ids, or the fact that it cannot.
std::vector<TokenId> ids_or_error(const Tokenizer& tokenizer, std::string_view text) {
  try {
    const std::vector<TokenId> ids = tokenizer.encode(text, {.replace_invalid_utf8 = true});
    tokenizer.decode(ids);
    return ids;
  } catch (const filigree::Error&) {
    return {-1};
  }
}

void exercise(const TokenizerSpec& spec, std::string_view text) {
  const Tokenizer tokenizer(spec);
  const filigree::BpeModel model(filigree::Vocabulary(spec.vocabulary, "vocabulary"), spec.rules,
                                 "rule", spec.bpe);
  // Saved as it was read, or written anew.
  const std::string saved = !spec.source.empty()
                                ? spec.source
                                : filigree::write_tokenizer_files(model, spec).tokenizer_json;
  const Tokenizer again = Tokenizer::from_tokenizer_json_text(saved);
  expect(again.vocab_size() == tokenizer.vocab_size(), "saving changes the vocabulary");
  for (const std::string_view sample : {kSampleText, text.substr(0, 4096)})
    expect(ids_or_error(again, sample) == ids_or_error(tokenizer, sample),
           "saving changes the encoding");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  check_round_trip(input);
  allowing_errors(
      [&] { exercise(filigree::parse_tokenizer_json(input, "tokenizer.json"), input); });
  const std::size_t zero = input.find('\0');
  const std::string_view vocab = input.substr(0, zero);
  const std::string_view merges =
      zero == std::string_view::npos ? std::string_view() : input.substr(zero + 1);
  allowing_errors([&] {
    TokenizerSpec spec =
        filigree::parse_vocab_and_merges(vocab, "vocab.json", merges, "merges.txt");
    exercise(spec, input);
  });
  allowing_errors([&] {
    TokenizerSpec spec;
    filigree::apply_tokenizer_config(input, "tokenizer_config.json", false, spec);
  });
  return 0;
}
