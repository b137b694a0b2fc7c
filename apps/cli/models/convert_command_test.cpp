// filigree convert, and models/pack and models/check, which bundle a model with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <limits>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_model.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;

class ConvertTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (scratch_.path() / name).string(); }

  // Of the first tensor of two dimensions.
  static std::vector<float> weights(const fs::path& folder) {
    const auto model = load_model(folder);
    const Tensor& tensor = model->parameters()[0].variable.value();
    return {tensor.f32(), tensor.f32() + tensor.elements()};
  }

  ProgramRun script(const std::string& command) const {
    return run_shell("MODELS='" + path("models") + "' '" FILIGREE_SOURCE_DIR "/models/" + command);
  }

  const ModelFolder model_;
  const ScratchFolder scratch_;
};

TEST_F(ConvertTest, RoundsTheWeightsAndTakesTokenizerAndGatesAlong) {
  const auto gated = load_model(model_.path());
  gated->set_gate({{-0.5f}});
  save_model(*gated, model_.path());
  const ProgramRun run =
      run_program({"convert", model_.name(), "--out", path("small"), "--dtype", "bf16", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["bytes"], fs::file_size(path("small/model.safetensors")));
  EXPECT_EQ(json["parameters"], gated->parameter_count());
  EXPECT_TRUE(json["tokenizer"].get<bool>());

  const std::vector<float> before = weights(model_.path()), after = weights(path("small"));
  ASSERT_EQ(before.size(), after.size());
  EXPECT_NE(before, after);
  for (std::size_t i = 0; i < before.size(); ++i)
    ASSERT_NEAR(after[i], before[i], std::abs(before[i]) / 256) << i;
  const auto info = nlohmann::json::parse(run_program({"info", path("small"), "--json"}).out);
  EXPECT_EQ(info["weights"]["dtype"], "bf16");
  EXPECT_EQ(info["gate"]["bias"], -0.5);
  EXPECT_EQ(info["tokenizer"]["vocabulary"], 8192);

  // Widened again it is to the bit what was rounded.
  ASSERT_EQ(run_program({"convert", path("small"), "--out", path("wide")}).code, 0);
  EXPECT_EQ(weights(path("wide")), after);
  EXPECT_GT(fs::file_size(path("wide/model.safetensors")),
            2 * json["bytes"].get<std::size_t>() - 9999);
}

TEST_F(ConvertTest, RefusesNumbersThatAreOrBecomeNotFiniteUnlessAsked) {
  const auto with = [&](float number) {
    const auto model = load_model(model_.path());
    Tensor changed = model->parameters()[0].variable.value().clone();
    changed.mutable_f32()[3] = number;
    model->parameters()[0].variable.mutable_value() = changed;
    save_model(*model, path("odd"));
  };
  const auto convert = [&](const std::string& dtype, const std::string& not_finite) {
    fs::remove_all(path("out"));
    return run_program({"convert", path("odd"), "--out", path("out"), "--dtype", dtype, "--set",
                        std::string("not-finite=") + not_finite});
  };
  const auto expect_refused = [&](const std::string& dtype, const std::string& number) {
    const ProgramRun run = convert(dtype, "refuse");
    EXPECT_EQ(run.code, 1) << dtype;
    EXPECT_THAT(run.err, AllOf(HasSubstr("' has " + number), HasSubstr("at element 3")));
    EXPECT_FALSE(fs::exists(path("out")));
    EXPECT_EQ(convert(dtype, "keep").code, 0) << run.err;
  };
  with(1e6f);
  expect_refused("f16", "1000000 at element 3, which f16 makes infinite");
  for (const char* dtype : {"f32", "bf16", "i8"}) EXPECT_EQ(convert(dtype, "refuse").code, 0);
  with(65519.0f);
  EXPECT_EQ(convert("f16", "refuse").code, 0);
  with(std::numeric_limits<float>::max());
  expect_refused("bf16", "3.4028235e+38 at element 3, which bf16 makes infinite");
  with(std::numeric_limits<float>::quiet_NaN());
  for (const char* dtype : {"f32", "f16", "bf16"}) expect_refused(dtype, "nan");
  with(-std::numeric_limits<float>::infinity());
  expect_refused("f32", "-inf");
}

TEST_F(ConvertTest, EightBitsTakeAQuarterOfTheRoom) {
  const ProgramRun run =
      run_program({"convert", model_.name(), "--out", path("small"), "--dtype", "i8", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto bytes = nlohmann::json::parse(run.out)["bytes"].get<std::size_t>();
  EXPECT_EQ(bytes, fs::file_size(path("small/model-i8.safetensors")));
  EXPECT_LT(bytes, fs::file_size(model_.path() / "model.safetensors") * 3 / 10);
  const auto info = nlohmann::json::parse(run_program({"info", path("small"), "--json"}).out);
  EXPECT_EQ(info["weights"]["dtype"], "i8, f32");
  ASSERT_EQ(run_program({"convert", path("small"), "--out", path("wide")}).code, 0);
  EXPECT_EQ(weights(path("wide")), weights(path("small")));
}

TEST_F(ConvertTest, RaisesTheBiasesOfAllGates) {
  EXPECT_THAT(run_program({"gates", "raise", model_.name(), "--out", path("x"), "--add", "1"}).err,
              HasSubstr("has no gates"));
  EXPECT_FALSE(fs::exists(path("x")));
  const auto gated = load_model(model_.path());
  std::vector<float> biases(
      static_cast<std::size_t>(gated->config().layers * gated->config().heads));
  for (std::size_t i = 0; i < biases.size(); ++i) biases[i] = 0.125f * static_cast<float>(i) - 1.0f;
  gated->set_gate({biases});
  save_model(*gated, path("gated"));
  for (const float by : {0.5f, -0.25f}) {
    const std::string to = path("by" + std::to_string(by));
    const ProgramRun run = run_program(
        {"gates", "raise", path("gated"), "--out", to, "--add", std::to_string(by), "--json"});
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(nlohmann::json::parse(run.out)["raised_gates"], by);
    const std::vector<float> raised = load_model(to)->config().gate.bias;
    ASSERT_EQ(raised.size(), biases.size());
    for (std::size_t i = 0; i < biases.size(); ++i) EXPECT_EQ(raised[i], biases[i] + by) << i;
    EXPECT_EQ(weights(to), weights(path("gated")));
  }
  EXPECT_THAT(
      run_program({"gates", "raise", path("gated"), "--out", path("x"), "--add", "nan"}).err,
      HasSubstr("'nan' is not a number"));
}

TEST_F(ConvertTest, MixesWithAnotherModel) {
  const auto model = load_model(model_.path());
  save_model(*model, path("dense"));
  model->set_gate({{-0.5f}});
  save_model(*model, model_.path());
  // The same with all weights doubled and another bias.
  for (const NamedParameter& parameter : model->parameters()) {
    Tensor doubled = parameter.variable.value().clone();
    for (std::int64_t i = 0; i < doubled.elements(); ++i) doubled.mutable_f32()[i] *= 2.0f;
    parameter.variable.mutable_value() = doubled;
  }
  model->set_gate({{1.5f}});
  save_model(*model, path("doubled"));
  const ProgramRun run =
      run_program({"gates", "mix", model_.name(), path("doubled"), "--out", path("mixed"),
                   "--share", "0.25", "--add", "0.125", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["mixed_with"], path("doubled"));
  EXPECT_EQ(json["mix_share"], 0.25);
  EXPECT_EQ(load_model(path("mixed"))->config().gate.bias, std::vector<float>{0.125f});
  const std::vector<float> before = weights(model_.path()), after = weights(path("mixed"));
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) ASSERT_FLOAT_EQ(after[i], 1.25f * before[i]) << i;

  const auto refusal = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"gates", "mix", model_.name(), "--out", path("x")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments).err;
  };
  EXPECT_THAT(refusal({path("dense")}), HasSubstr("has gates and the other has none"));
  EXPECT_THAT(refusal({"--share", "0.5"}), HasSubstr("needs OTHER"));
  EXPECT_THAT(refusal({path("doubled"), "--share", "1.5"}), HasSubstr("1.5"));
  fs::copy(golden("tokenizer-neox/tokenizer.json"), path("doubled"));
  EXPECT_THAT(refusal({path("doubled")}), HasSubstr("another tokenizer"));
  EXPECT_FALSE(fs::exists(path("x")));
}

TEST_F(ConvertTest, MergesAdapters) {
  const auto adapted = load_model(model_.path());
  adapted->add_lora({.rank = 2}, 1);
  save_model(*adapted, path("adapted"), {.keep_adapters = true});
  ASSERT_EQ(run_program({"convert", path("adapted"), "--out", path("merged")}).code, 0);
  EXPECT_FALSE(fs::exists(path("merged/adapters.safetensors")));
  EXPECT_FALSE(load_model(path("merged"))->lora().has_value());
}

TEST_F(ConvertTest, MakesAFolderOfAPyTorchStateDict) {
  const std::string golden = FILIGREE_SOURCE_DIR "/tests/golden/transformer-lens-pth/";
  const ProgramRun run =
      run_program({"convert", golden + "final.pth", "--out", path("lens"), "--config",
                   golden + "hugging-face", "--gate-bias", "0", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["gate_bias"], 0.0);
  EXPECT_EQ(weights(path("lens")), weights(golden + "hugging-face"));
  EXPECT_EQ(load_model(path("lens"))->config().gate.bias, std::vector<float>{0.0f});
  EXPECT_THAT(
      run_program({"convert", path("lens"), "--out", path("again"), "--gate-bias", "1"}).err,
      HasSubstr("has gates already"));
  // Its own shape, padded vocabulary and all.
  const auto info =
      nlohmann::json::parse(run_program({"info", golden + "final.pth", "--json"}).out);
  EXPECT_EQ(info["architecture"]["vocabulary"], 64);
  EXPECT_THAT(
      run_program({"convert", golden + "final.pth", "--out", path("x"), "--config", "gpt2"}).err,
      HasSubstr("unembed.W_U"));
}

TEST_F(ConvertTest, DoesNotWriteOverAModel) {
  const ProgramRun run = run_program({"convert", model_.name(), "--out", model_.name()});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("holds a model already"));
  EXPECT_EQ(run_program({"convert", model_.name(), "--out", path("x"), "--dtype", "f8"}).code, 2);
}

TEST_F(ConvertTest, PackedModelsPassTheCheckUntilAFileChanges) {
  fs::create_directory(path("models"));
  const std::string check = "check' '" + path("models") + "'";
  EXPECT_EQ(script(check).code, 77) << "there is nothing to check";

  std::ofstream(path("prose.txt")) << "Held out.\n";
  ProgramRun run = script("pack' '" + model_.name() + "' tiny '" + path("prose.txt") + "'");
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* file :
       {"model.safetensors", "config.json", "tokenizer.json", "held-out.txt", "SHA256SUMS"})
    EXPECT_TRUE(fs::exists(path("models/tiny/") + file)) << file;
  std::ofstream(path("models/tiny/README.md")) << "A card.\n";
  run = script(check);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("1 models"));

  // Packed again the card stays, and the text, which was not given, goes.
  ASSERT_EQ(script("pack' '" + model_.name() + "' tiny").code, 0);
  EXPECT_TRUE(fs::exists(path("models/tiny/README.md")));
  EXPECT_FALSE(fs::exists(path("models/tiny/held-out.txt")));
  EXPECT_EQ(script(check).code, 0);

  std::ofstream(path("models/tiny/more.txt")) << "x";
  EXPECT_EQ(script(check).code, 1) << "a file without a sum";
  fs::remove(path("models/tiny/more.txt"));
  std::ofstream(path("models/tiny/config.json"), std::ios::app) << " ";
  run = script(check);
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("tiny/SHA256SUMS: a file has changed"));
}

TEST_F(ConvertTest, AFailedPackLeavesTheOldModel) {
  fs::create_directory(path("models"));
  ASSERT_EQ(script("pack' '" + model_.name() + "' tiny").code, 0);
  EXPECT_NE(script("pack' '" + path("absent") + "' tiny").code, 0);
  EXPECT_EQ(script("check' '" + path("models") + "'").code, 0);
  EXPECT_FALSE(fs::exists(path("models/tiny.partial")));
}

}  // namespace
}  // namespace filigree::cli
