// filigree prepare and filigree task corpus as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "apps/cli/tests/run_program.h"
#include "base/scratch_folder.h"
#include "filigree/data.h"
#include "filigree/tokenizer.h"

namespace filigree::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class DataCommandTest : public ::testing::Test {
 protected:
  static nlohmann::json json_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--json", "--quiet"});
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    return nlohmann::json::parse(run.out, nullptr, false);
  }

  static void expect_failure(const std::vector<std::string>& arguments, int code,
                             const std::string& part) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, code) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, AllOf(StartsWith("filigree"), HasSubstr(part)));
  }

  std::string path(const std::string& name) const { return (scratch_.path() / name).string(); }

  static std::string read(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }

  static std::map<std::string, std::string> files_in(const std::string& folder) {
    std::map<std::string, std::string> files;
    for (const auto& item : std::filesystem::directory_iterator(folder))
      files[item.path().filename().string()] = read(item.path());
    return files;
  }

  // A corpus of tasks to prepare.
  std::string corpus(const std::string& name, const std::string& documents,
                     const std::string& seed = "1") const {
    EXPECT_EQ(run_program(
                  {"task", "corpus", "--documents", documents, "--seed", seed, "--out", path(name)})
                  .code,
              0);
    return path(name);
  }

  const ScratchFolder scratch_;
};

TEST_F(DataCommandTest, CorpusWritesDocuments) {
  const nlohmann::json json =
      json_of({"task", "corpus", "--size", "100kB", "--out", path("a.txt")});
  const std::string text = read(path("a.txt"));
  EXPECT_EQ(json["bytes"], text.size());
  EXPECT_GE(text.size(), 100000u);
  EXPECT_LT(text.size(), 103000u);
  EXPECT_THAT(text, EndsWith("\n<|endoftext|>\n"));
  const ProgramRun again =
      run_program({"task", "corpus", "--documents", std::to_string(json["documents"].get<int>()),
                   "--out", "-", "--quiet", "--threads", "1"});
  EXPECT_TRUE(again.out == text);
  EXPECT_EQ(again.err, "");
  const ProgramRun other =
      run_program({"task", "corpus", "--size", "100kB", "--out", "-", "--split", "held-out"});
  EXPECT_FALSE(other.out == text);
}

TEST_F(DataCommandTest, CorpusTakesTasksAndWeights) {
  const ProgramRun run = run_program({"task", "corpus", "--documents", "20", "--mix",
                                      "brackets=0,capital", "--out", "-", "--quiet"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out.find_first_of("([{"), std::string::npos) << run.out;
  EXPECT_THAT(run.out, HasSubstr("capital"));
}

TEST_F(DataCommandTest, CorpusListsItsTasks) {
  const nlohmann::json json = json_of({"task", "corpus"});
  ASSERT_EQ(json["tasks"].size(), 11u);
  for (const auto& task : json["tasks"]) {
    const auto& example = task["example"];
    EXPECT_THAT(
        example["text"].get<std::string>(),
        StartsWith(example["prompt"].get<std::string>() + example["answer"].get<std::string>()));
  }
  EXPECT_THAT(run_program({"task", "corpus"}).out,
              HasSubstr("capital: the capital of a country\n"));
}

TEST_F(DataCommandTest, CorpusRefusesWrongUsage) {
  expect_failure({"task", "corpus", "--size", "1MB"}, 2, "--out FILE is required");
  expect_failure({"task", "corpus", "--out", "-"}, 2, "either --size or --documents");
  expect_failure({"task", "corpus", "--out", "-", "--size", "1MB", "--documents", "3"}, 2,
                 "either --size");
  for (const char* size : {"big", "10XB", "-3MB", "0", "nan", "1e99GB", ""})
    expect_failure({"task", "corpus", "--out", "-", "--size=" + std::string(size)}, 2,
                   *size == 0 ? "--size" : "is not a size");
  expect_failure({"task", "corpus", "--out", "-", "--size", "1MB", "--json"}, 2, "--json");
  expect_failure({"task", "corpus", "--out", "-", "--size", "1MB", "--mix", "captial"}, 2,
                 "there is no task 'captial'; nearest: capital");
  expect_failure({"task", "corpus", "--out", "-", "--size", "1MB", "--mix", "copy=x"}, 2,
                 "the weight in");
  expect_failure({"task", "corpus", "--out", "-", "--size", "1MB", "--mix", "copy,copy"}, 2,
                 "given twice");
  expect_failure({"task", "corpus", "--out", "-", "--size", "1MB", "--mix", "copy=0"}, 2,
                 "add up to 0");
  expect_failure({"task", "corpus", "--out", "-", "--size", "1MB", "--split", "test"}, 2,
                 "neither train nor held-out");
  expect_failure({"task", "corpus", "--out", "/nonexistent/file", "--size", "1MB"}, 1,
                 "/nonexistent/file");
}

TEST_F(DataCommandTest, PrepareMakesShardsAndATokenizer) {
  const std::string text = corpus("a.txt", "3000");
  const nlohmann::json json =
      json_of({"prepare", text, "--vocab", "600", "--set", "held-out-share=0.1", "--set",
               "shard-tokens=20000", "--out", path("shards")});
  EXPECT_EQ(json["vocabulary"], 600);
  const TokenShards shards = TokenShards::open(path("shards"));
  EXPECT_EQ(json["splits"]["train"]["tokens"], shards.split("train").tokens());
  EXPECT_EQ(json["splits"]["train"]["shards"], shards.split("train").entry().shards.size());
  EXPECT_GT(shards.split("train").entry().shards.size(), 3u);
  EXPECT_EQ(shards.split("train").entry().documents + shards.split("held-out").entry().documents,
            3000u);
  EXPECT_GT(shards.split("held-out").entry().documents, 200u);
  EXPECT_EQ(shards.index().tokenizer,
            tokenizer_fingerprint(Tokenizer::from_folder(path("shards"))));
}

TEST_F(DataCommandTest, PrepareWritesTheSameForEveryThreadCount) {
  const std::string text = corpus("a.txt", "2000");
  for (const char* threads : {"1", "2", "3"})
    EXPECT_EQ(run_program({"prepare", text, "--vocab", "400", "--out", path(threads), "--threads",
                           threads, "--quiet"})
                  .code,
              0);
  EXPECT_TRUE(files_in(path("1")) == files_in(path("2")));
  EXPECT_TRUE(files_in(path("1")) == files_in(path("3")));
}

TEST_F(DataCommandTest, PrepareTakesATokenizerAndValidationTexts) {
  const std::string train = corpus("a.txt", "300");
  const std::string val = corpus("b.txt", "50", "2");
  EXPECT_EQ(
      run_program({"prepare", train, "--vocab", "400", "--out", path("first"), "--quiet"}).code, 0);
  const ProgramRun run =
      run_shell("\"$FILIGREE\" prepare - --tokenizer '" + path("first") + "' --held-out-text '" +
                val + "' --out '" + path("second") + "' < '" + train + "'");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("train"), HasSubstr("held-out"), HasSubstr("MB/s")));
  const TokenShards shards = TokenShards::open(path("second"));
  EXPECT_EQ(shards.split("train").entry().documents, 300u);
  EXPECT_EQ(shards.split("held-out").entry().documents, 50u);
}

