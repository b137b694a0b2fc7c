// What a folder must look like to be loaded, and what is said when it does not.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "filigree/error.h"
#include "filigree/model.h"
#include "io/safetensors_writer.h"
#include "json/json.h"
#include "support/check_op.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

nlohmann::json tiny_json() {
  return {{"model_type", "gpt2"}, {"n_layer", 1},     {"n_head", 2},
          {"n_embd", 8},          {"n_positions", 6}, {"vocab_size", 10}};
}

// A saved model whose tensors and configuration a test can change before loading it.
class LoadTest : public testing::Test {
 protected:
  struct Entry {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };

  LoadTest() {
    const auto model = make_model(parse_model_config(tiny_json(), "test"), 1);
    for (const NamedParameter& p : model->parameters())
      tensors_.push_back(
          {p.name,
           {p.variable.shape().extents().begin(), p.variable.shape().extents().end()},
           {p.variable.value().values().begin(), p.variable.value().values().end()}});
    previous_ = set_warning_handler([this](const std::string& text) { warnings_ += text + "\n"; });
  }
  ~LoadTest() override { set_warning_handler(previous_); }

  Entry& entry(const std::string& name) {
    for (Entry& e : tensors_)
      if (e.name == name) return e;
    throw std::runtime_error("no " + name);
  }

  std::unique_ptr<Model> load() {
    std::vector<TensorToWrite> out;
    for (const Entry& e : tensors_)
      out.push_back(
          tensor_to_write(e.name, TensorKind::kF32, e.shape, std::as_bytes(std::span(e.values))));
    write_safetensors(folder_.path() / "model.safetensors", out, metadata_);
    write_json(folder_.path() / "config.json", config_);
    return load_model(folder_.path());
  }

  std::string failure() {
    return error_of([&] { load(); });
  }

  void expect_failure(const std::vector<std::string>& parts) {
    const std::string message = failure();
    for (const std::string& part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
  }

  TemporaryFolder folder_;
  std::vector<Entry> tensors_;
  std::map<std::string, std::string> metadata_ = {{"format", "pt"}};
  nlohmann::json config_ = tiny_json();
  std::string warnings_;
  WarningHandler previous_;
};

TEST_F(LoadTest, TheUnchangedFolderLoadsWithoutAWord) {
  EXPECT_EQ(load()->config().layers, 1);
  EXPECT_EQ(warnings_, "");
}

TEST_F(LoadTest, NamesWithoutThePrefixAndOldBuffersAreAccepted) {
  for (Entry& e : tensors_) e.name = e.name.substr(std::string("transformer.").size());
  tensors_.push_back({"h.0.attn.bias", {1, 1, 6, 6}, std::vector<float>(36, 1.0f)});
  tensors_.push_back({"h.0.attn.masked_bias", {}, {-1e4f}});
  tensors_.push_back({"lm_head.weight", {10, 8}, entry("wte.weight").values});
  EXPECT_EQ(load()->parameter_count(),
            make_model(parse_model_config(tiny_json(), ""), 1)->parameter_count());
  EXPECT_EQ(warnings_, "");
}

// The same answer as for every other JSON file (json/events.h).
TEST_F(LoadTest, AConfigurationThatIsNotPlainJsonIsRefused) {
  const std::string whole = tiny_json().dump();
  for (const std::string& text :
       {"{\"n_layer\": 1, " + whole.substr(1), whole + '\0' + "junk", whole + "junk",
        whole + "\xff", "{\"deep\": " + std::string(60000, '[') + std::string(60000, ']') + "}"}) {
    std::ofstream(folder_.path() / "config.json") << text;
    try {
      load_model(folder_.path());
      ADD_FAILURE() << text.substr(0, 100);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("config.json': byte "), std::string::npos)
          << error.what();
    }
  }
}

TEST_F(LoadTest, AMissingTensorIsNamedWithItsNearest) {
  entry("transformer.h.0.ln_1.weight").name = "transformer.h.0.ln_1.wieght";
  expect_failure({"'transformer.h.0.ln_1.weight' [8] is missing", "transformer.h.0.ln_1.wieght"});
}

TEST_F(LoadTest, ADoubledTensorIsRefused) {
  Entry copy = entry("transformer.wte.weight");
  copy.name = "wte.weight";
  tensors_.push_back(copy);
  expect_failure({"transformer.wte.weight", "'wte.weight'", "the same parameter"});
}

TEST_F(LoadTest, AWrongShapeIsNamed) {
  entry("transformer.h.0.attn.c_attn.weight").shape = {24, 8};
  expect_failure({"'transformer.h.0.attn.c_attn.weight' is [24, 8]", "[8, 24]"});
}

TEST_F(LoadTest, TensorsTheModelDoesNotHaveAreWarnedAbout) {
  tensors_.push_back({"transformer.h.0.attn.c_proj.lora_A", {2}, {1, 2}});
  load();
  EXPECT_NE(warnings_.find("lora_A"), std::string::npos) << warnings_;
}

