// Each command on a small model: what it prints, as text and as JSON, and what it refuses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <iterator>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_model.h"
#include "filigree/evaluation.h"
#include "filigree/tokenizer.h"

namespace filigree::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CommandTest : public ::testing::Test {
 protected:
  // Runs with --json and --quiet; stdout must be one document and stderr empty.
  static nlohmann::json json_of(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.end(), {"--json", "--quiet"});
    const ProgramRun run = run_program(arguments, input);
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    const nlohmann::json json = nlohmann::json::parse(run.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << run.out;
    return json;
  }

  static void expect_failure(const std::vector<std::string>& arguments, const std::string& part,
                             int code = 1) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, code);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, AllOf(StartsWith("filigree"), HasSubstr(part)));
  }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = (scratch_.path() / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  static std::string license() {
    std::ifstream file(FILIGREE_SOURCE_DIR "/LICENSE", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  const ModelFolder model_;
  const std::string model_name_ = model_.name();
  const ScratchFolder scratch_;
};

TEST_F(CommandTest, InfoDescribesAModel) {
  const nlohmann::json json = json_of({"info", model_name_, "--batch", "2", "--context", "32"});
  EXPECT_EQ(json["architecture"]["layers"], 2);
  EXPECT_EQ(json["architecture"]["head_width"], 8);
  std::int64_t parts = 0;
  for (const auto& part : json["parts"]) parts += part["parameters"].get<std::int64_t>();
  EXPECT_EQ(json["parameters"], parts);
  EXPECT_EQ(json["parameters"], load_model(model_.path())->parameter_count());
  EXPECT_EQ(json["weights"]["dtype"], "f32");
  EXPECT_EQ(json["tokenizer"]["vocabulary"], 8192);
  EXPECT_EQ(json["tokenizer"]["special"]["<|endoftext|>"], 0);
  EXPECT_EQ(json["gate"], nullptr);
  EXPECT_EQ(json["memory_bytes"]["weights"], 4 * parts);
  const ProgramRun text = run_program({"info", model_name_});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, HasSubstr("gpt2: 2 layers, 4 heads of 8, width 32, MLP 128"));
}

TEST_F(CommandTest, InfoKnowsStorageShardsAndGates) {
  EXPECT_EQ(json_of({"info", golden("gpt2-tiny-bf16")})["weights"]["dtype"], "bf16");
  EXPECT_EQ(json_of({"info", golden("gpt2-tiny-sharded")})["weights"]["files"].size(), 10u);
  EXPECT_EQ(json_of({"info", golden("gpt2-tiny")})["tokenizer"], nullptr);

  nlohmann::json config = nlohmann::json::parse(std::ifstream(model_.path() / "config.json"));
  config["gate"] = {{"kind", "edge"}, {"bias", 2.5}};
  std::ofstream(model_.path() / "config.json") << config;
  EXPECT_EQ(json_of({"info", model_name_})["gate"], config["gate"]);
  EXPECT_THAT(run_program({"info", model_name_}).out, HasSubstr("bias 2.5 for every head\n"));
  config["gate"] = {{"bias", {{1, 2, 3, 4}, {-1.5, 2, 2, 2}}}};
  std::ofstream(model_.path() / "config.json") << config;
  EXPECT_THAT(run_program({"info", model_name_}).out,
              HasSubstr("a bias for each of 8 heads, -1.5 to 4, mean 1.81\n"));
}

TEST_F(CommandTest, InfoListsTaps) {
  EXPECT_EQ(json_of({"info", model_name_, "--show", "taps"})["taps"],
            load_model(model_.path())->tap_names());
  EXPECT_EQ(run_program({"info", model_name_, "--tap", "blocks.*.attn.hook_z"}).out,
            "blocks.0.attn.hook_z\nblocks.1.attn.hook_z\n");
  expect_failure({"info", model_name_, "--tap", "blocks.0.attn.hook_zz"},
                 "no tap of '" + model_name_ + "' matches 'blocks.0.attn.hook_zz'");
  expect_failure({"info", model_name_, "--tap", "blocks.0.attn.hook_zz"}, "blocks.0.attn.hook_z");
}

TEST_F(CommandTest, InfoListsDevices) {
  const nlohmann::json devices = json_of({"info", "--show", "devices"})["devices"];
  ASSERT_GE(devices.size(), 1u);
  EXPECT_EQ(devices[0]["device"], "cpu");
  EXPECT_GE(devices[0]["cores"].get<int>(), 1);
  expect_failure({"info", model_name_, "--show", "devices"}, "--show devices takes no FOLDER", 2);
}

TEST_F(CommandTest, InfoRefusesWhatIsNoModel) {
  expect_failure({"info", "/nonexistent/model"}, "'/nonexistent/model': no such folder");
  expect_failure({"info", model_name_ + "/config.json"}, "is a file; give the folder");
  expect_failure({"info", scratch_.path().string()}, "config.json");
  expect_failure({"info", model_name_, "--context", "65"},
                 "a length of 65 is more than the model's context of 64");
  nlohmann::json config = nlohmann::json::parse(std::ifstream(model_.path() / "config.json"));
  config["n_layer"] = 3;
  std::ofstream(model_.path() / "config.json") << config;
  expect_failure({"info", model_name_}, "transformer.h.2.ln_1.weight");
  config["n_layer"] = 2;
  config["vocab_size"] = 8191;
  std::ofstream(model_.path() / "config.json") << config;
  expect_failure({"info", model_name_}, "[8192, 32], but config.json asks for [8191, 32]");
}

TEST_F(CommandTest, InfoShowsTheTokensOfATextWithTheirBytes) {
  const Tokenizer tokenizer = Tokenizer::from_folder(model_.path());
  const std::string text = "Hello world, naïve<|endoftext|>日本";
  const nlohmann::json json = json_of({"info", model_name_, "--prompt", text});
  EXPECT_EQ(json["ids"], tokenizer.encode(text));
  std::size_t end = 0;
  for (const auto& token : json["tokens"]) {
    EXPECT_EQ(token["begin"], end);
    end = token["end"];
    EXPECT_EQ(end - token["begin"].get<std::size_t>(),
              tokenizer.token_bytes(token["id"].get<TokenId>()).size());
  }
  EXPECT_EQ(end, text.size());

  const ProgramRun table =
      run_program({"info", golden("bpe-8k"), "--prompt", " world<|endoftext|>"});
  EXPECT_THAT(table.out, HasSubstr(" 974    0:6  \" world\"\n   0   6:19  <|endoftext|>\n"));
  EXPECT_THAT(table.out, HasSubstr("2 tokens, 19 bytes"));
  EXPECT_GT(json_of({"info", model_name_, "--prompt", "<|endoftext|>", "--set",
                     "special=false"})["count"],
            1);
}

TEST_F(CommandTest, InfoTakesTextFromArgumentFileAndStdin) {
  const std::string file = write("text.txt", "[one, two]");
  const std::string expected =
      run_program({"info", model_name_, "--prompt", "[one, two]", "--show", "ids"}).out;
  EXPECT_EQ(run_program({"info", model_name_, "--text", file, "--show", "ids"}).out, expected);
  EXPECT_EQ(run_program({"info", model_name_, "--show", "ids"}, "[one, two]").out, expected);
  EXPECT_EQ(run_program({"info", model_name_ + "/tokenizer.json", "--prompt", "[one, two]",
                         "--show", "ids"})
                .out,
            expected);
  expect_failure({"info", model_name_, "--prompt", "text", "--text", file}, "not both", 2);
}

TEST_F(CommandTest, EncodingAndDecodingAFileGivesThatFile) {
  const std::string text = license() + "naïve 日本語 \xF0\x9F\x91\x8D no newline";
  const std::string ids = run_program({"info", model_name_, "--show", "ids"}, text).out;
  EXPECT_EQ(run_program({"info", model_name_, "--ids", "-"}, ids).out, text);
  EXPECT_EQ(run_program({"info", model_name_, "--ids", "40,516 79"}).out, "Hello");
  EXPECT_EQ(json_of({"info", model_name_, "--ids", "[40, 516, 79]"})["text"], "Hello");
}

TEST_F(CommandTest, InfoRefusesBadTextsAndIds) {
  expect_failure({"info", "--prompt", "x"}, "FOLDER is required", 2);
  expect_failure({"tokenize", model_name_, "--prompt", "x"},
                 "it is now: filigree info MODEL --prompt TEXT", 2);
  expect_failure({"info", "/nonexistent", "--prompt", "x"}, "'/nonexistent': no such folder");
  expect_failure({"info", scratch_.path().string(), "--prompt", "x"}, "no tokenizer in");
  expect_failure({"info", write("notes.txt", ""), "--prompt", "x"}, "is a file");
  expect_failure({"info", model_name_, "--ids", "8192"},
                 "token id 8192 is outside the vocabulary of 8192 tokens");
  expect_failure({"info", model_name_, "--ids", "-1"}, "--ids: '-1' is not a token id", 2);
  expect_failure({"info", model_name_, "--ids", "12,x"}, "--ids: 'x' is not a token id", 2);
  expect_failure({"info", model_name_, "--ids", "12", "--prompt", "x"}, "not both", 2);
  const std::string bad = write("bad.txt", "ab\xff");
  expect_failure({"info", model_name_, "--text", bad}, "bad.txt': encode: invalid UTF-8 at byte 2");
  expect_failure({"info", model_name_, "--text", bad}, "--replace-invalid");
  EXPECT_EQ(run_program({"info", model_name_, "--text", bad, "--replace-invalid"}).code, 0);
  expect_failure({"info", model_name_, "--text", "/nonexistent"}, "cannot read '/nonexistent'");
}

TEST_F(CommandTest, TokenizersAreTrainedAndUsable) {
  const std::string text = write("text.txt", license());
  const std::string out = (scratch_.path() / "shards").string();
  json_of({"prepare", text, text, "--vocab", "400", "--out", out});
  EXPECT_EQ(Tokenizer::from_folder(out).vocab_size(), 400u);
  const std::string ids = run_program({"info", out, "--show", "ids", "--text", text}).out;
  EXPECT_EQ(run_program({"info", out, "--ids", "-"}, ids).out, license());
}

TEST_F(CommandTest, GenerateIsDeterministicAndTheCacheChangesNothing) {
  const std::vector<std::string> command = {"generate",     model_name_, "--prompt", "Once upon",
                                            "--max-tokens", "40",        "--seed",   "5",
                                            "--count",      "2"};
  const nlohmann::json first = json_of(command)["continuations"];
  const nlohmann::json again = json_of(command)["continuations"];
  std::vector<std::string> no_cache = command;
  no_cache.insert(no_cache.end(), {"--set", "cache=false"});
  const nlohmann::json computed = json_of(no_cache)["continuations"];
  ASSERT_EQ(first.size(), 2u);
  EXPECT_NE(first[0]["ids"], first[1]["ids"]);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(first[i]["ids"], again[i]["ids"]);
    EXPECT_EQ(first[i]["ids"], computed[i]["ids"]);
    EXPECT_EQ(first[i]["text"], computed[i]["text"]);
    EXPECT_EQ(first[i]["finish"], "max-tokens");
  }
}

