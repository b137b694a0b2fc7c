// Transcoders in 8 bits, and transcoders written anew from files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "features/files/files_test_support.h"
#include "features/files/layouts.h"
#include "io/folder_checksums.h"
#include "io/matrix_type.h"
#include "support/errors.h"
#include "support/files.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::int64_t kWidth = 16, kFeatures = 40;

void expect_close(const Tensor& read, const Tensor& wanted) {
  ASSERT_EQ(read.elements(), wanted.elements());
  for (std::int64_t begin = 0; begin < read.elements(); begin += kWidth) {
    float largest = 0.0f;
    for (std::int64_t i = begin; i < begin + kWidth; ++i)
      largest = std::max(largest, std::abs(wanted.f32()[i]));
    for (std::int64_t i = begin; i < begin + kWidth; ++i)
      ASSERT_NEAR(read.f32()[i], wanted.f32()[i], 0.50001f * largest / 127.0f) << i;
  }
}

// All tensors of a file, after `change` was done to them.
void change_file(const fs::path& path,
                 const std::function<void(std::vector<TensorToWrite>&)>& change) {
  const std::string bytes = read_file(path);
  const SafetensorsFile file = SafetensorsFile::from_bytes(
      std::as_bytes(std::span(bytes.data(), bytes.size())), path.string());
  std::vector<TensorToWrite> tensors;
  for (const TensorView& view : file.tensors())
    tensors.push_back(tensor_to_write(view.name, view.kind, view.shape, view.data));
  change(tensors);
  write_safetensors(path, std::move(tensors));
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> all;
  for (const std::string& file : files_in(folder)) all[file] = read_file(folder / file);
  return all;
}

TEST(EightBitFiles, ValuesLieWithinHalfAScale) {
  for (const TranscoderKind kind : {TranscoderKind::kCrossLayer, TranscoderKind::kPerLayer}) {
    const TemporaryFolder folder;
    const Transcoder transcoder = three_layers(kind, FeatureActivation::kJumpRelu);
    Tensor& decoder = transcoder.layers()[1].decoder.mutable_value();
    const std::int64_t reach = transcoder.shape().reach(1);
    std::fill_n(decoder.mutable_f32() + 5 * reach * kWidth, kWidth, 0.0f);
    write_transcoder(folder.path(), transcoder, {.dtype = MatrixType::kI8});
    const auto read = open_dictionary(folder.path());
    for (std::int64_t l = 0; l < 3; ++l) {
      const TranscoderLayer& layer = transcoder.layers()[static_cast<std::size_t>(l)];
      const FeatureRows rows = read->rows(l, all_features(kFeatures));
      expect_close(rows.encoder, layer.encoder.value());
      expect_close(rows.decoder, layer.decoder.value());
      EXPECT_EQ(numbers(rows.encoder_bias), numbers(layer.encoder_bias.value()));
      EXPECT_EQ(numbers(rows.threshold), numbers(transcoder.threshold(l).value()));
      if (layer.skip.defined()) {
        EXPECT_EQ(numbers(read->skip(l)), numbers(layer.skip.value()));
      }
    }
    const FeatureRows row = read->rows(1, std::vector<std::int32_t>{5});
    EXPECT_THAT(std::vector<float>(row.decoder.f32(), row.decoder.f32() + kWidth), Each(0.0f));
    // By blocks, and all of it in memory.
    expect_equal(*dictionary_of(open_circuit_tracer(folder.path()), 16 * 9), *read);
    EXPECT_EQ(numbers(load_transcoder(folder.path()).transcoder.layers()[1].decoder.value()),
              numbers(read->rows(1, all_features(kFeatures)).decoder));
  }
}

TEST(EightBitFiles, WrittenAgainTheyHaveEqualBits) {
  const TemporaryFolder folder;
  for (const TranscoderKind kind : {TranscoderKind::kCrossLayer, TranscoderKind::kPerLayer}) {
    const fs::path first = folder / std::string(name_of(kind));
    const Transcoder transcoder = three_layers(kind, FeatureActivation::kJumpRelu);
    write_transcoder(first, transcoder,
                     {.model_name = "m", .dtype = MatrixType::kI8, .scan = "pages"});
    rewrite_transcoder(first, first / "again", {.dtype = MatrixType::kI8});
    EXPECT_EQ(contents(first / "again"), contents(first));
    // Also by way of what other programs read.
    rewrite_transcoder(first, first / "wide", {.dtype = MatrixType::kF32});
    expect_equal(*open_dictionary(first / "wide"), *open_dictionary(first));
    rewrite_transcoder(first / "wide", first / "back", {.dtype = MatrixType::kI8});
    EXPECT_EQ(contents(first / "back"), contents(first));
    for (const CheckedFile& file : check_files(first, ChecksumDepth::kContents))
      EXPECT_EQ(file.problem, "") << file.name;
  }
}

