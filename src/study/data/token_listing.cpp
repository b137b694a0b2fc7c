#include <algorithm>
#include <charconv>

#include "filigree/error.h"
#include "filigree/model_study.h"
#include "filigree/names.h"

namespace filigree::study {

void place_tokens(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                  const std::function<void(const PlacedToken&)>& take) {
  std::size_t begin = 0;
  for (const TokenId id : ids) {
    const std::size_t end = begin + tokenizer.token_bytes(id).size();
    take({id, tokenizer.token_text(id), tokenizer.is_special(id), begin, end});
    begin = end;
  }
}

std::size_t token_bytes(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::size_t bytes = 0;
  for (const TokenId id : ids) bytes += tokenizer.token_bytes(id).size();
  return bytes;
}

std::vector<TokenId> parse_token_ids(std::string_view text) {
  constexpr const char* kSeparators = " \t\r\n,[]";
  std::vector<TokenId> ids;
  std::size_t begin = 0;
  while ((begin = text.find_first_not_of(kSeparators, begin)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(kSeparators, begin), text.size());
    TokenId id = 0;
    const auto [stopped, failure] = std::from_chars(text.data() + begin, text.data() + end, id);
    if (failure != std::errc() || stopped != text.data() + end || id < 0)
      fail("'{}' is not a token id; ids are whole numbers from 0",
           printable(text.substr(begin, end - begin)));
    ids.push_back(id);
    begin = end;
  }
  return ids;
}

Json tokens_json(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  Json list = Json::array();
  place_tokens(tokenizer, ids, [&](const PlacedToken& token) {
    list.push_back(
        {{"id", token.id}, {"token", token.text}, {"begin", token.begin}, {"end", token.end}});
  });
  return list;
}

}  // namespace filigree::study
