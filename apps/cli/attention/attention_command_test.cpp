// filigree attention on small models: files, tables, JSON, and what it refuses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <set>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_model.h"
#include "filigree/maps.h"
#include "filigree/statistics.h"
#include "filigree/tokenizer.h"
#include "io/safetensors.h"
#include "support/npz_reader.h"

namespace filigree::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Arguments = std::vector<std::string>;

class AttentionCommandTest : public ::testing::Test {
 protected:
  static ProgramRun succeed(Arguments arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), "attention");
    arguments.emplace_back("--quiet");
    ProgramRun run = run_program(arguments, input);
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    return run;
  }

  static nlohmann::json json_of(Arguments arguments) {
    arguments.emplace_back("--json");
    const ProgramRun run = succeed(std::move(arguments));
    nlohmann::json json = nlohmann::json::parse(run.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << run.out;
    return json;
  }

  static void expect_failure(Arguments arguments, const ::testing::Matcher<std::string>& message,
                             int code = 1) {
    arguments.insert(arguments.begin(), "attention");
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, code) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, AllOf(StartsWith("filigree"), message));
  }

  std::string path(const std::string& name) const { return (scratch_.path() / name).string(); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

  // The model with gates, under another name.
  std::string gated(const std::string& name, const GateConfig& gate) const {
    return model_.gated(path(name), gate);
  }

  Prompt encoded(const std::string& text) const {
    return {Tokenizer::from_folder(model_.path()).encode(text)};
  }

  // All maps of one kind, heads one after the other, as the library gives them.
  static std::vector<float> maps_of(const std::string& model, const Prompt& prompt,
                                    const std::string& heads, MapKind kind) {
    std::vector<float> all;
    const auto loaded = load_model(model);
    capture_maps(*loaded, std::vector<Prompt>{prompt},
                 CaptureOptions::of(parse_heads(heads, 2, 4), kind),
                 [&](std::span<const HeadMap> maps) {
                   for (const HeadMap& map : maps) {
                     std::vector<float> cells(map.weights.size());
                     fill_map(map, kind, cells);
                     all.insert(all.end(), cells.begin(), cells.end());
                   }
                 });
    return all;
  }

  const ModelFolder model_;
  const std::string name_ = model_.name();
  const ScratchFolder scratch_;
};

const std::string kText = "The capital of France is Paris, and the capital of Italy is Rome.";

TEST_F(AttentionCommandTest, WritesTheMapsOfEveryKind) {
  const std::string sparse = gated("sparse", {{0.1f}});
  const Prompt prompt = encoded(kText);
  const auto T = static_cast<std::int64_t>(prompt.ids.size());
  for (const char* what : {"weights", "scores", "gate", "value-weighted"}) {
    SCOPED_TRACE(what);
    const std::vector<float> expected =
        maps_of(sparse, prompt, "L0H1,L1", *find_name<MapKind>(what));
    succeed({sparse, "--prompt", kText, "--heads", "L1H*,L0H1", "--what", what, "--out",
             path("maps.npz")});
    const auto files = read_zip(path("maps.npz"));
    const NpyArray maps = parse_npy(files.at(fmt::format("model0.prompt0.{}.npy", what)));
    EXPECT_EQ(maps.shape, (std::vector<std::int64_t>{5, T, T}));
    EXPECT_EQ(maps.values<float>(), expected);
    EXPECT_EQ(parse_npy(files.at("heads.npy")).values<std::int32_t>(),
              (std::vector<std::int32_t>{0, 1, 1, 0, 1, 1, 1, 2, 1, 3}));
    EXPECT_EQ(parse_npy(files.at("model0.prompt0.ids.npy")).values<std::int32_t>(), prompt.ids);

    succeed({sparse, "--prompt", kText, "--heads", "L1H*,L0H1", "--what", what, "--out",
             path("maps.safetensors")});
    const SafetensorsFile file = SafetensorsFile::open(path("maps.safetensors"));
    std::vector<float> values(expected.size());
    read_f32(file.at(fmt::format("model0.prompt0.{}", what)), values);
    EXPECT_EQ(values, expected);

    succeed({sparse, "--prompt", kText, "--heads", "L1H*,L0H1", "--what", what, "--out",
             path("maps.json")});
    const auto json = nlohmann::json::parse(std::ifstream(path("maps.json")));
    EXPECT_EQ(json["kind"], what);
    EXPECT_EQ(json["series"][0]["tokens"].size(), prompt.ids.size());
    EXPECT_EQ(json["series"][0]["maps"]["L1H0"][3][2].get<float>(),
              expected[static_cast<std::size_t>((1 * T + 3) * T + 2)]);
  }
}

