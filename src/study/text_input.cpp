#include <algorithm>

#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/study.h"

namespace filigree::study {

std::vector<TokenId> encode_text(const Tokenizer& tokenizer, std::string_view text,
                                 const std::string& source, const EncodeOptions& options,
                                 std::string_view remedy) {
  try {
    return tokenizer.encode(text, options);
  } catch (const Error& error) {
    fail("{}: {}{}", source, error.what(), remedy);
  }
}

std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, std::string_view text,
                                   const std::string& source, const EncodeOptions& options,
                                   std::string_view remedy) {
  std::vector<TokenId> ids = encode_text(tokenizer, text, source, options, remedy);
  const std::vector<TokenId>& begin = tokenizer.begin_ids();
  const bool there =
      ids.size() >= begin.size() && std::equal(begin.begin(), begin.end(), ids.begin());
  if (!ids.empty() && !there) ids.insert(ids.begin(), begin.begin(), begin.end());
  return ids;
}

void check_ids(const std::vector<TokenId>& ids, std::int64_t vocabulary, const std::string& model) {
  for (const TokenId id : ids)
    if (id < 0 || id >= vocabulary)
      fail(
          "model '{}': its tokenizer gives id {}, but the model has {} tokens; the folder's "
          "tokenizer belongs to another model",
          printable(model), id, vocabulary);
}

}  // namespace filigree::study
