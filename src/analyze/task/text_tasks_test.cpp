// Tasks that are drawn from a text: what is a passage and what is not, and that the two prompts of
// each stand side by side token by token, checked by the text and the tokens alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <set>

#include "analyze/analyze_test_support.h"
#include "base/scratch_folder.h"
#include "filigree/error.h"
#include "filigree/tasks.h"
#include "support/files.h"
#include "text/text_test_support.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

const Tokenizer& words_tokenizer() {
  static const Tokenizer loaded = Tokenizer::from_folder(golden_folder() / "bpe-8k");
  return loaded;
}

const Tokenizer& bytes_tokenizer() {
  static const Tokenizer made(spec_with_rules({}));
  return made;
}

constexpr const char* kStory =
    "The ferry had stopped on the day when the bridge was opened. Old Harrow, who had rowed it "
    "since he was a boy, liked to tell the children that it was the fault of the bridge. His wife "
    "said that Harrow had never wound the clock. One evening in October a stranger came down from "
    "Weston with a leather bag in his hand. The rain had been falling since noon on the road from "
    "Weston to the river.\n\n"
    "The stranger knocked. \"There is the bridge,\" said Harrow. \"It is closed until Monday,\" "
    "said the stranger at last. The keys of the old house were on the table. The door behind the "
    "two chairs was open. Harrow looked at the stranger for a long time. The children that had "
    "seen the leather bag were afraid of the stranger. In October the clock was running again. "
    "On Monday the man from Weston came back for his leather bag, and Harrow paid him two "
    "shillings. \"I was never afraid of the river.\" That was all he said on Monday.";

std::shared_ptr<const TaskText> text_of(const std::string& text) {
  TaskText made;
  made.source = "story.txt";
  made.documents.push_back(scan_document(text));
  return std::make_shared<const TaskText>(std::move(made));
}

TaskPrompts draw(const std::string& task, const std::string& text, std::uint64_t seed = 0,
                 const Tokenizer& tokenizer = words_tokenizer(), std::size_t prompts = 100,
                 const std::string& corruption = "") {
  TaskOptions options;
  options.prompts = prompts, options.seed = seed;
  options.text = text_of(text);
  const TaskDefinition& definition = task_definition(task);
  return make_task(definition, corruption_of(definition, corruption), tokenizer, options);
}

std::vector<std::string> clean_texts(const TaskPrompts& made) {
  std::vector<std::string> texts;
  for (const TaskPrompt& prompt : made.prompts) texts.push_back(prompt.text.clean);
  return texts;
}

// The only prompt of a text, as clean|answer|corrupt|wrong; "" when the text has none.
std::string only(const std::string& task, const std::string& text,
                 const Tokenizer& tokenizer = words_tokenizer()) {
  try {
    const TaskPrompts made = draw(task, text, 0, tokenizer);
    EXPECT_EQ(made.prompts.size(), 1u) << text;
    const PromptText& prompt = made.prompts[0].text;
    return prompt.clean + "|" + prompt.answers[0] + "|" + prompt.corrupt + "|" + prompt.wrong[0];
  } catch (const Error&) {
    return "";
  }
}

TEST(TaskTexts, HaveWordsAndSentences) {
  const TextDocument document =
      scan_document("Mr. Smith's dog-cart came. He left\nat 5 p.m. \"Why?\" Zoë asked.\n\nnone");
  std::vector<std::string> words, first;
  for (std::size_t i = 0; i < document.words.size(); ++i) {
    words.emplace_back(document.word(i));
    if (document.words[i].begins_sentence) first.push_back(words.back());
  }
  EXPECT_EQ(words, (std::vector<std::string>{"Mr", "Smith's", "dog-cart", "came", "He", "left",
                                             "at", "p", "m", "Why", "Zoë", "asked", "none"}));
  EXPECT_EQ(first, (std::vector<std::string>{"Mr", "He", "Zoë", "none"}));
  EXPECT_EQ(document.before(4), ". ");
  EXPECT_EQ(document.before(0), "");
  EXPECT_TRUE(scan_document("").words.empty());
  EXPECT_TRUE(scan_document("\xE2\x80\x9C\xC2\xA0 1234").words.empty());
}

