#include <limits>
#include <set>

#include "filigree/data.h"
#include "filigree/runtime.h"
#include "text/corpus/corpus_tasks.h"
#include "text/text_source.h"
#include "text/text_test_support.h"

namespace filigree {
namespace {

std::string written(const Corpus& corpus, std::uint64_t documents, std::uint64_t bytes) {
  std::string text;
  const Corpus::Written written =
      corpus.write(documents, bytes, [&](std::string_view part) { text += part; });
  EXPECT_EQ(written.bytes, text.size());
  return text;
}

TEST(Corpus, WritesTheDocumentsOneAfterTheOther) {
  const Corpus corpus({.seed = 3});
  std::string expected;
  for (std::uint64_t i = 0; i < 3000; ++i) expected += corpus.document(i) + "\n<|endoftext|>\n";
  EXPECT_EQ(written(corpus, 3000, 0), expected);
  EXPECT_EQ(written(corpus, 1, 0), corpus.document(0) + "\n<|endoftext|>\n");
}

TEST(Corpus, IsAFunctionOfTheSeedAndNotOfTheThreads) {
  const int before = num_threads();
  std::set<std::string> texts;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    texts.insert(written(Corpus({.seed = 5}), 0, 300000));
  }
  set_num_threads(before);
  EXPECT_EQ(texts.size(), 1u);
  EXPECT_NE(written(Corpus({.seed = 6}), 10, 0), written(Corpus({.seed = 5}), 10, 0));
}

TEST(Corpus, StopsAtTheSize) {
  const Corpus corpus({.seed = 1});
  for (const std::uint64_t bytes : {1u, 1000u, 500000u}) {
    const std::string text = written(corpus, 0, bytes);
    EXPECT_GE(text.size(), bytes);
    // Without its last document it was too small.
    const std::size_t last = text.rfind("<|endoftext|>", text.size() - 20);
    EXPECT_LT(last == std::string::npos ? 0 : last + 14, bytes);
  }
  EXPECT_EQ(written(corpus, 2, 1000000), written(corpus, 2, 0));
  EXPECT_ERROR(corpus.write(0, 0, [](std::string_view) {}), "neither a number of documents");
}

TEST(Corpus, MakesDocumentsOfAFewExamples) {
  const Corpus corpus({.tasks = {{&corpus_task("capital"), 1}}});
  std::set<std::size_t> lengths;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const std::string text = corpus.document(i);
    EXPECT_FALSE(text.empty() || text.ends_with('\n'));
    std::size_t lines = 1;
    // Questions and their answers are two lines.
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; ++at)
      lines += text.compare(at, 3, "\nA:") == 0 ? 0 : 1;
    lengths.insert(lines);
  }
  EXPECT_EQ(lengths, (std::set<std::size_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Corpus, ShowsNoHeldOutLineInTraining) {
  // Line by line over whole documents, for the tasks whose examples are one line.
  std::vector<TaskShare> tasks;
  for (const char* name : {"indirect_object", "greater_than", "pronoun", "agreement", "entity"})
    tasks.push_back({&corpus_task(name), 1});
  const auto lines = [&](DataSplit split, std::uint64_t documents) {
    const std::string text =
        written(Corpus({.tasks = tasks, .seed = 1, .split = split}), documents, 0);
    std::set<std::string> all;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      all.insert(text.substr(at, end - at));
      at = end + 1;
    }
    all.erase("<|endoftext|>");
    return all;
  };
  const std::set<std::string> train = lines(DataSplit::kTrain, 20000);
  const std::set<std::string> held_out = lines(DataSplit::kHeldOut, 2000);
  EXPECT_GT(train.size(), 50000u);
  EXPECT_GT(held_out.size(), 5000u);
  for (const std::string& line : held_out) EXPECT_FALSE(train.contains(line)) << line;
}

TEST(Corpus, MixesByWeight) {
  const CorpusTask& capital = corpus_task("capital");
  const CorpusTask& brackets = corpus_task("brackets");
  const auto bracket_documents = [&](double capital_weight, double bracket_weight) {
    const Corpus corpus({.tasks = {{&capital, capital_weight}, {&brackets, bracket_weight}}});
    int count = 0;
    for (std::uint64_t i = 0; i < 1000; ++i)
      count += corpus.document(i).find_first_of("([{") != std::string::npos ? 1 : 0;
    return count;
  };
  EXPECT_EQ(bracket_documents(1, 0), 0);
  EXPECT_EQ(bracket_documents(0, 1), 1000);
  EXPECT_GT(bracket_documents(9, 1), 100);
  EXPECT_LT(bracket_documents(9, 1), 350);
  EXPECT_ERROR(bracket_documents(0, 0), "add up to 0");
  EXPECT_ERROR(bracket_documents(-1, 2), "the weight -1 of task 'capital'");
  EXPECT_ERROR(bracket_documents(std::numeric_limits<double>::quiet_NaN(), 2), "the weight nan");
}

TEST(Corpus, IsReadBackAsItsDocuments) {
  const Corpus corpus({.seed = 8});
  const std::filesystem::path file = fresh_folder() / "corpus.txt";
  std::ofstream(file, std::ios::binary) << written(corpus, 50, 0);
  TextSource source(file);
  TextPiece piece;
  for (std::uint64_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(source.next(piece));
    EXPECT_EQ(piece.text, corpus.document(i));
  }
  EXPECT_FALSE(source.next(piece));
}

}  // namespace
}  // namespace filigree