TEST_F(DataCommandTest, PrepareDoesNotReplaceUnasked) {
  const std::string text = corpus("a.txt", "300");
  const std::vector<std::string> arguments = {"prepare", text,           "--vocab", "300",
                                              "--out",   path("shards"), "--quiet"};
  EXPECT_EQ(run_program(arguments).code, 0);
  expect_failure(arguments, 1, "is there already; choose another folder");
  std::vector<std::string> forced = arguments;
  forced.emplace_back("--force");
  EXPECT_EQ(run_program(forced).code, 0);
}

TEST_F(DataCommandTest, VerifyOfShardsCoversTheirTokenizer) {
  const std::string text = corpus("a.txt", "300");
  EXPECT_EQ(
      run_program({"prepare", text, "--vocab", "300", "--out", path("shards"), "--quiet"}).code, 0);
  EXPECT_THAT(run_program({"info", path("shards"), "--checksums", "check"}).out,
              HasSubstr(": whole, 5 files"));
  std::ofstream(path("shards/merges.txt"), std::ios::app) << "a b\n";
  const ProgramRun damaged = run_program({"info", path("shards"), "--checksums", "check"});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.out, AllOf(HasSubstr(": damaged"), HasSubstr("merges.txt' has ")));
  expect_failure({"info", path("shards"), "--checksums", "write"}, 1,
                 "have their checksums in index.json");
}

TEST_F(DataCommandTest, PrepareRefusesWrongUsage) {
  const std::string text = corpus("a.txt", "30");
  expect_failure({"prepare", text, "--vocab", "300"}, 2, "--out is required");
  expect_failure({"prepare", "--vocab", "300", "--out", path("s")}, 2, "TEXT is required");
  expect_failure({"prepare", text, "--out", path("s")}, 2, "either --tokenizer DIR or --vocab N");
  expect_failure({"prepare", text, "--out", path("s"), "--vocab", "300", "--held-out-text", text,
                  "--set", "held-out-share=0.1"},
                 2, "held-out-share or --held-out-text, not both");
  expect_failure({"prepare", path("no.txt"), "--vocab", "300", "--out", path("s")}, 1, "no.txt");
  expect_failure({"prepare", text, "--vocab", "10", "--out", path("s")}, 2, "257");
  EXPECT_FALSE(std::filesystem::exists(path("s")));
}

TEST_F(DataCommandTest, PrepareNamesBrokenTexts) {
  std::ofstream(path("bad.txt"), std::ios::binary) << "fine\n<|endoftext|>\n\xFF";
  expect_failure({"prepare", path("bad.txt"), "--vocab", "300", "--out", path("s"), "--quiet"}, 1,
                 "bad.txt': invalid UTF-8 at byte 19");
  EXPECT_EQ(run_program({"prepare", path("bad.txt"), "--vocab", "300", "--replace-invalid", "--out",
                         path("s"), "--quiet"})
                .code,
            0);
  std::ofstream(path("bad.xz"), std::ios::binary) << "\xFD"
                                                  << "7zXZ" << '\0' << "not really";
  expect_failure({"prepare", path("bad.xz"), "--vocab", "300", "--out", path("t"), "--quiet"}, 1,
                 "bad.xz");
}

}  // namespace
}  // namespace filigree::cli