TEST(TaskTexts, AreReadInDocumentsAndPassagesAreShort) {
  const ScratchFolder folder;
  std::ofstream(folder.path() / "text.txt") << "a b c\n<|endoftext|>\nd e\n";
  const TaskText text = read_task_text(folder.path() / "text.txt");
  ASSERT_EQ(text.documents.size(), 2u);
  EXPECT_EQ(text.word_count(), 5u);
  EXPECT_EQ(text.documents[1].text, "d e");
  const TextDocument near = scan_document("One two. Three four five.");
  EXPECT_EQ(near.passage_begin(3, 4), 2u);
  EXPECT_EQ(near.passage_begin(1, 4), 0u);
  std::string words = "One";
  for (int i = 0; i < 200; ++i) words += " two";
  const TextDocument far = scan_document(words);
  EXPECT_EQ(far.passage_begin(190, 200), std::nullopt);
  EXPECT_EQ(far.passage_begin(20, 30), 0u);
}

class TextTasks : public testing::TestWithParam<std::string> {};

TEST_P(TextTasks, GiveEveryPassageOnceInAnOrderOfTheSeed) {
  const TaskPrompts made = draw(GetParam(), kStory);
  ASSERT_GE(made.prompts.size(), 2u);
  EXPECT_EQ(made.drawn,
            std::accumulate(made.dropped.begin(), made.dropped.end(), made.prompts.size()));
  const std::vector<std::string> texts = clean_texts(made);
  const std::set<std::string> different(texts.begin(), texts.end());
  EXPECT_EQ(different.size(), texts.size());
  EXPECT_EQ(clean_texts(draw(GetParam(), kStory)), texts);
  EXPECT_TRUE(made.used_up);
  EXPECT_FALSE(draw(GetParam(), kStory, 0, words_tokenizer(), 1).used_up);
  std::set<std::string> firsts;
  for (std::uint64_t seed = 0; seed < 12; ++seed)
    firsts.insert(clean_texts(draw(GetParam(), kStory, seed, words_tokenizer(), 1))[0]);
  EXPECT_GE(firsts.size(), 2u);
}

TEST_P(TextTasks, StandSideBySideInTokensAndComeFromTheText) {
  for (const TaskPrompt& prompt : draw(GetParam(), kStory, 3).prompts) {
    const Tokenizer& tokenizer = words_tokenizer();
    EXPECT_THAT(std::string(kStory), HasSubstr(prompt.text.clean + prompt.text.answers[0]));
    ASSERT_EQ(prompt.clean.size(), prompt.corrupt.size());
    EXPECT_EQ(tokenizer.decode(prompt.clean), prompt.text.clean);
    EXPECT_EQ(tokenizer.decode(prompt.corrupt), prompt.text.corrupt);
    EXPECT_EQ(tokenizer.encode(prompt.text.clean + prompt.text.answers[0])[prompt.clean.size()],
              prompt.answers[0]);
    EXPECT_NE(prompt.answers, prompt.wrong);
    // They differ at the place that has the task's role, and nowhere else.
    std::size_t changed = 0;
    for (std::size_t i = 0; i < prompt.clean.size(); ++i)
      if (prompt.clean[i] != prompt.corrupt[i]) ++changed;
    EXPECT_GE(changed, 1u);
    EXPECT_LE(changed, 3u) << prompt.text.clean;
    const auto first = static_cast<std::size_t>(prompt.first_difference());
    EXPECT_NE(prompt.roles[first], "");
    EXPECT_NE(prompt.roles[first], "START");
    EXPECT_NE(prompt.roles[first], "END");
  }
}

TEST_P(TextTasks, SayWhatIsMissing) {
  const TaskDefinition& task = task_definition(GetParam());
  EXPECT_THAT(
      error_of([&] { draw(GetParam(), "Nothing to see here."); }),
      ::testing::AllOf(HasSubstr("story.txt"), HasSubstr("4 words"), HasSubstr("longer text")));
  EXPECT_THAT(
      error_of([&] { make_task(task, task.corruptions[0], words_tokenizer(), TaskOptions{}); }),
      HasSubstr("drawn from a text"));
}