TEST_F(AttentionCommandTest, TwoModelsAndSeveralPromptsAreSeries) {
  const std::string sparse = gated("sparse", {{0.1f}});
  const std::string file = write("prompts.txt", kText + "\nOne two three.\r\n");
  const nlohmann::json json = json_of(
      {name_, sparse, "--prompts-file", file, "--heads", "L0H2", "--out", path("maps.npz")});
  EXPECT_EQ(json["prompts"]["count"], 2);
  EXPECT_EQ(json["files"], (nlohmann::json{path("maps.npz")}));
  const auto files = read_zip(path("maps.npz"));
  for (const std::string& model : {name_, sparse})
    for (const int p : {0, 1}) {
      const Prompt prompt = encoded(p == 0 ? kText : "One two three.");
      EXPECT_EQ(parse_npy(files.at(fmt::format("model{}.prompt{}.weights.npy",
                                               model == name_ ? 0 : 1, p)))
                    .values<float>(),
                maps_of(model, prompt, "L0H2", MapKind::kWeights));
    }
  const auto meta = nlohmann::json::parse(files.at("meta.json"));
  EXPECT_EQ(meta["models"], (nlohmann::json{name_, sparse}));
  EXPECT_EQ(succeed({name_, "--prompts-file", "-", "--show", "roles"}, kText).code, 0);
}

TEST_F(AttentionCommandTest, AveragesPromptsOfOneLength) {
  const std::string a = "one two three four five six";
  succeed({name_, "--prompt", a, "--prompt", kText, "--context", "4", "--set", "average=true",
           "--out", path("mean.npz")});
  const auto first_four = [&](const std::string& text) {
    Prompt prompt = encoded(text);
    prompt.ids.resize(4);
    return maps_of(name_, prompt, "*", MapKind::kWeights);
  };
  const std::vector<float> mean =
      parse_npy(read_zip(path("mean.npz")).at("model0.mean.weights.npy")).values<float>();
  const std::vector<float> x = first_four(a), y = first_four(kText);
  ASSERT_EQ(mean.size(), x.size());
  for (std::size_t c = 0; c < mean.size(); ++c) EXPECT_NEAR(mean[c], 0.5 * (x[c] + y[c]), 1e-5);
  expect_failure(
      {name_, "--prompt", a, "--prompt", kText, "--set", "average=true", "--out", path("no.npz")},
      HasSubstr("only over prompts of one length"));
  expect_failure({name_, "--prompt", a, "--set", "average=true"},
                 HasSubstr("--set average=true goes with --out"), 2);
  EXPECT_FALSE(std::filesystem::exists(path("no.npz")));
}

