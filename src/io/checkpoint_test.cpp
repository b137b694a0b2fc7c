// Checkpoint folders: the golden ones open, shards hold what one file would, and every way in which
// a folder can be wrong has its message.
#include "io/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "io/io_test_support.h"
#include "io/safetensors_writer.h"
#include "json/json.h"
#include "json/object.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;
using Shape = std::vector<std::int64_t>;

TEST(GoldenFiles, CheckpointsHaveTheShapesOfTheirConfiguration) {
  const std::pair<const char*, TensorKind> cases[] = {{"gpt2-tiny", TensorKind::kF32},
                                                      {"gpt2-tiny-sharded", TensorKind::kF32},
                                                      {"gpt2-tiny-bf16", TensorKind::kBf16},
                                                      {"gpt2-tiny-f16", TensorKind::kF16}};
  for (const auto& [name, kind] : cases) {
    SCOPED_TRACE(name);
    const JsonObject config = JsonObject::open(golden_folder() / name / "config.json");
    const std::int64_t layers = config.integer("n_layer");
    const std::int64_t width = config.integer("n_embd");
    const Checkpoint checkpoint = Checkpoint::open(golden_folder() / name);
    EXPECT_EQ(checkpoint.tensors().size(), static_cast<std::size_t>(12 * layers + 4));
    EXPECT_EQ(checkpoint.at("transformer.wte.weight").shape,
              (Shape{config.integer("vocab_size"), width}));
    EXPECT_EQ(checkpoint.at("transformer.wpe.weight").shape,
              (Shape{config.integer("n_positions"), width}));
    EXPECT_EQ(checkpoint.at("transformer.ln_f.bias").shape, (Shape{width}));
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const std::string block = fmt::format("transformer.h.{}.", layer);
      EXPECT_EQ(checkpoint.at(block + "ln_1.weight").shape, (Shape{width}));
      EXPECT_EQ(checkpoint.at(block + "attn.c_attn.weight").shape, (Shape{width, 3 * width}));
      EXPECT_EQ(checkpoint.at(block + "attn.c_attn.bias").shape, (Shape{3 * width}));
      EXPECT_EQ(checkpoint.at(block + "mlp.c_proj.weight").shape, (Shape{4 * width, width}));
    }
    for (const TensorView& tensor : checkpoint.tensors()) {
      EXPECT_EQ(tensor.kind, kind) << tensor.name;
      EXPECT_TRUE(tensor.aligned()) << tensor.name;
    }
  }
}

TEST(GoldenFiles, ShardedHoldsTheTensorsOfItsShards) {
  const Checkpoint whole = Checkpoint::open(golden_folder() / "gpt2-tiny");
  const Checkpoint sharded = Checkpoint::open(golden_folder() / "gpt2-tiny-sharded");
  EXPECT_EQ(whole.files().size(), 1u);
  EXPECT_EQ(sharded.files().size(), 10u);
  // The two models differ in their random weights, not in what they hold.
  ASSERT_EQ(whole.tensors().size(), sharded.tensors().size());
  for (std::size_t i = 0; i < whole.tensors().size(); ++i) {
    EXPECT_EQ(whole.tensors()[i].name, sharded.tensors()[i].name);
    EXPECT_EQ(whole.tensors()[i].shape, sharded.tensors()[i].shape) << whole.tensors()[i].name;
  }
  const auto index =
      read_json(golden_folder() / "gpt2-tiny-sharded" / "model.safetensors.index.json");
  for (const auto& [name, shard] : index.at("weight_map").items()) {
    const auto file =
        SafetensorsFile::open(golden_folder() / "gpt2-tiny-sharded" / shard.get<std::string>());
    EXPECT_TRUE(std::ranges::equal(sharded.at(name).data, file.at(name).data)) << name;
  }
}

TEST(GoldenFiles, SplittingIntoShardsKeepsEveryByte) {
  const TemporaryFolder folder;
  const Checkpoint whole = Checkpoint::open(golden_folder() / "gpt2-tiny");
  std::vector<TensorToWrite> shards[3];
  nlohmann::json weight_map;
  for (std::size_t i = 0; i < whole.tensors().size(); ++i) {
    const TensorView& view = whole.tensors()[i];
    shards[i % 3].push_back(tensor_to_write(view.name, view.kind, view.shape, view.data));
    weight_map[view.name] = fmt::format("model-{}.safetensors", i % 3);
  }
  for (std::size_t i = 0; i < 3; ++i)
    write_safetensors(folder / fmt::format("model-{}.safetensors", i), std::move(shards[i]));
  write_json(folder / "model.safetensors.index.json", {{"weight_map", weight_map}});

  const Checkpoint sharded = Checkpoint::open(folder.path());
  EXPECT_EQ(sharded.files().size(), 3u);
  ASSERT_EQ(whole.tensors().size(), sharded.tensors().size());
  for (std::size_t i = 0; i < whole.tensors().size(); ++i) {
    const TensorView& a = whole.tensors()[i];
    const TensorView& b = sharded.tensors()[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.shape, b.shape) << a.name;
    EXPECT_TRUE(std::ranges::equal(a.data, b.data)) << a.name;
  }
}