INSTANTIATE_TEST_SUITE_P(All, TextTasks,
                         testing::Values("returning-word", "agreement-in-text", "closing-quote"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ReturningWord, ReplacesTheFirstOfTwo) {
  const TaskPrompts made = draw("returning-word", kStory);
  for (const TaskPrompt& prompt : made.prompts) {
    const std::string word = prompt.text.answers[0], other = prompt.text.wrong[0];
    const std::size_t at = prompt.text.clean.find(word);
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(prompt.text.clean.find(word.substr(1), at + 2), std::string::npos);  // once
    std::string expected = prompt.text.clean;
    expected.replace(at, word.size(), other);
    EXPECT_EQ(prompt.text.corrupt, expected);
    // Names for names, and words of as many tokens.
    EXPECT_EQ(is_capital(word[1]), is_capital(other[1]));
    EXPECT_EQ(words_tokenizer().encode(word).size(), words_tokenizer().encode(other).size());
    EXPECT_THAT(std::string(kStory), HasSubstr(other));
    EXPECT_EQ(prompt.answers[0], words_tokenizer().encode(word)[0]);
    EXPECT_EQ(prompt.wrong[0], words_tokenizer().encode(other)[0]);
  }
}

TEST(ReturningWord, LeavesNoTraceInTheCorruptPassage) {
  const std::string first = "One day old Harrow came to the river again. ";
  const std::string second =
      "Nobody on the river could say why Harrow had come. "
      "They came from Weston, they said, and went back to Weston.";
  const auto answers = [](const std::string& text) {
    std::set<std::string> found;
    for (const TaskPrompt& prompt : draw("returning-word", text, 0, bytes_tokenizer()).prompts)
      found.insert(prompt.text.answers[0]);
    return found;
  };
  EXPECT_THAT(answers(first + second), ::testing::Contains("Harrow"));
  for (const char* other : {"It was Harrow's boat. ", "A sign said HARROW there. "})
    EXPECT_THAT(answers(first + other + second), ::testing::Not(::testing::Contains("Harrow")));
}

TEST(ReturningWord, IsReplacedByWhatTheTextHasAfterTheSameWord) {
  // "the" has the stranger after it as well; "had" has opened.
  const std::string text =
      "He saw the frame and went away from there in the end. He took up the frame once more. "
      "It was the stranger. It had opened for him and for her, and then it had opened again. "
      "So he said to the stranger.";
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    std::set<std::string> wrong;
    for (const TaskPrompt& prompt : draw("returning-word", text, seed).prompts)
      if (prompt.text.answers[0] == " frame") wrong.insert(prompt.text.wrong[0]);
    EXPECT_EQ(wrong, std::set<std::string>{" stranger"});
  }
}

TEST(AgreementInText, KnowsSubjectsAndWhatIsNone) {
  const auto agreement = [](const std::string& text) { return only("agreement-in-text", text); };
  EXPECT_EQ(agreement("The books on the table were old."),
            "The books on the table| were|The book on the table| was");
  EXPECT_EQ(agreement("The old man with two dogs has gone."),
            "The old man with two dogs| has|The old men with two dogs| have");
  EXPECT_EQ(agreement("We know that the hands of the king are cold."),
            "We know that the hands of the king| are|We know that the hand of the king| is");
  EXPECT_EQ(agreement("The house, which stood on the hill, was old."),
            "The house, which stood on the hill,| was|The houses, which stood on the hill,| were");
  EXPECT_EQ(agreement("The man who lived in the house is here."),
            "The man who lived in the house| is|The men who lived in the house| are");
  EXPECT_EQ(agreement("He left, and the road behind him was dark."),
            "He left, and the road behind him| was|He left, and the roads behind him| were");
  EXPECT_EQ(agreement("In the old house, the hands of the king were cold."),
            "In the old house, the hands of the king| were|"
            "In the old house, the hand of the king| was");
  for (const char* opening : {"However, ", "For that reason "})
    EXPECT_THAT(agreement(opening + std::string("the hands of the king were cold.")),
                HasSubstr("the king| were|" + std::string(opening) + "the hand of"))
        << opening;
  for (const char* none :
       {"The rest of the men were old.",                     // the noun has not the verb's number
        "He, the king, and the men of the house were old.",  // the last of a longer subject
        "By the house, by the wood, the hands of the king were cold.",  // a list
        "The books on the table could only have come.",                 // no number
        "The thing controlled by white men is old.",                    // no noun
        "The king in the house and his wife were old.",                 // two subjects
        "The man who said that he was old.",                            // another subject
        "The man that the king was with.",                              // of the clause
        "We say that the report shows that most of the men is old.",    // a verb, not a noun
        "In the house of the king was a table.",        // no subject before the verb
        "The man of God, is here.", "The man is old.",  // nothing between
        "The man of it is old.", "The King of the hill is old.",
        "The news of the day is old."})  // a noun that ends as plurals do
    EXPECT_EQ(agreement(none), "") << none;
}