TEST_F(AttentionCommandTest, RolesStatisticsAndPairsOfOneModel) {
  const nlohmann::json json =
      json_of({name_, "--prompt", kText, "--show", "roles,statistics,pairs", "--heads", "L0,L1H2"});
  EXPECT_EQ(json["heads"].size(), 5u);
  const nlohmann::json& model = json["models"][0];
  ASSERT_EQ(model["roles"].size(), 5u);
  EXPECT_EQ(model["roles"][4]["name"], "L1H2");
  EXPECT_EQ(model["roles"][4]["layer"], 1);
  EXPECT_EQ(model["roles"][4]["head"], 2);
  EXPECT_FALSE(model["roles"][0]["role"].get<std::string>().empty());
  EXPECT_TRUE(model["roles"][0]["scores"].contains("induction"));
  const Prompt prompt = encoded(kText);
  const std::vector<float> map = maps_of(name_, prompt, "L1H2", MapKind::kWeights);
  const StatisticValues values =
      map_statistics(map, {}, static_cast<std::int64_t>(prompt.ids.size())).all;
  EXPECT_EQ(model["statistics"]["heads"][4]["peak"], values[0]);
  EXPECT_NEAR(model["statistics"]["model"]["row_mass"].get<double>(), 1.0, 1e-5);
  EXPECT_EQ(model["pairs"]["pearson"].size(), 5u);
  EXPECT_EQ(model["pairs"]["pearson"][3][3], 1.0);
  EXPECT_EQ(model["pairs"]["order"].size(), 5u);
  EXPECT_EQ(model["pairs"]["order"].get<std::set<std::string>>(),
            json["heads"].get<std::set<std::string>>());
  EXPECT_TRUE(json["comparison"].is_null());

  const ProgramRun text = succeed(
      {name_, "--prompt", kText, "--show", "roles,statistics,pairs,heads", "--heads", "L0,L1H2"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("head  role"), HasSubstr("L1H2"), HasSubstr("row mass"),
                              HasSubstr("Pearson"), HasSubstr("10 pairs over")));
  // Without a wish: roles and statistics.
  EXPECT_THAT(succeed({name_, "--prompt", kText}).out,
              AllOf(HasSubstr("evidence"), HasSubstr("entropy"), Not(HasSubstr("Pearson"))));
}

TEST_F(AttentionCommandTest, ComparesTwoModels) {
  const std::string sparse = gated("sparse", {{0.1f}});
  const std::string file =
      write("prompts.txt", kText + "\nOne two three.\nSome other text that is longer.\n");
  const Arguments command = {name_,   sparse,           "--prompts-file",
                             file,    "--show",         "statistics,roles",
                             "--out", path("stats.csv")};
  const nlohmann::json json = json_of(command);
  const nlohmann::json& edges = json["comparison"]["model"]["active_edges"];
  EXPECT_EQ(edges["first"], 1.0);
  EXPECT_LT(edges["second"].get<double>(), 1.0);
  EXPECT_EQ(edges["second"], json["models"][1]["statistics"]["model"]["active_edges"]);
  EXPECT_LE(edges["low"].get<double>(), edges["change"].get<double>());
  EXPECT_EQ(edges["p"], 0.25);  // all three prompts agree: 2 of 8 sign patterns
  EXPECT_EQ(json["comparison"]["heads"].size(), 8u);
  std::ifstream csv(path("stats.csv"));
  const std::string lines{std::istreambuf_iterator<char>(csv), std::istreambuf_iterator<char>()};
  EXPECT_THAT(
      lines,
      AllOf(StartsWith(
                "scope,layer,head,over,statistic,first,second,change,low,high,p,reduction,prompts\n"
                "model,,,all,peak,"),
            HasSubstr("\nhead,1,3,all,empty_rows,")));
  const ProgramRun text = succeed(command);
  EXPECT_THAT(text.out, AllOf(HasSubstr("95 % interval"), HasSubstr("keys per query"),
                              HasSubstr("* p < 0.05"), HasSubstr("sparse: ")));
  // The same seed gives the same bits.
  EXPECT_EQ(json_of(command), json);
}

TEST_F(AttentionCommandTest, OfOneModelTheCsvHasALineForEachGroupAndChoice) {
  succeed({name_, "--prompt", kText, "--out", path("stats.csv")});
  std::ifstream csv(path("stats.csv"));
  const std::string lines{std::istreambuf_iterator<char>(csv), std::istreambuf_iterator<char>()};
  EXPECT_THAT(lines, StartsWith("model,scope,layer,head,over,peak,"));
  // Model and layers over four choices of heads and rows, heads over two.
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1 + 4 * (1 + 2) + 2 * 8);
}

