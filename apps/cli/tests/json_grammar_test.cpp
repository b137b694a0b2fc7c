// Every command's JSON, on models small enough for a test, keeps to the rules.
#include "apps/cli/tests/json_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "apps/cli/program/program.h"
#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_model.h"
#include "apps/cli/tests/test_task.h"
#include "filigree/features.h"
#include "support/fake_hub.h"
#include "support/random_transcoder.h"

namespace filigree::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Arguments = std::vector<std::string>;

std::vector<std::string> broken(const char* json) {
  return broken_json_rules(nlohmann::json::parse(json));
}

TEST(JsonGrammar, FindsWhatIsSpelledOtherwise) {
  EXPECT_THAT(broken(R"({"a_b": 1, "heads": ["L3H7"], "rows": [{"a": 1}, {"a": null}]})"),
              IsEmpty());
  EXPECT_THAT(broken(R"({"a-b": 1})"), ElementsAre(HasSubstr("a-b: keys")));
  EXPECT_THAT(broken(R"({"x": [{"heldout": 1}]})"), ElementsAre(HasSubstr("x[0].heldout")));
  EXPECT_THAT(broken(R"({"split": "heldout"})"), ElementsAre(HasSubstr("held-out")));
  EXPECT_THAT(broken(R"({"head": "l3h7"})"), ElementsAre(HasSubstr("L3H7")));
  EXPECT_THAT(broken(R"({"heads": [{"layer": 3, "head": 7}]})"),
              ElementsAre(HasSubstr("heads[0]: a head without its name")));
  EXPECT_THAT(broken(R"({"heads": [{"name": "L3H7", "layer": 3, "head": 7}]})"), IsEmpty());
  EXPECT_THAT(broken(R"({"rows": [{"a": 1}, {"b": 1}]})"), ElementsAre(HasSubstr("rows[1]")));
  EXPECT_THAT(broken(R"({"level": 90})"), ElementsAre(HasSubstr("from 0 to 1")));
  EXPECT_THAT(broken(R"({"open_percent": 0.5})"), ElementsAre(HasSubstr("from 0 to 1")));
}

// A dense and a sparse model, shards of text for them, a run of each training command and a task.
class CommandJsonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto gated = load_model(dense_.path());
    gated->set_gate({{0.5f}});
    save_model(*gated, sparse_.path());
    write_own_task(dense_, task_, 4);
    std::ofstream(path("prose.txt"))
        << "It was a dark and stormy night; the rain fell in torrents.";
  }

  std::string path(const std::string& name) const { return (scratch_.path() / name).string(); }

  // Runs the command, which may end with "what was asked for cannot be had", and walks its JSON.
  void walk(Arguments arguments) {
    const std::string command =
        arguments[0] == "features" ? "features " + arguments[1] : arguments[0];
    arguments.insert(arguments.end(), {"--json", "--quiet"});
    const ProgramRun run = run_program(arguments);
    EXPECT_TRUE(run.code == 0 || run.code == kOutOfReach) << command << run.err;
    walk_output(command, run);
  }
  void walk_output(const std::string& command, const ProgramRun& run) {
    SCOPED_TRACE(command);
    seen_.insert(command);
    const nlohmann::json json = nlohmann::json::parse(run.out, nullptr, false);
    ASSERT_TRUE(json.is_object()) << run.out << run.err;
    EXPECT_EQ(json["command"], command);
    EXPECT_THAT(broken_json_rules(json), IsEmpty());
  }

  const ModelFolder dense_{1}, sparse_{1};
  const ScratchFolder scratch_;
  const std::string task_ = path("own-task.jsonl");
  std::set<std::string> seen_;
};

