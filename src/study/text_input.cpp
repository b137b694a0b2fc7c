#include "filigree/study/text_input.h"

#include "filigree/base/error.h"
#include "filigree/base/strings.h"

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

void check_ids(const std::vector<TokenId>& ids, std::int64_t vocabulary, const std::string& model) {
  for (const TokenId id : ids)
    if (id < 0 || id >= vocabulary)
      fail(
          "model '{}': its tokenizer gives id {}, but the model has {} tokens; the folder's "
          "tokenizer belongs to another model",
          printable(model), id, vocabulary);
}

}  // namespace filigree::study
