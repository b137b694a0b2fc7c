// Models whose matrices are stored in 8 bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "filigree/model.h"
#include "io/checkpoint.h"
#include "io/folder_checksums.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/models.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Model> small_model() {
  return make_model(parse_model_config({{"model_type", "gpt2"},
                                        {"n_layer", 2},
                                        {"n_head", 3},
                                        {"n_embd", 24},
                                        {"n_positions", 32},
                                        {"vocab_size", 50}},
                                       "test"),
                    1);
}

TEST(EightBitModel, SavedInEightBitsItsMatricesAreNearAndItsVectorsTheSame) {
  const TemporaryFolder folder;
  const auto model = small_model();
  save_model(*model, folder.path(), {.dtype = MatrixType::kI8});
  EXPECT_FALSE(std::filesystem::exists(folder.path() / kWeightsFile));
  const auto loaded = load_model(folder.path());
  for (std::size_t p = 0; p < model->parameters().size(); ++p) {
    const NamedParameter& was = model->parameters()[p];
    const Tensor& now = loaded->parameters()[p].variable.value();
    const std::int64_t width = was.variable.shape().extents().back();
    for (std::int64_t i = 0; i < now.elements(); ++i) {
      float largest = 0.0f;  // of the row: half a step is the most that rounding moves a number
      for (std::int64_t j = i / width * width; j < (i / width + 1) * width; ++j)
        largest = std::max(largest, std::abs(was.variable.value().f32()[j]));
      const float bound = now.shape().rank() > 1 ? largest * 0.501f / 127.0f : 0.0f;
      ASSERT_NEAR(now.f32()[i], was.variable.value().f32()[i], bound) << was.name << " " << i;
    }
  }
  // Written again it has the same bits; written as f32 nothing of the 8 bits stays.
  const TemporaryFolder second;
  save_model(*loaded, second.path(), {.dtype = MatrixType::kI8});
  EXPECT_EQ(read_file(folder.path() / kEightBitWeightsFile),
            read_file(second.path() / kEightBitWeightsFile));
  save_model(*loaded, folder.path());
  EXPECT_FALSE(std::filesystem::exists(folder.path() / kEightBitWeightsFile));
  const auto wide = load_model(folder.path());
  EXPECT_TRUE(std::ranges::equal(wide->forward(ids(1, 8)).value().values(),
                                 loaded->forward(ids(1, 8)).value().values()));
}

TEST(EightBitModel, EightBitsThatDoNotFitAreRefused) {
  const TemporaryFolder folder;
  const auto model = small_model();
  save_model(*model, folder.path(), {.dtype = MatrixType::kI8});
  std::filesystem::remove(folder.path() / kChecksumsFile);
  const std::filesystem::path weights = folder.path() / kEightBitWeightsFile;
  const std::string good = read_file(weights);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    const std::size_t at = bad.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    write_file(weights, bad.replace(at, from.size(), to));
    return error_of([&] { load_model(folder.path()); });
  };
  EXPECT_THAT(with("transformer.wte.weight_scale", "transformer.wte.weight_scalE"),
              HasSubstr("no tensor 'transformer.wte.weight_scale'"));
  EXPECT_THAT(with("\"I8\"", "\"U8\""), HasSubstr("is U8, should be I8"));
  // A scale that is not a number.
  write_file(weights, good);
  const SafetensorsFile file = SafetensorsFile::open(weights);
  const TensorView& scales = file.at("transformer.wte.weight_scale");
  std::string bad = good;
  const std::size_t at =
      good.find(std::string(reinterpret_cast<const char*>(scales.data.data()), 8));
  ASSERT_NE(at, std::string::npos);
  write_file(weights, bad.replace(at, 4, std::string("\0\0\xC0\x7F", 4)));
  EXPECT_THAT(error_of([&] { load_model(folder.path()); }),
              HasSubstr("they are finite and not negative"));
}

}  // namespace
}  // namespace filigree
