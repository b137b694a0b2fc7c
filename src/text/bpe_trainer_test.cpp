#include "text/bpe_trainer.h"

#include <random>

#include "filigree/runtime.h"
#include "text/text_test_support.h"

namespace filigree {
namespace {

// Puts the number of threads back when a test ends.
class ThreadCount {
 public:
  ThreadCount() : before_(num_threads()) {}
  ~ThreadCount() { set_num_threads(before_); }

 private:
  int before_;
};

std::vector<std::string> names(const Tokenizer& tokenizer, TokenId first) {
  std::vector<std::string> all;
  for (TokenId id = first; id < static_cast<TokenId>(tokenizer.vocab_size()); ++id)
    all.emplace_back(tokenizer.token_name(id));
  return all;
}

// Megabytes of text that looks like language: words of a few syllables, rarer ones longer.
std::string invented_text(std::size_t bytes) {
  static const char* const kSyllables[] = {"ka", "lo", "mi", "tern", "é",
                                           "ra", "s",  "un", "7",    "日"};
  static const char* const kSeparators[] = {" ", " ", " ", " ", ", ", ".\n", "\n\n", "  ", "'s "};
  std::mt19937 random(6);
  std::string text;
  while (text.size() < bytes) {
    for (std::size_t i = 1 + random() % 4; i > 0; --i)
      text += kSyllables[std::min(random() % 10, random() % 10)];
    text += kSeparators[random() % 9];
    if (random() % 5000 == 0) text += "<|endoftext|>";
  }
  return text;
}

TEST(BpeTrainer, LearnsWhatAHandComputes) {
  BpeTrainer trainer({.vocab_size = 261, .min_frequency = 2});
  // Words: "low" 1, " low" 2, " lower" 2, "\n" 1. Pairs: lo 5, ow 5, Ġl 4, we 2, er 2.
  trainer.add_text("low low low lower lower\n");
  const Tokenizer tokenizer = trainer.train();
  // l+o before o+w by id; low 5; Ġ+low 4; then e+r and low+e (2 each, of Ġlow): e+r has smaller
  // ids.
  EXPECT_EQ(names(tokenizer, 257), (std::vector<std::string>{"lo", "low", "Ġlow", "er"}));
  EXPECT_EQ(tokenizer.token_name(0), "<|endoftext|>");
  EXPECT_EQ(tokenizer.token_name(1), "!");
  EXPECT_EQ(tokenizer.eos_id(), 0);
  EXPECT_EQ(tokenizer.encode(" lower<|endoftext|>"), (std::vector<TokenId>{259, 260, 0}));
}

TEST(BpeTrainer, StopsWhenPairsBecomeRare) {
  BpeTrainer trainer({.vocab_size = 1000, .special_tokens = {}, .min_frequency = 3});
  trainer.add_text("ab ab ab cd cd");
  EXPECT_EQ(names(trainer.train(), 256), (std::vector<std::string>{"ab"}));
}

TEST(BpeTrainer, TextsAreSeparate) {
  const auto train = [](const std::vector<std::string_view>& texts) {
    BpeTrainer trainer({.vocab_size = 1000, .special_tokens = {"<s>"}, .min_frequency = 1});
    for (const std::string_view text : texts) trainer.add_text(text);
    return names(trainer.train(), 257);
  };
  EXPECT_EQ(train({"ab", "cd"}), (std::vector<std::string>{"ab", "cd"}));
  EXPECT_EQ(train({"abcd"}), (std::vector<std::string>{"ab", "cd", "abcd"}));
  // So they are on both sides of a special token, whose name is not learned.
  EXPECT_EQ(train({"ab<s>cd"}), (std::vector<std::string>{"ab", "cd"}));
  EXPECT_EQ(train({}), std::vector<std::string>{});
  EXPECT_EQ(train({""}), std::vector<std::string>{});
}

TEST(BpeTrainer, NoTokenTakesTheNameOfASpecialOne) {
  BpeTrainer trainer({.vocab_size = 1000, .special_tokens = {"Ġab"}, .min_frequency = 1});
  trainer.add_text(" ab ab ab");
  const Tokenizer tokenizer = trainer.train();
  EXPECT_EQ(names(tokenizer, 257), (std::vector<std::string>{"ab"}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(" ab")), " ab");
}

TEST(BpeTrainer, ResultDoesNotDependOnThreads) {
  const ThreadCount keep;
  const std::string text = invented_text(5 << 20);  // several pieces of work
  std::string expected;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    BpeTrainer trainer({.vocab_size = 600});
    trainer.add_text(text);
    const auto folder = fresh_folder();
    trainer.train().save(folder);
    const std::string got = read_file(folder / "tokenizer.json");
    if (threads == 1) expected = got;
    EXPECT_TRUE(got == expected) << threads << " threads";
  }
}

// What is cut into pieces for the threads counts like the uncut text.
TEST(BpeTrainer, PiecesCountLikeTheWhole) {
  const ThreadCount keep;
  set_num_threads(2);
  const std::string text = invented_text(3 << 20);
  BpeTrainer at_once({.vocab_size = 500});
  at_once.add_text(text);
  BpeTrainer by_document({.vocab_size = 500});
  std::size_t documents = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(kEndOfText, begin), text.size());
    by_document.add_text(std::string_view(text).substr(begin, end - begin));
    begin = end + kEndOfText.size();
    ++documents;
  }
  ASSERT_GT(documents, 10u);
  EXPECT_EQ(names(at_once.train(), 0), names(by_document.train(), 0));
}

