#include "text/named_tokens.h"

#include <nlohmann/json.hpp>

#include <charconv>

#include "filigree/error.h"
#include "filigree/names.h"
#include "json/object.h"
#include "text/tokenizer_files.h"

namespace filigree {
namespace {

// Far above every toy model.
constexpr std::int64_t kMostNamed = 1 << 22;

// A tokenizer of all `count` ids: those without a name are called by their number.
Tokenizer named(std::vector<std::string> names, const std::string& source) {
  TokenizerSpec spec;
  spec.by_name = true;
  spec.bpe.characters = true;
  spec.vocabulary_name = source;
  for (std::size_t id = 0; id < names.size(); ++id)
    spec.vocabulary.push_back({std::move(names[id]), static_cast<TokenId>(id)});
  return Tokenizer(spec);
}

std::vector<std::string> numbers(std::int64_t count) {
  require(count > 0 && count <= kMostNamed,
          "{} tokens without a tokenizer: between 1 and {} have names", count, kMostNamed);
  std::vector<std::string> names;
  for (std::int64_t id = 0; id < count; ++id) names.push_back(std::to_string(id));
  return names;
}

}  // namespace

Tokenizer Tokenizer::of_ids(std::int64_t count) { return named(numbers(count), "token ids"); }

Tokenizer Tokenizer::from_names(const std::filesystem::path& vocab_file, std::int64_t count) {
  const JsonObject json = JsonObject::open(vocab_file);
  std::vector<std::string> names = numbers(count);
  for (const std::string& name : json.keys()) {
    const std::int64_t id = json.integer(name, 0, count - 1);
    require(name.find_first_of(" ,\t\r\n") == std::string::npos,
            "{}: the name '{}' has a space or comma, which stand between tokens", json.source(),
            printable(name));
    names[static_cast<std::size_t>(id)] = name;
  }
  return named(std::move(names), json.source());
}

std::vector<TokenId> encode_names(const Tokenizer& tokenizer, std::string_view text) {
  constexpr std::string_view kBetween = " ,\t\r\n";
  std::vector<TokenId> ids;
  for (std::size_t begin = 0;;) {
    begin = text.find_first_not_of(kBetween, begin);
    if (begin == std::string_view::npos) return ids;
    const std::size_t end = std::min(text.find_first_of(kBetween, begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end;
    if (const std::optional<TokenId> known = tokenizer.id_of(part)) {
      ids.push_back(*known);
      continue;
    }
    TokenId id = 0;
    const auto [stop, failure] = std::from_chars(part.data(), part.data() + part.size(), id);
    require(failure == std::errc() && stop == part.data() + part.size() && tokenizer.has_token(id),
            "'{}' is no token; the model has no tokenizer, so that texts are ids from 0 to {} with "
            "spaces or commas between them",
            printable(part, 40), tokenizer.vocab_size() - 1);
    ids.push_back(id);
  }
}

}  // namespace filigree
