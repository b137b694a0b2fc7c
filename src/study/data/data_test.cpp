// The studies that make data: corpus, shards, tokenizers, tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "filigree/error.h"
#include "filigree/model_study.h"
#include "support/golden.h"
#include "support/temporary_folder.h"
#include "text/corpus/corpus_tasks.h"

namespace filigree::study {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class DataStudyTest : public ::testing::Test {
 protected:
  std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  // Writes a corpus of so many documents and returns its path.
  std::filesystem::path corpus(const std::string& name, std::uint64_t documents) const {
    run(CorpusRequest{.documents = documents, .out = folder_ / name}, {}, Context());
    return folder_ / name;
  }

  const TemporaryFolder folder_;
};

TEST_F(DataStudyTest, ACorpusGoesToAFileOrToASink) {
  const WrittenCorpus written =
      run(CorpusRequest{.documents = 50, .out = folder_ / "a.txt"}, {}, Context());
  std::string text;
  run(CorpusRequest{.documents = 50}, {}, Context(),
      [&](std::string_view piece) { text += piece; });
  EXPECT_EQ(text, read("a.txt"));
  EXPECT_EQ(written.bytes, text.size());
  EXPECT_EQ(written.documents, 50u);
  EXPECT_EQ(to_json(written)["split"], "train");
}

TEST_F(DataStudyTest, ACorpusEndsInOneWay) {
  EXPECT_THROW(run(CorpusRequest{.out = folder_ / "a.txt"}, {}, Context()), RequestError);
  EXPECT_THROW(
      run(CorpusRequest{.bytes = 1, .documents = 1, .out = folder_ / "a.txt"}, {}, Context()),
      RequestError);
  EXPECT_EQ(folder_.file_count(), 0u);
}

TEST_F(DataStudyTest, AStoppedCorpusLeavesNoFile) {
  Context context;
  context.stop = [] { return true; };
  EXPECT_THROW(run(CorpusRequest{.documents = 50, .out = folder_ / "a.txt"}, {}, context), Stopped);
  EXPECT_EQ(folder_.file_count(), 0u);
}

TEST_F(DataStudyTest, TasksAreShownWithAnExample) {
  const std::vector<ShownTask> tasks = show_corpus_tasks(3);
  ASSERT_EQ(tasks.size(), corpus_tasks().size());
  const Json json = to_json(tasks);
  EXPECT_EQ(json["tasks"][2]["example"]["answer"], tasks[2].example.answer);
  EXPECT_NE(show_corpus_tasks(4)[0].example.text, tasks[0].example.text);
}

TEST_F(DataStudyTest, ShardsAreReportedAsTheyAreMade) {
  const std::filesystem::path text = corpus("a.txt", 400);
  Context context;
  std::vector<std::string> works, notes;
  context.watch = [&](const Work& work) -> std::unique_ptr<WorkReport> {
    works.push_back(work.label);
    return Context().begin(work);
  };
  context.note = [&](const std::string& sentence) { notes.push_back(sentence); };
  const Preparation result = run(
      PreparationRequest{
          .texts = {text}, .held_out_share = 0.0, .out = folder_ / "shards", .vocabulary = 300},
      {}, context);
  EXPECT_THAT(works, ElementsAre("read", "learn", "encode"));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("no document went to the split 'held-out'")));
  EXPECT_EQ(result.index.split("train").documents, 400u);
  EXPECT_EQ(to_json(result)["splits"]["train"]["documents"], 400);
  EXPECT_THAT(
      [&] {
        run(PreparationRequest{.texts = {text}, .out = folder_ / "shards", .vocabulary = 300}, {},
            {});
      },
      ThrowsMessage<Error>(HasSubstr("is there already")));
}

TEST_F(DataStudyTest, PreparationsThatMakeNoSenseAreNoRequests) {
  const std::filesystem::path text = corpus("a.txt", 3);
  const std::filesystem::path out = folder_ / "shards";
  EXPECT_THROW(run(PreparationRequest{.out = out, .vocabulary = 300}, {}, {}), RequestError);
  EXPECT_THROW(run(PreparationRequest{.texts = {text}, .out = out}, {}, {}), RequestError);
  EXPECT_THROW(
      run(PreparationRequest{.texts = {text}, .out = out, .tokenizer = "x", .vocabulary = 300}, {},
          {}),
      RequestError);
  EXPECT_THROW(run(PreparationRequest{.texts = {text},
                                      .held_out_texts = {text},
                                      .held_out_share = 0.1,
                                      .out = out,
                                      .vocabulary = 300},
                   {}, {}),
               RequestError);
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(DataStudyTest, ATokenizerIsTrainedOnceUnlessForced) {
  const std::filesystem::path text = corpus("a.txt", 200);
  TokenizerTrainingRequest request{.texts = {text}, .vocabulary = 300, .out = folder_ / "bpe"};
  EXPECT_EQ(run(request, {}, Context()).vocabulary, 300u);
  EXPECT_THROW(run(request, {}, Context()), Error);
  request.force = true, request.vocabulary = 400;
  EXPECT_EQ(run(request, {}, Context()).vocabulary, 400u);
  EXPECT_EQ(Tokenizer::from_folder(folder_ / "bpe").vocab_size(), 400u);
}

TEST(Tokens, AreReadFromText) {
  EXPECT_THAT(parse_token_ids("15496 995"), ElementsAre(15496, 995));
  EXPECT_THAT(parse_token_ids("[15496, 995]\n"), ElementsAre(15496, 995));
  EXPECT_THAT(parse_token_ids(" "), ElementsAre());
  for (const char* text : {"x", "-1", "1.5", "99999999999", "12x"})
    EXPECT_THAT([&] { parse_token_ids(text); },
                ThrowsMessage<Error>(HasSubstr("is not a token id")));
}

TEST(Tokens, HaveTheirPlacesInTheText) {
  const Tokenizer tokenizer = Tokenizer::from_folder(golden_folder() / "bpe-8k");
  const std::string text = "Hello na\u00efve<|endoftext|>";
  const std::vector<TokenId> ids = tokenizer.encode(text);
  std::vector<PlacedToken> tokens;
  place_tokens(tokenizer, ids, [&](const PlacedToken& token) { tokens.push_back(token); });
  ASSERT_EQ(tokens.size(), ids.size());
  EXPECT_EQ(tokens.back().end, text.size());
  EXPECT_EQ(token_bytes(tokenizer, ids), text.size());
  EXPECT_TRUE(tokens.back().special);
  EXPECT_EQ(text.substr(tokens[0].begin, tokens[0].end - tokens[0].begin), tokens[0].text);
  EXPECT_EQ(tokens_json(tokenizer, ids)[0]["token"], tokens[0].text);
}

}  // namespace
}  // namespace filigree::study