TEST_F(AttentionCommandTest, PromptsOfEverySortAreRead) {
  // One token, special tokens, other scripts, a character of several tokens.
  for (const std::string text : {"a", "<|endoftext|>Hello<|endoftext|>", "Привет, мир",
                                 "日本語の文", "مرحبا", "🙂", "tab\tand\nline"}) {
    SCOPED_TRACE(text);
    const nlohmann::json json = json_of(
        {name_, "--prompt", text, "--show", "roles,statistics,pairs", "--out", path("maps.json")});
    const Prompt prompt = encoded(text);
    EXPECT_EQ(json["prompts"]["list"][0]["ids"], prompt.ids);
    EXPECT_EQ(nlohmann::json::parse(std::ifstream(path("maps.json")))["series"][0]["length"],
              prompt.ids.size());
  }
  EXPECT_EQ(json_of({name_, "--prompt", "<|endoftext|>"})["prompts"]["list"][0]["ids"],
            (nlohmann::json{0}));
  const nlohmann::json one = json_of({name_, "--prompt", "a", "--show", "roles"});
  EXPECT_EQ(one["models"][0]["roles"][0]["role"].get<std::string>().find("sink"),
            std::string::npos);  // one token tells nothing
  // Text that looks like an option.
  EXPECT_EQ(json_of({name_, "--prompt=--stats"})["prompts"]["count"], 1);
}

TEST_F(AttentionCommandTest, RefusesPromptsThatDoNotFit) {
  expect_failure({name_, "--prompt", ""}, HasSubstr("the prompt is empty"));
  expect_failure({name_, "--prompt", "a", "--prompt", ""}, HasSubstr("prompt 2 is empty"));
  expect_failure({name_, "--prompts-file", write("empty.txt", "")}, HasSubstr("one prompt a line"));
  expect_failure({name_, "--prompts-file", write("hole.txt", "a\n\nb\n")},
                 HasSubstr("line 2 of '"));
  expect_failure({name_, "--prompts-file", path("missing.txt")}, HasSubstr("cannot read"));
  std::string text;
  for (int i = 0; i < 200; ++i) text += "word ";
  const std::size_t tokens = encoded(text).ids.size();
  expect_failure({name_, "--prompt", text},
                 HasSubstr(fmt::format("the prompt has {} tokens, more than the context of 64; "
                                       "shorten it, or take only its first 64 tokens",
                                       tokens)));
  EXPECT_EQ(json_of({name_, "--prompt", text, "--context", "10"})["prompts"]["tokens"], 10);
  expect_failure({name_, "--prompt", text, "--context", "65"}, HasSubstr("context of 64"));
  expect_failure({name_, "--prompt", "\xFF"}, HasSubstr("U+FFFD"));
  EXPECT_EQ(succeed({name_, "--prompt", "\xFF", "--replace-invalid"}).code, 0);
  expect_failure({name_}, HasSubstr("give prompts: --prompt TEXT"), 2);
  expect_failure({name_, "--prompt", "a", "--prompts-file", "b"}, HasSubstr("in one way"), 2);
  expect_failure({name_, "--prompt", "a", "--samples", "3"}, HasSubstr("--samples goes with"), 2);
}