TEST(GoldenFiles, ExpectedValuesOpen) {
  for (const char* name : {"gpt2-tiny", "gpt2-tiny-sharded", "gpt2-tiny-bf16", "gpt2-tiny-f16"}) {
    SCOPED_TRACE(name);
    const JsonObject config = JsonObject::open(golden_folder() / name / "config.json");
    const auto expected = SafetensorsFile::open(golden_folder() / name / "expected.safetensors");
    const TensorView& ids = expected.at("input_ids");
    ASSERT_EQ(ids.shape, (Shape{2, 17}));
    std::vector<std::int32_t> values(34);
    read_i32(ids, values);
    for (const std::int32_t id : values) {
      EXPECT_GE(id, 0);
      EXPECT_LT(id, config.integer("vocab_size"));
    }
    EXPECT_EQ(expected.at("logits").shape, (Shape{2, 17, config.integer("vocab_size")}));
    EXPECT_EQ(expected.at("loss").element_count(), 1);
    EXPECT_EQ(expected.at("attentions.0").shape, (Shape{2, config.integer("n_head"), 17, 17}));
    const Checkpoint checkpoint = Checkpoint::open(golden_folder() / name);
    for (const TensorView& parameter : checkpoint.tensors())
      EXPECT_EQ(expected.at("grad." + parameter.name).shape, parameter.shape) << parameter.name;
  }
}

TEST(GoldenFiles, GatedAttentionOpens) {
  const auto file = SafetensorsFile::open(golden_folder() / "gated_attention.safetensors");
  const auto cases = read_json(golden_folder() / "gated_attention.json");
  ASSERT_EQ(cases.size(), 5u);
  for (const auto& entry : cases) {
    const JsonObject parameters(entry, "gated_attention.json");
    const std::int64_t B = parameters.integer("B"), H = parameters.integer("H");
    const std::int64_t T = parameters.integer("T"), D = parameters.integer("D");
    const std::string prefix = fmt::format("{}.", parameters.integer("case"));
    for (const char* name : {"q", "k", "v", "y", "grad_q", "grad_k", "grad_v", "grad_y"})
      EXPECT_EQ(file.at(prefix + name).shape, (Shape{B, H, T, D})) << prefix << name;
    EXPECT_EQ(file.at(prefix + "gate").shape, (Shape{B, H, T, T})) << prefix;
  }
}

// A folder in which to put wrong things, with tensors of one byte each.
class CheckpointFolder : public testing::Test {
 protected:
  void shard(std::string_view file, const std::vector<std::string>& names) {
    std::vector<TensorToWrite> tensors;
    for (const std::string& name : names)
      tensors.push_back(tensor_to_write(name, TensorKind::kU8, {1}, io_test::bytes_of("x")));
    write_safetensors(folder_ / file, std::move(tensors));
  }
  void index(std::string_view weight_map) {
    write_file(folder_ / "model.safetensors.index.json",
               fmt::format(R"({{"metadata": {{"total_size": 2}}, "weight_map": {}}})", weight_map));
  }
  std::string message() const {
    return error_of([&] { Checkpoint::open(folder_.path()); });
  }

  const TemporaryFolder folder_;
  const std::string prefix_ = "checkpoint: '" + folder_.path().string() + "'";
  const std::string index_ =
      "checkpoint: '" + (folder_ / "model.safetensors.index.json").string() + "'";
};

TEST_F(CheckpointFolder, OpensOneFile) {
  shard("model.safetensors", {"b", "a"});
  const Checkpoint checkpoint = Checkpoint::open(folder_.path());
  EXPECT_EQ(checkpoint.tensors()[0].name, "a");
  EXPECT_EQ(checkpoint.find("b"), &checkpoint.tensors()[1]);
  EXPECT_EQ(checkpoint.find("c"), nullptr);
  EXPECT_EQ(error_of([&] { checkpoint.at("c"); }),
            prefix_ + " has no tensor 'c'; nearest: 'a', 'b'");
}

TEST_F(CheckpointFolder, PrefersTheSingleFile) {
  shard("model.safetensors", {"whole"});
  index(R"({"a": "missing.safetensors"})");
  EXPECT_NE(Checkpoint::open(folder_.path()).find("whole"), nullptr);
}