// 127 * scale is rounded, in one of 128 cases to where the scale would be another one.
TEST(EightBitFiles, ScalesFollowFromWhatIsRead) {
  float largest = 1.0f;
  for (int i = 0; i < 100000; ++i) {
    largest = std::nextafter(largest, 3.0f) + (i % 7 == 0 ? 1e-5f : 0.0f);
    const float scale = row_scale(std::vector<float>{0.25f, -largest});
    ASSERT_EQ(row_scale(std::vector<float>{127.0f * scale}), scale) << largest;
    ASSERT_NEAR(scale, largest / 127.0f, 2e-9f);
  }
  EXPECT_EQ(row_scale(std::vector<float>{0.0f, -0.0f}), 0.0f);
  for (const float largest_of_all : {std::numeric_limits<float>::max(), 1e-44f})
    EXPECT_TRUE(std::isfinite(127.0f * row_scale(std::vector<float>{largest_of_all})));
  std::int8_t integers[5];
  to_integers(std::vector<float>{0.5f, 1.5f, -2.5f, 127.0f, -126.6f}, 1.0f, integers);
  EXPECT_THAT(integers, ::testing::ElementsAre(0, 2, -2, 127, -127));
}

TEST(EightBitFiles, AreNotTakenForNumbersByOthers) {
  const TemporaryFolder folder;
  write_transcoder(folder.path(), three_layers(TranscoderKind::kCrossLayer, {}),
                   {.dtype = MatrixType::kI8});
  EXPECT_THAT(read_file(folder / "config.yaml"), HasSubstr("matrix_type: i8\n"));
  const TensorFile encoder = TensorFile::open(folder / "W_enc_0.safetensors");
  EXPECT_FALSE(encoder.has("W_enc_0"));
  EXPECT_TRUE(encoder.has("W_enc_0_i8"));
  // As they would look for it.
  fs::remove(folder / "checksums.json");
  write_file(folder / "config.yaml", "model_kind: cross_layer_transcoder\n");
  EXPECT_THAT(error_of([&] { open_dictionary(folder.path()); }),
              HasSubstr("has no tensor 'W_enc_0'"));
  write_file(folder / "config.yaml", "model_kind: cross_layer_transcoder\nmatrix_type: i4\n");
  EXPECT_THAT(error_of([&] { open_dictionary(folder.path()); }),
              HasSubstr("matrix_type 'i4' is not known; it is i8"));
}

