// run and trace with many prompts: tables whose rows are those of single runs, in every kind of
// file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_model.h"
#include "base/scratch_folder.h"
#include "filigree/model.h"
#include "io/npz_file.h"
#include "io/safetensors.h"
#include "json/json.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

constexpr const char* kTap = "blocks.1.hook_resid_post";

class RunPrompts : public testing::Test {
 protected:
  RunPrompts() {
    // Lengths that repeat side by side, return later, and one token alone.
    const char* prompts[] = {"one two three", "three two one", "a", "one two three one two",
                             "two one two"};
    std::ofstream lines(path("prompts.txt"));
    for (const char* prompt : prompts) lines << prompt << "\n";
    prompts_.assign(std::begin(prompts), std::end(prompts));
  }

  std::string path(const std::string& name) const { return (scratch_.path() / name).string(); }

  nlohmann::json json_of(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--json", "--quiet"});
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out, nullptr, false);
  }

  // What a run of one prompt writes of a tap.
  std::vector<float> alone(const std::string& prompt, const std::string& array,
                           const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {
        "run",   model_.name(), "--prompt", prompt,          "--tap",  kTap,
        "--tap", "logits",      "--out",    path("one.npz"), "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(run_program(arguments).code, 0);
    const NpzFile file = NpzFile::open(path("one.npz"));
    return values_of(file.at(array));
  }

  static std::vector<float> values_of(const TensorView& view) {
    std::vector<float> values(static_cast<std::size_t>(view.element_count()));
    read_f32(view, values);
    return values;
  }

  void expect_rows(const std::vector<TensorView>& tables, std::size_t first, std::size_t count,
                   const std::vector<std::string>& changes = {}) const {
    const auto find = [&](const std::string& name) -> const TensorView& {
      for (const TensorView& table : tables)
        if (table.name == name) return table;
      throw std::runtime_error("no " + name);
    };
    std::vector<std::string> arrays = {std::string("plain.") + kTap, "plain.logits"};
    if (!changes.empty()) arrays.push_back(std::string("changed.") + kTap);
    for (const std::string& array : arrays) {
      std::vector<float> wanted;
      for (std::size_t p = first; p < first + count; ++p) {
        const std::vector<float> own = alone(prompts_[p], array, changes);
        wanted.insert(wanted.end(), own.begin(), own.end());
      }
      const std::vector<float> found = values_of(find(array));
      ASSERT_EQ(found.size(), wanted.size()) << array;
      for (std::size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], wanted[i], 1e-5) << array << " " << i;
    }
    std::vector<std::int32_t> prompt(static_cast<std::size_t>(find("prompt").element_count()));
    read_i32(find("prompt"), prompt);
    EXPECT_EQ(prompt.front(), static_cast<std::int32_t>(first));
    EXPECT_EQ(prompt.back(), static_cast<std::int32_t>(first + count - 1));
    std::vector<std::int32_t> position(prompt.size());
    read_i32(find("position"), position);
    for (std::size_t i = 0; i < prompt.size(); ++i)
      EXPECT_EQ(position[i], i > 0 && prompt[i] == prompt[i - 1] ? position[i - 1] + 1 : 0);
  }

  ScratchFolder scratch_;
  ModelFolder model_;
  std::vector<std::string> prompts_;
};

TEST_F(RunPrompts, RowsAreThoseOfSingleRuns) {
  for (const char* ending : {".npz", ".safetensors"}) {
    const std::string out = path("acts") + ending;
    const nlohmann::json json =
        json_of({"run", model_.name(), "--prompts-file", path("prompts.txt"), "--tap", kTap,
                 "--tap", "logits", "--out", out});
    EXPECT_EQ(json["prompts"].size(), prompts_.size());
    expect_rows(ending == std::string(".npz") ? NpzFile::open(out).tensors()
                                              : SafetensorsFile::open(out).tensors(),
                0, prompts_.size());
  }
}

TEST_F(RunPrompts, ChangedRunsStandBesideThem) {
  const std::vector<std::string> changes = {"--ablate", "L0H1"};
  const nlohmann::json json =
      json_of({"run", model_.name(), "--prompts-file", path("prompts.txt"), "--tap", kTap, "--tap",
               "logits", "--out", path("acts.npz"), "--ablate", "L0H1"});
  EXPECT_GT(json["prompts"][0]["divergence"].get<double>(), 0.0);
  expect_rows(NpzFile::open(path("acts.npz")).tensors(), 0, prompts_.size(), changes);
}

