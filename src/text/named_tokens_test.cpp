// Tokenizers of models that have none: ids, and names for them.
#include <gmock/gmock.h>

#include "filigree/error.h"
#include "filigree/tokenizer.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(NamedTokens, TextsAreIds) {
  const Tokenizer tokenizer = Tokenizer::of_ids(12);
  EXPECT_TRUE(tokenizer.by_name());
  EXPECT_EQ(tokenizer.vocab_size(), 12u);
  EXPECT_THAT(tokenizer.encode("3, 11 0\n5"), ElementsAre(3, 11, 0, 5));
  EXPECT_THAT(tokenizer.encode(" , "), testing::IsEmpty());
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{3, 11, 0}), "3 11 0");
  EXPECT_EQ(tokenizer.token_text(11), "11");
  EXPECT_FALSE(tokenizer.eos_id().has_value());
  StreamingDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(3) + decoder.push(7) + decoder.finish(), " 3 7");
  for (const char* text : {"12", "-1", "x", "3.5", "99999999999"})
    EXPECT_THAT(error_of([&] { tokenizer.encode(text); }), HasSubstr("ids from 0 to 11")) << text;
  EXPECT_THROW(Tokenizer::of_ids(0), Error);
}

TEST(NamedTokens, NamesOfAVocabularyStandBesideIds) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "vocab.json";
  write_file(file, R"({"START": 0, "OPEN": 3, "CLOSE": 4})");
  const Tokenizer tokenizer = Tokenizer::from_names(file, 5);
  EXPECT_THAT(tokenizer.encode("START OPEN CLOSE 2 4"), ElementsAre(0, 3, 4, 2, 4));
  EXPECT_EQ(tokenizer.token_text(3), "OPEN");
  EXPECT_EQ(tokenizer.token_text(2), "2");
  const auto wrong = [&](const char* text) {
    write_file(file, text);
    return error_of([&] { Tokenizer::from_names(file, 5); });
  };
  EXPECT_THAT(wrong(R"({"a": 5})"), HasSubstr("a"));
  EXPECT_THAT(wrong(R"({"a b": 1})"), HasSubstr("space"));
  EXPECT_THAT(wrong(R"({"a": 1, "b": "c"})"), HasSubstr("b"));
  EXPECT_THAT(wrong(R"({"4": 1})"), HasSubstr("4"));  // the name of another token
}

}  // namespace
}  // namespace filigree