TEST_F(LoadTest, ValuesThatAreNotFiniteAreWarnedAbout) {
  entry("transformer.h.0.mlp.c_fc.weight").values[17] = NAN;
  entry("transformer.ln_f.bias").values[7] = INFINITY;
  load();
  EXPECT_NE(warnings_.find("mlp.c_fc.weight"), std::string::npos) << warnings_;
  EXPECT_NE(warnings_.find("ln_f.bias"), std::string::npos) << warnings_;
  EXPECT_EQ(warnings_.find("wte"), std::string::npos) << warnings_;
}

TEST_F(LoadTest, SeparateOutputWeightsAreNeededWhenNotTied) {
  config_["tie_word_embeddings"] = false;
  expect_failure({"'lm_head.weight' [10, 8] is missing"});
}

// As transformers loads them: of two tensors that share their numbers a file has one.
TEST_F(LoadTest, ATiedEmbeddingMayBeStoredAsTheOutputLayerAlone) {
  const Entry embedding = entry("transformer.wte.weight");
  entry("transformer.wte.weight").name = "lm_head.weight";
  const auto model = load();
  EXPECT_TRUE(model->config().tied_embeddings);
  EXPECT_EQ(model->parameters()[0].name, "transformer.wte.weight");
  const Tensor& found = model->parameters()[0].variable.value();
  EXPECT_TRUE(std::ranges::equal(found.values(), embedding.values));
  EXPECT_EQ(warnings_, "");
}

// The same with the note that safetensors leaves of the one that is not stored, in either
// direction and whatever config.json says of tying.
TEST_F(LoadTest, SharedTensorsAreFoundUnderTheirOtherNames) {
  const Entry embedding = entry("transformer.wte.weight");
  for (const bool tied : {true, false})
    for (const bool head_is_stored : {true, false}) {
      config_["tie_word_embeddings"] = tied;
      tensors_.front().name = head_is_stored ? "lm_head.weight" : "transformer.wte.weight";
      metadata_ = {{"format", "pt"},
                   {head_is_stored ? "transformer.wte.weight" : "lm_head.weight",
                    head_is_stored ? "lm_head.weight" : "transformer.wte.weight"}};
      const auto model = load();
      EXPECT_EQ(model->config().tied_embeddings, tied);
      std::size_t copies = 0;
      for (const NamedParameter& parameter : model->parameters())
        if (parameter.name == "transformer.wte.weight" || parameter.name == "lm_head.weight") {
          EXPECT_TRUE(std::ranges::equal(parameter.variable.value().values(), embedding.values));
          ++copies;
        }
      EXPECT_EQ(copies, tied ? 1u : 2u);
      EXPECT_EQ(warnings_, "");
    }
}

// transformers 5 does so; before it the output layer was lost without a word.
TEST_F(LoadTest, TensorsThatAreSaidToBeTiedAndDifferAreNotTied) {
  Entry head = entry("transformer.wte.weight");
  head.name = "lm_head.weight";
  for (float& value : head.values) value += 1.0f;
  tensors_.push_back(head);
  const auto model = load();
  EXPECT_FALSE(model->config().tied_embeddings);
  EXPECT_TRUE(
      std::ranges::equal(model->parameters().back().variable.value().values(), head.values));
  EXPECT_NE(warnings_.find("'transformer.wte.weight' and 'lm_head.weight'"), std::string::npos)
      << warnings_;
  EXPECT_NE(warnings_.find("\"tie_word_embeddings\": false"), std::string::npos) << warnings_;
  // Saved, it says what it is.
  const TemporaryFolder saved;
  save_model(*model, saved.path() / "again");
  warnings_.clear();
  EXPECT_FALSE(load_model(saved.path() / "again")->config().tied_embeddings);
  EXPECT_EQ(warnings_, "");
}

TEST_F(LoadTest, ConfigurationsThatCannotBeRunAreRefused) {
  const auto with = [&](const char* key, const nlohmann::json& value) {
    config_ = tiny_json();
    config_[key] = value;
    return failure();
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(with("model_type", "llamb"), "'llamb'"));
  EXPECT_TRUE(has(with("n_head", 3), "multiple"));
  EXPECT_TRUE(has(with("n_head", 0), "n_head"));
  EXPECT_TRUE(has(with("n_layer", "twelve"), "n_layer"));
  EXPECT_TRUE(has(with("n_layer", 9999), "9999"));
  EXPECT_TRUE(has(with("activation_function", "quick_gelu"), "'quick_gelu'"));
  EXPECT_TRUE(has(with("add_cross_attention", true), "add_cross_attention"));
  EXPECT_TRUE(has(with("vocab_size", 1e300), "vocab_size"));
  EXPECT_TRUE(has(with("n_embd", -4), "n_embd"));
  config_ = tiny_json();
  config_.erase("n_positions");
  EXPECT_TRUE(has(failure(), "n_positions"));
}

TEST_F(LoadTest, AFolderThatIsNotThereOrHasNoConfigSaysSo) {
  EXPECT_THROW(load_model(folder_.path() / "nowhere"), Error);
  EXPECT_THROW(load_model(folder_.path()), Error);
}

}  // namespace
}  // namespace filigree