TEST(AgreementInText, TakesAnotherNounOfTheOtherNumber) {
  const std::string text = "The books on the table were old. The man with two dogs has gone.";
  const auto corrupt = [](const TaskPrompts& made) {
    std::set<std::string> texts;
    for (const TaskPrompt& prompt : made.prompts) texts.insert(prompt.text.corrupt);
    return texts;
  };
  EXPECT_EQ(corrupt(draw("agreement-in-text", text, 0, words_tokenizer(), 9, "other-noun")),
            (std::set<std::string>{"The man on the table", "The books with two dogs"}));
}

// Where every byte is a token a noun and its plural have different lengths, and all words begin
// with the same token, the space.
TEST(TokenizersOfBytes, FitTasksOfATextToo) {
  const Tokenizer& bytes = bytes_tokenizer();
  const std::string text =
      "The hands of the king were cold. The house of the king is old. There was no hand and there "
      "were no houses.";
  EXPECT_THAT(error_of([&] { draw("agreement-in-text", text, 0, bytes); }),
              ::testing::AllOf(HasSubstr("none of 2"), HasSubstr("longer text")));
  EXPECT_EQ(only("agreement-in-text", "The man of the house was old. No men came.", bytes),
            "The man of the house w|as|The men of the house w|ere");
  EXPECT_EQ(draw("agreement-in-text", text, 0, bytes, 9, "other-noun").prompts.size(), 2u);
  EXPECT_GE(draw("returning-word", kStory, 0, bytes).prompts.size(), 1u);
  EXPECT_GE(draw("closing-quote", kStory, 0, bytes).prompts.size(), 1u);
}

TEST(ClosingQuote, EndsBeforeThePunctuationThatHasTheQuoteInOneToken) {
  const auto quote = [](const std::string& text) { return only("closing-quote", text); };
  ASSERT_EQ(words_tokenizer().encode(",\"").size(), 1u);
  const std::string found = quote("He stood up. \"There is the house,\" he said there.");
  EXPECT_THAT(found, ::testing::MatchesRegex("He stood up\\. \"There is the house\\|,\"\\|"
                                             "He stood up\\. [A-Z][a-z]+ there is the house\\|,"));
  EXPECT_THAT(quote("He said to us, \"There is the house,\" and was there."),
              ::testing::MatchesRegex("He said to us, \"There is the house\\|,\"\\|"
                                      "He said to us, [a-z]+ there is the house\\|,"));
  EXPECT_EQ(quote("He stood up. \"No.\" He was old."), "");          // too short
  EXPECT_EQ(quote("\"There is the house,\" he said."), "");          // nothing before it
  EXPECT_EQ(quote("He stood up. \"There is the house and he"), "");  // never closed
  EXPECT_EQ(quote("He read \"the old house\" and left it."), "");    // no speech: no punctuation
  EXPECT_EQ(quote("He stood up. \"There is the house\n\nand more,\" he said."), "");
}

TEST(ClosingQuote, EndsBetweenTheTwoWhereTheyAreTwoTokens) {
  // Curly quotes are several tokens here, and so is the punctuation with them.
  const std::string text =
      "He stood up there. \u201cThere is the house of the king.\u201d That is there, he said.";
  ASSERT_GT(words_tokenizer().encode(".\u201d").size(), 1u);
  const TaskPrompts made = draw("closing-quote", text);
  ASSERT_EQ(made.prompts.size(), 1u);
  const TaskPrompt& prompt = made.prompts[0];
  EXPECT_TRUE(prompt.text.clean.ends_with("the king."));
  EXPECT_EQ(prompt.text.answers[0], "\u201d");
  EXPECT_EQ(prompt.text.wrong[0], " The");
  EXPECT_EQ(prompt.text.corrupt.find("\u201c"), std::string::npos);
}

}  // namespace
}  // namespace filigree