// Where angles go by the length of a run, a short prompt is not filled up to a long one's length.
TEST_F(RunPrompts, PositionsThatGoByTheLengthStayThoseOfThePrompt) {
  const std::string model = golden("qwen2-dynamic-tiny").string();
  const auto context = load_model(model)->config().context;
  std::string ids = "1";
  for (std::int64_t i = 1; i < context; ++i) ids += ", " + std::to_string(i % 40);
  // The first prompt of a file is run alone.
  std::ofstream(path("prompts.jsonl"))
      << "{\"ids\": [7]}\n{\"ids\": [" << ids << "]}\n{\"ids\": [3, 1, 4, 1]}\n";
  json_of({"run", model, "--prompts-file", path("prompts.jsonl"), "--tap", "logits", "--out",
           path("acts.npz")});
  json_of({"run", model, "--ids", "3,1,4,1", "--tap", "logits", "--out", path("one.npz")});
  const NpzFile many = NpzFile::open(path("acts.npz")), one = NpzFile::open(path("one.npz"));
  const std::vector<float> found = values_of(many.at("plain.logits")),
                           wanted = values_of(one.at("plain.logits"));
  ASSERT_GT(found.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(found[found.size() - wanted.size() + i], wanted[i], 1e-5) << i;
}

TEST_F(RunPrompts, AFolderHasThemInShards) {
  json_of({"run", model_.name(), "--prompts-file", path("prompts.txt"), "--tap", kTap, "--tap",
           "logits", "--out", path("acts")});
  const nlohmann::json index = read_json(path("acts/activations.json"));
  std::size_t prompts = 0;
  for (const nlohmann::json& shard : index["shards"]) {
    const SafetensorsFile file =
        SafetensorsFile::open(path("acts/" + shard["file"].get<std::string>()));
    expect_rows(file.tensors(), prompts, shard["prompts"]);
    prompts += shard["prompts"].get<std::size_t>();
  }
  EXPECT_EQ(prompts, prompts_.size());
  EXPECT_EQ(index["prompts"], prompts_.size());
  const ProgramRun again = run_program({"run", model_.name(), "--prompts-file", path("prompts.txt"),
                                        "--tap", kTap, "--out", path("acts")});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("has activations already"));
}

TEST_F(RunPrompts, JsonLinesHoldTextsAndIds) {
  std::ofstream(path("prompts.jsonl")) << "{\"prompt\": \"one two\"}\n{\"ids\": [5, 7]}\n";
  const nlohmann::json json =
      json_of({"run", model_.name(), "--prompts-file", path("prompts.jsonl")});
  ASSERT_EQ(json["prompts"].size(), 2u);
  EXPECT_EQ(json["prompts"][1]["ids"], nlohmann::json({5, 7}));
  EXPECT_EQ(json["prompts"][0]["next"].size(), 3u);
  for (const char* line : {"{}", "{\"prompt\": \"a\", \"ids\": [1]}", "{\"ids\": [1.5]}",
                           "{\"text\": \"a\"}", "[1]", "{\"ids\": [-1]}"}) {
    std::ofstream(path("bad.jsonl")) << line << "\n";
    const ProgramRun run = run_program({"run", model_.name(), "--prompts-file", path("bad.jsonl")});
    EXPECT_NE(run.code, 0) << line;
    EXPECT_THAT(run.err, HasSubstr("line 1 of '")) << line;
  }
}

TEST_F(RunPrompts, WhatHasNoRowsIsRefused) {
  const auto failure = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"run", model_.name(), "--prompts-file",
                                          path("prompts.txt")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, 2) << run.err;
    return run.err;
  };
  EXPECT_THAT(failure({"--tap", "blocks.0.attn.hook_pattern", "--out", path("a.npz")}),
              HasSubstr("attention --out"));
  EXPECT_THAT(failure({"--tap", kTap}), HasSubstr("--out"));
  EXPECT_THAT(failure({"--out", path("a.npz")}), HasSubstr("--tap"));
  EXPECT_THAT(failure({"--tap", kTap, "--out", path("a.csv")}), HasSubstr(".safetensors"));
  EXPECT_FALSE(fs::exists(path("a.npz")));
}

}  // namespace
}  // namespace filigree::cli