TEST_F(AttentionCommandTest, RefusesModelsHeadsAndFilesThatDoNotFit) {
  expect_failure({name_, "--prompt", "a", "--heads", "L2H0"},
                 AllOf(HasSubstr("no 'L2H0'"), HasSubstr("2 layers, L0 to L1, of 4 heads")));
  expect_failure({name_, "--prompt", "a", "--heads", "first"}, HasSubstr("not a choice of heads"),
                 2);
  expect_failure({name_, "--prompt", "a", "--what", "values"},
                 HasSubstr("none of weights, scores, gate, value-weighted"), 2);
  expect_failure({name_, "--prompt", "a", "--out", path("a.txt")},
                 HasSubstr("must end in .npz, .safetensors or .json"), 2);
  expect_failure({name_, "The cat", "--prompt", "a"}, HasSubstr("--prompt TEXT"));
  expect_failure({name_, name_, name_, "--prompt", "a"}, HasSubstr("a third model"), 2);
  // Text in the place of a model, also where it is too long for the name of a file.
  for (const std::size_t length : {std::size_t{20}, std::size_t{5000}})
    expect_failure({name_, std::string(length, 'x'), "--prompt", "a"},
                   HasSubstr("prompts are given with --prompt TEXT"));
  expect_failure({"/nonexistent/model", "--prompt", "a"}, HasSubstr("no such folder"));

  // The same shape, another tokenizer.
  std::filesystem::copy(model_.path(), path("other"));
  ASSERT_EQ(run_program({"prepare", write("text.txt", kText + kText), "--vocab", "280", "--set",
                         "held-out-share=0", "--out", path("tokenizer"), "--quiet"})
                .code,
            0);
  std::filesystem::copy(
      path("tokenizer"), path("other"),
      std::filesystem::copy_options::overwrite_existing | std::filesystem::copy_options::recursive);
  expect_failure({name_, path("other"), "--prompt", "a"},
                 AllOf(HasSubstr("different tokenizers"), HasSubstr("with one tokenizer")));

  // Another shape: only heads that both have.
  std::filesystem::copy(model_.path(), path("larger"));
  ModelConfig config = parse_model_config({{"model_type", "gpt2"},
                                           {"n_layer", 3},
                                           {"n_head", 2},
                                           {"n_embd", 16},
                                           {"n_positions", 64},
                                           {"vocab_size", 8192}},
                                          "test");
  save_model(*make_model(config, 3), path("larger"));
  expect_failure({name_, path("larger"), "--prompt", "a"},
                 AllOf(HasSubstr("2 layers of 4 heads"), HasSubstr("3 of 2")));
  EXPECT_TRUE(json_of({name_, path("larger"), "--prompt", kText, "--heads", "L0H0-L0H1", "--show",
                       "statistics"})["comparison"]
                  .is_object());
}

TEST_F(AttentionCommandTest, HeadsThatAreAllZeroAreFine) {
  const std::string closed = gated("closed", {{-1000.0f}});
  const nlohmann::json json =
      json_of({closed, "--prompt", kText, "--show", "roles,statistics,pairs"});
  const nlohmann::json& model = json["models"][0];
  EXPECT_EQ(model["roles"][0]["role"], "empty");
  EXPECT_EQ(model["statistics"]["model"]["row_mass"], 0.0);
  EXPECT_EQ(model["statistics"]["model"]["entropy"], 0.0);
  EXPECT_EQ(model["statistics"]["model"]["empty_rows"], 1.0);
  EXPECT_EQ(model["statistics"]["model"]["active_edges"], 0.0);
  EXPECT_EQ(model["pairs"]["constant"].size(), 8u);
  EXPECT_EQ(model["pairs"]["spearman"][0][1], 0.0);
  EXPECT_THAT(succeed({name_, closed, "--prompt", kText}).out, HasSubstr("closed: empty 8"));
}

TEST_F(AttentionCommandTest, SamplesWindowsOfShards) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += fmt::format("{} Number {}.\n<|endoftext|>\n", kText, i);
  ASSERT_EQ(run_program({"prepare", write("text.txt", text), "--tokenizer", name_, "--set",
                         "held-out-share=0.5", "--out", path("shards"), "--quiet"})
                .code,
            0);
  const Arguments command = {name_,          "--data", path("shards"),  "--samples",  "5",
                             "--context",    "20",     "--show",        "statistics", "--set",
                             "average=true", "--out",  path("mean.npz")};
  const nlohmann::json json = json_of(command);
  EXPECT_EQ(json["prompts"]["count"], 5);
  EXPECT_EQ(json["prompts"]["tokens"], 100);
  EXPECT_EQ(json["prompts"]["list"][0]["tokens"].size(), 20u);
  EXPECT_EQ(parse_npy(read_zip(path("mean.npz")).at("model0.mean.weights.npy")).shape,
            (std::vector<std::int64_t>{8, 20, 20}));
  EXPECT_EQ(json_of(command), json);
  Arguments other = command;
  other.insert(other.end(), {"--seed", "5"});
  EXPECT_NE(json_of(other)["prompts"], json["prompts"]);
  expect_failure({name_, "--data", path("shards"), "--samples", "100000"},
                 AllOf(HasSubstr("100000 samples"), HasSubstr("split 'held-out'")));
  expect_failure({name_, "--data", path("shards"), "--context", "65"}, HasSubstr("context of 64"));
}

}  // namespace
}  // namespace filigree::cli