TEST_F(CommandTest, GenerateStreamsThePromptAndItsContinuation) {
  const std::vector<std::string> command = {"generate",     model_name_, "--prompt", "Once upon",
                                            "--max-tokens", "9",         "--quiet"};
  const std::string text = json_of(command)["continuations"][0]["text"];
  EXPECT_EQ(run_program(command).out, "Once upon" + text + "\n");
  std::vector<std::string> only_new = command;
  only_new.insert(only_new.end(), {"--set", "echo=false"});
  EXPECT_EQ(run_program(only_new).out, text + "\n");
  std::vector<std::string> from_stdin = command;
  from_stdin.erase(from_stdin.begin() + 3);
  from_stdin[2] = "--text=-";
  EXPECT_EQ(run_program(from_stdin, "Once upon\n").out, "Once upon" + text + "\n");
}

TEST_F(CommandTest, GenerateStopsAtTheContextAndSaysSo) {
  const ProgramRun run =
      run_program({"generate", model_name_, "--prompt", "Once upon a time", "--max-tokens", "500"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.err, HasSubstr("stopped at the end of the model's context of 64 tokens"));
}

TEST_F(CommandTest, GenerateRefusesBadPrompts) {
  expect_failure({"generate", model_name_, "--prompt", ""}, "the prompt is empty");
  expect_failure({"generate", model_name_}, "give either --prompt TEXT or --text FILE", 2);
  expect_failure({"generate", model_name_, "--prompt", "x", "--text", "f"},
                 "give either --prompt TEXT", 2);
  expect_failure({"generate", model_name_, "--prompt", "-"}, "--text - reads it from stdin", 2);
  std::string words;
  for (int i = 0; i < 100; ++i) words += " world";
  expect_failure({"generate", model_name_, "--prompt", words},
                 "the prompt is 100 tokens long, but the model's context is 64; shorten it by 36");
  expect_failure({"generate", model_name_, "--prompt", "bad \xff"},
                 "the prompt: encode: invalid UTF-8");
  expect_failure({"generate", golden("gpt2-tiny"), "--prompt", "Hello"},
                 "the model has no tokenizer");
  expect_failure({"generate", "/nonexistent", "--prompt", "Hello"}, "no such folder");
  // The tokenizer of another model: ids beyond the embedding.
  save_model(*make_model(tiny_config(300), 1), model_.path());
  expect_failure({"generate", model_name_, "--prompt", "Hello world"},
                 "there is no token 516; its tokens are 0 to 299");
}

TEST_F(CommandTest, GenerateEndsOnInterrupt) {
  const ProgramRun run = run_and_interrupt({"generate", model_name_, "--prompt", "Once upon",
                                            "--count", "1000000", "--max-tokens", "60"});
  EXPECT_EQ(run.code, 130);
  EXPECT_THAT(run.out, StartsWith("[1/1000000]\n"));
}

TEST_F(CommandTest, EvalEqualsTheLibrary) {
  const std::string text = license().substr(0, 3000) + "<|endoftext|>" + license().substr(0, 500);
  const std::string file = write("text.txt", text);
  const auto model = load_model(model_.path());
  const Tokenizer tokenizer = Tokenizer::from_folder(model_.path());
  const std::vector<TokenId> ids = tokenizer.encode(text);
  const Evaluation expected = evaluate(*model, text_windows(ids, {32, 8, 0}, model->config()));

  const nlohmann::json result = json_of({"eval", model_name_, "--text", file, "--context", "32",
                                         "--set", "stride=8", "--batch", "5"})["models"][0];
  EXPECT_EQ(result["tokens"], ids.size() - 1);
  EXPECT_NEAR(result["loss"].get<double>(), expected.loss(), 1e-6);
  EXPECT_NEAR(result["perplexity"].get<double>(), expected.perplexity(),
              1e-5 * expected.perplexity());
  const std::size_t bytes = 3500 - tokenizer.token_bytes(ids[0]).size();
  EXPECT_EQ(result["bytes"], bytes);
  EXPECT_NEAR(result["bits_per_byte"].get<double>(),
              expected.total.sum / std::log(2.0) / static_cast<double>(bytes), 1e-6);
}

TEST_F(CommandTest, EvalComparesModels) {
  const ModelFolder other(2);
  const std::string file = write("text.txt", license().substr(0, 2000));
  const nlohmann::json models =
      json_of({"eval", model_name_, other.name(), "--text", file})["models"];
  ASSERT_EQ(models.size(), 2u);
  EXPECT_NE(models[0]["loss"], models[1]["loss"]);
  const ProgramRun table = run_program({"eval", model_name_, other.name(), "--text", file});
  EXPECT_THAT(table.out, HasSubstr(model_.path().filename().string()));
  EXPECT_THAT(table.out, HasSubstr(fmt::format("{:+.4f}", models[1]["loss"].get<double>() -
                                                              models[0]["loss"].get<double>())));
}

TEST_F(CommandTest, EvalRefusesBadInput) {
  const std::string text = write("text.txt", "some text");
  expect_failure({"eval", model_name_, "--text", write("empty.txt", "")}, "empty.txt' is empty");
  expect_failure({"eval", model_name_, "--text", write("one.txt", "a")}, "is a single token");
  expect_failure({"eval", model_name_, "--text", write("bad.txt", "a\xff")}, "invalid UTF-8");
  expect_failure({"eval", model_name_, "--text", "/nonexistent"}, "cannot read '/nonexistent'");
  expect_failure({"eval", model_name_, "--text", model_name_}, "Is a directory");
  expect_failure({"eval", model_name_, "/nonexistent", "--text", text}, "'/nonexistent'");
  expect_failure({"eval", model_name_, "--text", text, "--context", "65"}, "context of 64");
  expect_failure({"eval", model_name_, "--text", text, "--context", "8", "--set", "stride=9"},
                 "a stride of 9 is longer than windows of 8 tokens", 2);
}

}  // namespace
}  // namespace filigree::cli