TEST(BpeTrainer, SavedAndLoadedEncodesTheSame) {
  const std::string text = invented_text(1 << 18);
  const auto folder = fresh_folder();
  std::ofstream(folder / "text.txt", std::ios::binary) << text;
  BpeTrainer trainer({.vocab_size = 400});
  trainer.add_file(folder / "text.txt");
  const Tokenizer trained = trainer.train();
  EXPECT_EQ(trained.vocab_size(), 400u);
  trained.save(folder / "out");
  const std::vector<TokenId> expected = trained.encode(text);
  EXPECT_LT(expected.size(), text.size() / 2);
  EXPECT_EQ(trained.decode(expected), text);
  EXPECT_EQ(Tokenizer::from_folder(folder / "out").encode(text), expected);
  EXPECT_EQ(
      Tokenizer::from_vocab_and_merges(folder / "out" / "vocab.json", folder / "out" / "merges.txt")
          .encode(text),
      expected);
}

TEST(BpeTrainer, ReportsBothStages) {
  std::size_t counted = 0;
  std::size_t merged = 0;
  const std::string text = invented_text(1 << 18);
  BpeTrainer trainer({.vocab_size = 400, .progress = [&](const BpeTrainingProgress& progress) {
                        EXPECT_LE(progress.done, progress.total);
                        const bool merging = progress.stage == BpeTrainingProgress::Stage::kMerging;
                        (merging ? merged : counted) = progress.done;
                      }});
  trainer.add_text(text);
  EXPECT_GT(counted, text.size() / 2);
  trainer.train();
  EXPECT_GT(merged, 256u);
}

TEST(BpeTrainer, OneWordOfMegabytes) {
  BpeTrainer trainer({.vocab_size = 1000});
  trainer.add_text(std::string(3 << 20, 'x'));
  const Tokenizer tokenizer = trainer.train();
  EXPECT_EQ(tokenizer.token_name(257), "xx");
  EXPECT_EQ(tokenizer.token_bytes(266).size(), 1024u);  // no longer tokens
  EXPECT_EQ(tokenizer.vocab_size(), 267u);
}

TEST(BpeTrainer, RefusesWrongOptionsAndInput) {
  EXPECT_ERROR(BpeTrainer({.vocab_size = 256}),
               "a vocabulary of 256 tokens; it must be between 257");
  EXPECT_ERROR(BpeTrainer({.vocab_size = std::size_t{1} << 40}), "1099511627776 tokens");
  EXPECT_ERROR(BpeTrainer({.special_tokens = {"<a>", "<a>"}}), "'<a>' is listed twice");
  EXPECT_ERROR(BpeTrainer({.special_tokens = {""}}), "its content is empty");
  EXPECT_ERROR(BpeTrainer({.special_tokens = {"Ġ"}}), "how the vocabulary writes byte 0x20");
  BpeTrainer trainer({});
  EXPECT_ERROR(trainer.add_file("/no/such/file"), "/no/such/file");
  EXPECT_ERROR(trainer.add_text("abc\xFF"
                                "d"),
               "text has invalid UTF-8 at byte 3");
  // The first of several, whichever thread meets it.
  std::string text = invented_text(3 << 20);
  const std::size_t at = text.find(' ', text.size() / 3);
  text[at] = '\xFF';
  text[text.find(' ', text.size() / 3 * 2)] = '\xFF';
  EXPECT_ERROR(trainer.add_text(text, "it"), "it has invalid UTF-8 at byte " + std::to_string(at));
}

}  // namespace
}  // namespace filigree