TEST(EightBitFiles, ErrorsNameFileAndTensor) {
  const TemporaryFolder folder;
  const Transcoder transcoder = three_layers(TranscoderKind::kCrossLayer, {});
  const auto error_after = [&](const std::string& tensor,
                               const std::function<void(TensorToWrite&)>& change) {
    write_transcoder(folder.path(), transcoder, {.dtype = MatrixType::kI8});
    fs::remove(folder / "checksums.json");
    change_file(folder / "W_dec_1.safetensors", [&](std::vector<TensorToWrite>& tensors) {
      for (TensorToWrite& one : tensors)
        if (one.name == tensor) change(one);
    });
    const std::string error = error_of([&] { open_dictionary(folder.path()); });
    EXPECT_THAT(error, AllOf(HasSubstr("W_dec_1.safetensors"), HasSubstr("'" + tensor + "'")));
    return error;
  };
  const std::string integers = "W_dec_1_i8", scales = "W_dec_1_scale";
  for (const std::string& name : {integers, scales})
    EXPECT_THAT(error_after(name, [](TensorToWrite& one) { one.name = "other"; }),
                HasSubstr("has no tensor"));
  EXPECT_THAT(error_after(integers,
                          [](TensorToWrite& one) {
                            one.shape = {40, 1, 32};
                          }),
              HasSubstr("is [40, 1, 32], should be [40, 2, 16]"));
  EXPECT_THAT(error_after(scales, [](TensorToWrite& one) { one.shape = {80}; }),
              HasSubstr("is [80], should be [40, 2]"));
  EXPECT_THAT(error_after(integers, [](TensorToWrite& one) { one.kind = TensorKind::kU8; }),
              HasSubstr("is U8, should be I8"));
  EXPECT_THAT(error_after(scales, [](TensorToWrite& one) { one.kind = TensorKind::kI32; }),
              HasSubstr("is I32, should be F32"));
  for (const float wrong :
       {-0.5f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> values(80, 0.5f);
    values[71] = wrong;
    EXPECT_THAT(error_after(scales,
                            [&](TensorToWrite& one) {
                              one.data = [&] { return std::as_bytes(std::span(values)); };
                            }),
                AllOf(HasSubstr("has the scale"), HasSubstr("finite and not negative")));
  }
  transcoder.layers()[1].encoder.mutable_value().mutable_f32()[7] = std::nanf("");
  EXPECT_THAT(
      error_of([&] { write_transcoder(folder.path(), transcoder, {.dtype = MatrixType::kI8}); }),
      HasSubstr("W_enc_1 has a value that is not finite"));
}

// Matrices that lie by columns, one for each pair of layers; and top-k, which stays so.
TEST(EightBitFiles, EveryLayoutCanBeWrittenAnew) {
  const TemporaryFolder folder;
  constexpr std::int64_t L = 3, d = 8, F = 10;
  write_tensors(folder / "forge" / "clt.safetensors",
                {{"W_enc", random_tensor({L, d, F}, 1)},
                 {"b_enc", random_tensor({L, F}, 2)},
                 {"W_dec", random_tensor({6, F, d}, 3)},
                 {"b_dec", random_tensor({6, d}, 4)},
                 {"log_threshold", random_tensor({L, F}, 5)},
                 {"estimated_norm_scaling_factor_in", Tensor::full({L}, 3.0f)},
                 {"estimated_norm_scaling_factor_out", Tensor::full({L}, 0.7f)}});
  const RewrittenTranscoder written =
      rewrite_transcoder(folder / "forge", folder / "own", {.model_name = "gpt2"});
  EXPECT_EQ(written.shape.layers, L);
  EXPECT_THAT(read_file(folder / "own" / "config.yaml"), HasSubstr("model_name: \"gpt2\""));
  expect_equal(*open_dictionary(folder / "own"), *open_dictionary(folder / "forge"));

  write_transcoder(folder / "top", three_layers(TranscoderKind::kPerLayer, {}), {.k = 5});
  rewrite_transcoder(folder / "top", folder / "again", {});
  EXPECT_EQ(open_dictionary(folder / "again")->activation(), FeatureActivation::kTopK);
  expect_equal(*open_dictionary(folder / "again"), *open_dictionary(folder / "top"));
}

// 288 MB in all; the largest matrix takes 24 MB in 8 bits.
TEST(EightBitFiles, AreWrittenAndReadInLittleMemory) {
  constexpr std::int64_t F = 8192, d = 1024, layers = 3;
  const TemporaryFolder folder;
  Tensor bias = Tensor::zeros({F});
  bias.mutable_f32()[6001] = 3.0f;
  fs::create_directory(folder / "wide");
  for (std::int64_t l = 0; l < layers; ++l)
    write_layer_of_holes(folder / "wide", l, layers - l, bias, d);
  write_file(folder / "wide" / "config.yaml", "model_kind: cross_layer_transcoder\n");
  if (!has_holes(folder / "wide" / "W_dec_0.safetensors") || megabytes("VmHWM") < 0)
    GTEST_SKIP() << "the file system has no files with holes, or the system does not tell memory";
  const double before = megabytes("VmHWM");
  rewrite_transcoder(folder / "wide", folder / "small", {.dtype = MatrixType::kI8});
  EXPECT_LT(megabytes("VmHWM") - before, 120);
  const double written = megabytes("VmHWM");
  const auto read = open_dictionary(folder / "small");
  const SparseCode code = read->encode(0, Tensor::full({4, d}, 1.0f));
  EXPECT_EQ(active_features(code), std::vector<std::int32_t>{6001});
  EXPECT_THAT(numbers(read->rows(0, active_features(code)).decoder), Each(0.0f));
  EXPECT_LT(megabytes("VmHWM") - written, 40);
}

}  // namespace
}  // namespace filigree