TEST_F(CommandJsonTest, EveryCommand) {
  const std::string dense = dense_.name(), sparse = sparse_.name();
  walk({"info", sparse});
  walk({"info", sparse, "--checksums", "check"});
  walk({"info", dense, "--show", "taps"});
  walk({"info", "--show", "devices"});
  walk({"info", dense, "--prompt", "Hello world"});
  walk({"info", dense, "--prompt", "Hello world", "--show", "ids"});
  walk({"info", dense, "--ids", "40,516"});
  walk({"task", "corpus"});
  walk({"task", "corpus", "--documents", "200", "--split", "held-out", "--out", path("tasks.txt")});
  walk({"prepare", path("tasks.txt"), "--tokenizer", dense, "--set", "held-out-share=0.2", "--out",
        path("shards")});
  walk({"pretrain", path("shards"), "--out", path("run"), "--layers", "2", "--layer-heads", "2",
        "--width", "16", "--context", "16", "--steps", "2", "--batch", "2"});
  walk({"pretrain", path("shards"), "--out", path("dry"), "--dry-run"});
  walk({"sparsify", path("run"), path("shards"), "--out", path("sparse-run"), "--steps", "2",
        "--batch", "2", "--control"});
  walk({"eval", dense, sparse, "--data", path("shards"), "--show", "layers,heads", "--max-tokens",
        "100"});
  walk({"eval", dense, "--text", path("prose.txt")});
  walk({"gates", "close", sparse, "--edges", "0.9", "--data", path("shards"), "--max-tokens", "100",
        "--out", path("closer")});
  walk({"features", "train", path("run"), path("shards"), "--out", path("transcoder"), "--tokens",
        "64", "--batch", "32", "--layer-features", "24", "--l0", "4"});
  walk({"features", "train", path("run"), path("shards"), "--out", path("dry"), "--dry-run"});
  walk({"eval", path("run"), "--features", path("transcoder"), "--data", path("shards"), "--show",
        "layers", "--max-tokens", "100"});
  walk({"generate", dense, "--prompt", "Once upon", "--max-tokens", "3", "--count", "2"});
  walk({"convert", dense, "--out", path("converted"), "--dtype", "bf16"});
  walk({"bench", "--layers", "1", "--layer-heads", "2", "--width", "16", "--vocab", "50", "--set",
        "runs=1", "--set", "ceiling-size=16", "--cases", "forward-maps-b1-t16,load-warm"});
  walk({"attention", dense, sparse, "--prompt", "a b a b", "--show",
        "roles,statistics,heads,pairs"});
  walk({"task", "list"});
  walk({"task", "show", dense, task_});
  walk({"task", "check", dense, task_});
  walk({"circuit", dense, sparse, "--task", task_});
  walk({"circuit", dense, "--task", task_, "--parts", "edges", "--method", "attribution"});
  walk({"patch", dense, "--task", task_, "--site", "z,resid"});
  walk({"run", sparse, "--prompt", "one two one", "--tap", "*hook_z", "--ablate", "L0H1",
        "--gradient-of", " one"});
  write_random_transcoder(path("clt"), {TranscoderKind::kCrossLayer, 2, 32, 40, false});
  walk({"run", dense, "--prompt", "one two one", "--steer", "L0F3=2", "--features", path("clt")});
  walk({"generate", dense, "--prompt", "Once upon", "--max-tokens", "3", "--steer", "L1F3=+8",
        "--features", path("clt")});
  walk({"features", "index", dense, path("clt"), "--text", path("prose.txt"), "--out",
        path("clt.index"), "--export", path("pages")});
  walk({"features", "show", dense, path("clt"), "L1F3", "--index", path("clt.index"), "--out",
        path("feature.html")});
  walk({"convert", path("clt"), "--out", path("small"), "--dtype", "i8"});
  walk({"lens", dense, "--prompt", "one two one", "--show", "sublayers"});
  walk({"lens", dense, "--task", task_});
  walk({"head", dense, "--heads", "L0H1,L1H2", "--show", "matrices"});
  walk({"head", sparse, "L1H2", "--twin", dense, "--task", task_});
  const auto traced = load_model(dense_.path());
  write_transcoder(
      path("clt"),
      random_transcoder(traced->config(), TranscoderKind::kCrossLayer, 12, false, 0.3f), {});
  walk({"trace", sparse, "--features", path("clt"), path("clt"), "--twin", dense, "--prompt",
        "one two one two", "--set", "validate=4", "--out", path("g.json")});
  walk({"trace", dense, "--features", path("clt"), "--task", task_, "--prompts", "2"});
  walk({"info", path("sparse-run"), "--out", path("curves.svg")});
  walk({"compare", dense, sparse, "--prompt", "a b a b", "--task", task_, "--out",
        path("comparison"), "--format", "svg"});
  walk({"demo", dense, sparse, "--text", path("prose.txt"), "--max-tokens", "100", "--task", task_,
        "--format", "svg", "--out", path("demo")});
  FakeHub hub("org/tiny");
  hub.set_file("config.json", "{}");
  hub.set_file("model.safetensors", "x", true);
  walk_output("fetch", run_shell("HF_HUB_CACHE='" + path("cache") + "' HF_ENDPOINT=" +
                                 hub.endpoint() + " \"$FILIGREE\" fetch org/tiny --json --quiet"));
  walk_output("serve", run_and_interrupt({"serve", dense, "--port", "0", "--json", "--quiet"}));

  Program program;
  add_all_commands(program);
  for (const CLI::App* command : program.commands())
    EXPECT_TRUE(seen_.contains(command_name(*command))) << command_name(*command) << " was not run";
}

}  // namespace
}  // namespace filigree::cli
