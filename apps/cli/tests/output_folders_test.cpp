// Every command that writes a folder keeps it to itself while it runs, and writes nothing through
// the links that it finds there. A new command that writes a folder fails the first test until it
// is in the table, and the second until it opens the folder as the others do.
#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "apps/cli/program/program.h"
#include "apps/cli/tests/run_program.h"
#include "apps/cli/training/training_test_support.h"
#include "base/output_folder.h"
#include "filigree/study_figures.h"
#include "support/files.h"
#include "support/temporary_folder.h"
#include "support/test_task.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

// By command and option, the rest of the command line without the folder.
using Writers = std::map<std::string, Arguments>;

class OutputFoldersTest : public TrainingCommandTest {
 protected:
  void SetUp() override {
    TrainingCommandTest::SetUp();
    expect_trained(sparsify("sparse", "4"));
    write_own_task(able_, path("task.jsonl"), 12);
    expect_success({"features", "train", path("dense"), shards_, "--out", path("features"),
                    "--layer-features", "8", "--tokens", "128", "--batch", "64", "--l0", "2",
                    "--set", "pool=128", "--quiet"});
  }

  Writers writers() const {
    const std::string text = path("shards.txt");
    return {{"pretrain --out", {shards_, "--steps", "2"}},
            {"sparsify --out", {path("dense"), shards_, "--steps", "2"}},
            {"gates --out", {"close", path("sparse"), "--data", shards_, "--edges", "0.1"}},
            {"convert --out", {path("dense")}},
            {"prepare --out", {text, "--vocab", "300"}},
            {"features train --out", {path("dense"), shards_, "--layer-features", "8"}},
            {"features index --export",
             {path("dense"), path("features"), "--text", text, "--out", path("index")}},
            {"compare --out", {path("dense"), path("sparse"), "--prompt", "the cat sat"}},
            {"demo --out", {path("dense"), path("sparse"), "--text", text, "--max-tokens", "200"}},
            {"circuit --out", {able_.name(), "--task", path("task.jsonl")}}};
  }

  // "features index --export" with its folder, as arguments.
  static Arguments command_line(const std::string& writer, const Arguments& rest,
                                const std::string& folder) {
    const std::size_t option = writer.find(" --");
    Arguments words;
    for (std::size_t begin = 0; begin < option;) {
      const std::size_t end = std::min(writer.find(' ', begin), option);
      words.push_back(writer.substr(begin, end - begin));
      begin = end + 1;
    }
    return words + rest + Arguments{writer.substr(option + 1), folder, "--quiet"};
  }

  const ModelFolder able_;
};

TEST_F(OutputFoldersTest, AllCommandsThatWriteAFolderAreInTheTable) {
  Program program;
  add_all_commands(program);
  std::set<std::string> found, table;
  for (const CLI::App* command : program.commands())
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames())
        if ((name == "out" || name == "export") && value_kind(*option).label == "DIR")
          found.insert(command_name(*command) + " --" + name);
  for (const auto& [writer, rest] : writers()) table.insert(writer);
  EXPECT_EQ(found, table);
}

TEST_F(OutputFoldersTest, AFolderInUseIsRefusedByEveryCommand) {
  for (const auto& [writer, rest] : writers()) {
    SCOPED_TRACE(writer);
    const TemporaryFolder folder;
    const OutputFolder held(folder.path());
    const ProgramRun run = run_program(command_line(writer, rest, folder.path().string()));
    EXPECT_EQ(run.code, 1) << run.err;
    EXPECT_THAT(run.err, HasSubstr("is in use by process "));
    EXPECT_EQ(folder.file_count(), 1u);  // the lock
  }
  const OutputFolder held(path("dense"));
  const ProgramRun run = run_program({"info", path("dense"), "--checksums", "write"});
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr("is in use by process "));
}

TEST_F(OutputFoldersTest, LinksToFilesAreReplacedAndLinksToFoldersRefused) {
  const TemporaryFolder out, elsewhere;
  write_file(elsewhere / "precious", "text");
  for (const char* name : {"model.safetensors", "checksums.json", "tokenizer.json"})
    fs::create_symlink(elsewhere / "precious", out / name);
  expect_success({"convert", path("dense"), "--out", out.path().string()});
  expect_success({"info", out.path().string(), "--checksums", "check"});
  EXPECT_EQ(contents_of(out / "model.safetensors"), weights("dense"));
  EXPECT_FALSE(fs::is_symlink(out / "model.safetensors"));

  const TemporaryFolder comparison;
  fs::create_directory_symlink(elsewhere.path(), comparison / "tables");
  expect_failure({"compare", path("dense"), path("sparse"), "--prompt", "the cat sat", "--out",
                  comparison.path().string(), "--quiet"},
                 "tables' is a symbolic link, and nothing is written through links");
  EXPECT_EQ(read_file(elsewhere / "precious"), "text");
  EXPECT_EQ(elsewhere.file_count(), 1u);
}

// The folder of the output itself may be a link: whoever named it meant what it leads to.
TEST_F(OutputFoldersTest, TheFolderThatIsNamedMayBeALink) {
  const TemporaryFolder real;
  fs::create_directory_symlink(real.path(), path("link"));
  expect_success({"convert", path("dense"), "--out", path("link")});
  EXPECT_EQ(contents_of(real / "model.safetensors"), weights("dense"));
  EXPECT_TRUE(fs::is_symlink(path("link")));
}

}  // namespace
}  // namespace filigree::cli
