// filigree trace as a user writes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_model.h"
#include "filigree/features.h"
#include "json/json.h"
#include "support/random_transcoder.h"

namespace filigree::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Arguments = std::vector<std::string>;

class TraceCommandTest : public ::testing::Test {
 protected:
  TraceCommandTest() {
    write_transcoder(features_,
                     random_transcoder(load_model(model_.path())->config(),
                                       TranscoderKind::kCrossLayer, 12, false, 0.3f),
                     {});
  }

  Arguments trace(const Arguments& more) const {
    Arguments arguments = {"trace", model_.name(), "--features", features_, "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::string path(const char* name) const { return (scratch_.path() / name).string(); }

  const ModelFolder model_;
  const ScratchFolder scratch_;
  const std::string features_ = path("clt");
};

TEST_F(TraceCommandTest, EveryCommandRefusesADamagedTranscoder) {
  std::ofstream(path("text"), std::ios::binary) << "It was a dark and stormy night. It was dark.";
  const std::string features = path("clt"), model = model_.name();
  const std::vector<Arguments> commands = {
      {"trace", model, "--features", features, "--prompt", "It was a"},
      {"features", "show", model, features, "L0F3"},
      {"eval", model, "--features", features, "--text", path("text")},
      {"features", "index", model, features, "--text", path("text"), "--out", path("clt.index")},
      {"convert", features, "--out", path("copy")},
      {"run", model, "--prompt", "It was a", "--features", features, "--steer", "L0F3=1"}};
  const auto refused = [&](const std::string& file, std::size_t from_end) {
    std::string bytes = read_file(features + "/" + file);
    const std::string whole = bytes;
    bytes[bytes.size() - from_end] ^= 1;
    write_file(features + "/" + file, bytes);
    for (Arguments arguments : commands) {
      arguments.emplace_back("--quiet");
      const ProgramRun run = run_program(arguments);
      EXPECT_EQ(run.code, 1) << arguments[0] << " " << arguments[1] << ": " << run.out;
      EXPECT_THAT(run.err, HasSubstr(file + "' has the checksum")) << arguments[0];
    }
    write_file(features + "/" + file, whole);
  };
  refused("config.yaml", 4);
  refused("W_enc_0.safetensors", 10);
  refused("W_enc_1.safetensors", 10);
  for (const Arguments& arguments : commands) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
  }
}

TEST_F(TraceCommandTest, SaysWhatAPredictionComesFrom) {
  const ProgramRun run = run_program(
      trace({"--prompt", "The cat sat on the", "--target", " mat", "--set", "validate=5", "--out",
             path("heads.svg"), "--out", path("graph.json"), "--out", path("graph.npz")}));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("explained: ' mat'"), HasSubstr("replacement"),
                    HasSubstr("most influential nodes"), HasSubstr("heads carry 80 %"),
                    HasSubstr("modulated at 80 % by"), HasSubstr("rank correlation of influence")));
  for (const char* file : {"heads.svg", "graph.json", "graph-metadata.json", "graph.npz"})
    EXPECT_TRUE(std::filesystem::exists(scratch_.path() / file)) << file;
}

TEST_F(TraceCommandTest, EachPromptOfAFileGetsItsGraph) {
  write_file(path("prompts.txt"), "The cat sat on the\nA dog\n");
  const ProgramRun run = run_program(
      trace({"--prompts-file", path("prompts.txt"), "--out", path("graph.json"), "--json"}));
  EXPECT_EQ(run.code, 0) << run.err;
  const nlohmann::json prompts = nlohmann::json::parse(run.out)["prompts"];
  ASSERT_EQ(prompts.size(), 2u);
  EXPECT_EQ(prompts[1]["out"][0], path("graph-002.json"));
  const ProgramRun alone =
      run_program(trace({"--prompt", "A dog", "--out", path("alone.json"), "--json"}));
  EXPECT_EQ(prompts[1]["models"], nlohmann::json::parse(alone.out)["models"]);
  // But for the names of files, which are the slugs of graphs.
  nlohmann::json one = read_json(path("graph-002.json")), other = read_json(path("alone.json"));
  EXPECT_EQ(one["nodes"], other["nodes"]);
  EXPECT_EQ(one["links"], other["links"]);
  write_file(path("prompts.txt"), "A dog\n\n");
  EXPECT_THAT(run_program(trace({"--prompts-file", path("prompts.txt")})).err,
              HasSubstr("line 2 of '"));
}

TEST_F(TraceCommandTest, WrongUsageEndsWithTwo) {
  const auto error_of = [&](const Arguments& more) {
    const ProgramRun run = run_program(trace(more));
    EXPECT_EQ(run.code, 2) << run.err;
    return run.err;
  };
  EXPECT_THAT(error_of({}), HasSubstr("--prompt, --prompts-file and --task"));
  EXPECT_THAT(error_of({"--prompt", "a b", "--out", "x.txt"}), HasSubstr(".json"));
  EXPECT_THAT(error_of({"--prompt", "a b", "--twin", "x"}), HasSubstr("--features"));
  EXPECT_THAT(error_of({"--prompt", "a b", "--index", "i"}), HasSubstr("--out FILE.json"));
  EXPECT_THAT(error_of({"--prompt", "a b", "--index", "i", "j", "--out", "g.json"}),
              HasSubstr("one for the twin"));
  EXPECT_THAT(error_of({"--prompt", "a b", "--feature", "x"}), HasSubstr("L3F17@5"));
  EXPECT_THAT(error_of({"--task", "ioi", "--target", " a"}), HasSubstr("--target"));
}

}  // namespace
}  // namespace filigree::cli