TEST_F(CheckpointFolder, OpensShardsWithTensorsTheIndexDoesNotList) {
  shard("1.safetensors", {"b", "extra"});
  shard("2.safetensors", {"a"});
  index(R"({"a": "2.safetensors", "b": "1.safetensors"})");
  const Checkpoint checkpoint = Checkpoint::open(folder_.path());
  ASSERT_EQ(checkpoint.tensors().size(), 3u);
  EXPECT_EQ(checkpoint.tensors()[2].name, "extra");
}

TEST_F(CheckpointFolder, WithoutWeightsSaysWhatWasLookedFor) {
  EXPECT_EQ(message(), prefix_ +
                           " has neither model.safetensors nor model.safetensors.index.json, "
                           "and not pytorch_model.bin or its index either");
}

TEST_F(CheckpointFolder, MustBeAFolder) {
  const std::string right =
      " is not a folder; give the one that holds config.json and "
      "model.safetensors";
  const fs::path missing = folder_ / "none";
  EXPECT_EQ(error_of([&] { Checkpoint::open(missing); }),
            "checkpoint: '" + missing.string() + "'" + right);
  shard("model.safetensors", {"a"});
  const fs::path file = folder_ / "model.safetensors";
  EXPECT_EQ(error_of([&] { Checkpoint::open(file); }),
            "checkpoint: '" + file.string() + "'" + right);
}

TEST_F(CheckpointFolder, MissingShard) {
  shard("1.safetensors", {"a"});
  index(R"({"a": "1.safetensors", "b": "2.safetensors"})");
  EXPECT_EQ(message(), index_ + " names the shard '2.safetensors', which is not in the folder");
}

TEST_F(CheckpointFolder, TensorOfTheIndexIsNotInItsShard) {
  shard("1.safetensors", {"a"});
  shard("2.safetensors", {"b"});
  index(R"({"a": "1.safetensors", "b": "2.safetensors", "c": "2.safetensors"})");
  EXPECT_EQ(message(),
            index_ + " lists tensor 'c' in the shard '2.safetensors', which does not hold it");
  index(R"({"a": "2.safetensors", "b": "1.safetensors"})");
  EXPECT_EQ(message(),
            index_ + " lists tensor 'a' in the shard '2.safetensors', which does not hold it");
}

TEST_F(CheckpointFolder, TensorInTwoShards) {
  shard("1.safetensors", {"a", "b"});
  shard("2.safetensors", {"b"});
  index(R"({"a": "1.safetensors", "b": "2.safetensors"})");
  EXPECT_EQ(message(),
            prefix_ + ": tensor 'b' is in two shards, '1.safetensors' and '2.safetensors'");
}

TEST_F(CheckpointFolder, BrokenShardIsNamed) {
  shard("1.safetensors", {"a"});
  write_file(folder_ / "2.safetensors", "short");
  index(R"({"a": "1.safetensors", "b": "2.safetensors"})");
  EXPECT_EQ(message(), "safetensors: '" + (folder_ / "2.safetensors").string() +
                           "': 5 bytes long, too short for the 8 bytes of the header length");
}

TEST(ShardIndex, ShardsAreFileNames) {
  for (const std::string bad :
       {"../x", "/etc/passwd", "a/b", "..", ".", "", "a\\\\b", "a\\u0000b"}) {
    const std::string message =
        error_of([&] { parse_weight_map(R"({"weight_map":{"t":")" + bad + "\"}}", "i.json"); });
    EXPECT_TRUE(message.starts_with("checkpoint: 'i.json': tensor 't' is mapped to '")) << message;
    EXPECT_TRUE(message.ends_with("', should be a plain file name, without folders")) << message;
  }
}

TEST(ShardIndex, WrongStructure) {
  const auto message = [](std::string_view text) {
    return error_of([&] { parse_weight_map(text, "i.json"); });
  };
  EXPECT_EQ(message("[]"), "json: 'i.json': holds an array, should hold an object");
  EXPECT_EQ(message(R"({"weights": {}})"),
            "json: 'i.json': key 'weight_map' is missing; nearest keys there: 'weights'");
  EXPECT_EQ(message(R"({"weight_map": []})"),
            "json: 'i.json': key 'weight_map' is an array, should be an object");
  EXPECT_EQ(message(R"({"weight_map": {}})"), "checkpoint: 'i.json': weight_map is empty");
  EXPECT_EQ(message(R"({"weight_map": {"a": 1}})"),
            "checkpoint: 'i.json': tensor 'a' is mapped to number, should be a file name");
  EXPECT_EQ(message(R"({"weight_map": {"a": "x", "a": "y"}})"),
            "json: 'i.json': byte 28: the key 'a' appears twice in one object");
}

}  // namespace
}  // namespace filigree
