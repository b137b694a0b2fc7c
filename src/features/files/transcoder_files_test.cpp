// Transcoders written and read again, and read from every layout that others write.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "features/files/files_test_support.h"
#include "features/files/layouts.h"
#include "filigree/features.h"
#include "io/folder_checksums.h"
#include "io/npz.h"
#include "support/errors.h"
#include "support/golden_transcoder.h"
#include "support/run_python.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// [rows, columns] -> [columns, rows]
Tensor transposed(const Tensor& x) {
  Tensor y = Tensor::empty({x.size(1), x.size(0)});
  for (std::int64_t r = 0; r < x.size(0); ++r)
    for (std::int64_t c = 0; c < x.size(1); ++c)
      y.mutable_f32()[c * x.size(0) + r] = x.f32()[r * x.size(1) + c];
  return y;
}

TEST(TranscoderFiles, WhatIsWrittenIsReadWithEqualBits) {
  for (const TranscoderKind kind : {TranscoderKind::kCrossLayer, TranscoderKind::kPerLayer})
    for (const FeatureActivation activation :
         {FeatureActivation::kJumpRelu, FeatureActivation::kRelu}) {
      const TemporaryFolder folder;
      const Transcoder transcoder = three_layers(kind, activation);
      write_transcoder(folder.path(), transcoder,
                       {.model_name = "a \"model\"", .hooks = {"hook_resid_mid", "hook_mlp_out"}});
      const auto read = open_dictionary(folder.path());
      EXPECT_EQ(read->activation(), activation);
      EXPECT_EQ(read->hooks().input_of(2), "blocks.2.hook_resid_mid");
      expect_equal(*read, *dictionary_of(transcoder));
      // In blocks of a few features, and all of it in memory.
      expect_equal(*dictionary_of(open_circuit_tracer(folder.path()), 16 * 9), *read);
      const LoadedTranscoder loaded = load_transcoder(folder.path());
      EXPECT_EQ(numbers(loaded.transcoder.layers()[1].decoder.value()),
                numbers(transcoder.layers()[1].decoder.value()));
      EXPECT_EQ(numbers(loaded.transcoder.decoder_bias().value()),
                numbers(transcoder.decoder_bias().value()));
    }
}

TEST(TranscoderFiles, RoundsToBf16) {
  const TemporaryFolder folder;
  const Transcoder transcoder =
      three_layers(TranscoderKind::kCrossLayer, FeatureActivation::kJumpRelu);
  write_transcoder(folder.path(), transcoder, {.dtype = MatrixType::kBf16});
  const auto read = open_dictionary(folder.path());
  const TranscoderLayer& layer = transcoder.layers()[1];
  const FeatureRows rows = read->rows(1, all_features(40));
  EXPECT_EQ(numbers(rows.decoder), numbers(layer.decoder.value().to(DType::kBf16).to(DType::kF32)));
  EXPECT_EQ(numbers(rows.encoder), numbers(layer.encoder.value().to(DType::kBf16).to(DType::kF32)));
  EXPECT_EQ(numbers(rows.threshold), numbers(transcoder.threshold(1).value()));
}

TEST(TranscoderFiles, TopKBecomesThresholds) {
  const TemporaryFolder folder;
  const Transcoder transcoder = three_layers(TranscoderKind::kPerLayer, FeatureActivation::kTopK);
  EXPECT_THAT(error_of([&] { write_transcoder(folder.path(), transcoder, {}); }),
              HasSubstr("0 thresholds for 3 layers of top-k"));
  write_transcoder(folder.path(), transcoder, {.thresholds = {0.5f, 0.25f, 0.125f}});
  const auto read = open_dictionary(folder.path());
  EXPECT_EQ(read->activation(), FeatureActivation::kJumpRelu);
  EXPECT_THAT(numbers(read->rows(2, all_features(40)).threshold),
              ElementsAreArray(std::vector<float>(40, 0.125f)));
}

TEST(TranscoderFiles, AFolderIsATranscoderOnceItsConfigurationIsThere) {
  const TemporaryFolder folder;
  const Transcoder cross = three_layers(TranscoderKind::kCrossLayer, FeatureActivation::kJumpRelu);
  const Transcoder flat = three_layers(TranscoderKind::kPerLayer, FeatureActivation::kJumpRelu);
  write_transcoder(folder.path(), cross, {});
  write_transcoder(folder.path(), flat, {});  // nothing of the other one stays
  EXPECT_EQ(folder.file_count(), 5u);
  expect_equal(*open_dictionary(folder.path()), *dictionary_of(flat));
  fs::remove(folder / "config.yaml");
  EXPECT_THAT(error_of([&] { open_dictionary(folder.path()); }),
              HasSubstr("not written to its end"));
  EXPECT_THAT(error_of([&] { open_dictionary(folder / "nowhere"); }), HasSubstr("there is no"));
  const TemporaryFolder empty;
  EXPECT_THAT(error_of([&] { open_dictionary(empty.path()); }), HasSubstr("is none: no config"));
}

// One bit at a place of a file.
void damage(const fs::path& file, std::uint64_t at) {
  std::string bytes = read_file(file);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  write_file(file, bytes);
}

TEST(TranscoderFiles, DamageIsNoticedWhereItIsRead) {
  const TemporaryFolder folder;
  // A row of the first layer's decoder has 512 bytes, so that row 200 is in its second block.
  const Transcoder transcoder =
      random_transcoder({TranscoderKind::kCrossLayer, 2, 64, 300, false}, FeatureActivation::kRelu);
  const auto rows_of = [&](std::int32_t feature) {
    return error_of([&] { open_dictionary(folder.path())->rows(0, std::span(&feature, 1)); });
  };
  write_transcoder(folder.path(), transcoder, {});
  EXPECT_EQ(rows_of(299), "no error");
  const fs::path decoder = folder / "W_dec_0.safetensors";
  const std::uint64_t size = fs::file_size(decoder);
  damage(decoder, size - 100 * 512 + 5);
  EXPECT_EQ(rows_of(0), "no error");
  EXPECT_THAT(rows_of(200), AllOf(HasSubstr("W_dec_0.safetensors' has the checksum "),
                                  HasSubstr("in bytes 65536 to 131072")));
  EXPECT_THAT(error_of([&] { load_transcoder(folder.path()); }), HasSubstr("W_dec_0"));
  const TemporaryFolder out;
  EXPECT_THAT(error_of([&] { rewrite_transcoder(folder.path(), out.path(), {}); }),
              HasSubstr("W_dec_0"));
  EXPECT_FALSE(fs::exists(out / "config.yaml"));
  // Where only the files have checksums, as older versions wrote them, any row tells.
  write_transcoder(folder.path(), transcoder, {});
  write_checksums(folder.path(), files_in(folder.path()));
  EXPECT_EQ(rows_of(0), "no error");
  damage(decoder, size - 100 * 512 + 5);
  EXPECT_THAT(rows_of(0), HasSubstr("W_dec_0.safetensors' has the checksum "));
}

TEST(TranscoderFiles, DamageOfWhatIsReadAtOnceIsNoticedAtOnce) {
  const TemporaryFolder folder;
  for (const TranscoderKind kind : {TranscoderKind::kCrossLayer, TranscoderKind::kPerLayer}) {
    const Transcoder transcoder = three_layers(kind, FeatureActivation::kJumpRelu);
    const auto opening = [&] { return error_of([&] { open_dictionary(folder.path()); }); };
    write_transcoder(folder.path(), transcoder, {});
    EXPECT_EQ(opening(), "no error");
    damage(folder / "config.yaml", 14);
    EXPECT_THAT(opening(), HasSubstr("config.yaml' has the checksum"));
    write_transcoder(folder.path(), transcoder, {});
    const std::string encoder =
        kind == TranscoderKind::kCrossLayer ? "W_enc_2.safetensors" : "layer_2.safetensors";
    damage(folder / encoder, fs::file_size(folder / encoder) - 3);
    EXPECT_THAT(opening(), HasSubstr(encoder + "' has the checksum"));
    fs::remove(folder / encoder);
    EXPECT_THAT(opening(), HasSubstr(encoder + "' is missing"));
  }
}

TEST(TranscoderFiles, GoldenActivations) {
  const TemporaryFolder folder;
  write_transcoder(folder.path(), golden_transcoder(), {});
  const auto read = open_dictionary(folder.path());
  const GoldenRun run = golden_run();
  const Tensor act = golden_tensor(clt_file("activations.safetensors"), "act");
  for (std::int64_t l = 0; l < kCltLayers; ++l)
    EXPECT_LT(relative_error(dense_code(read->encode(l, layer_rows(run.inputs, l))).values(),
                             to_doubles(layer_rows(act, l))),
              1e-5);
}

// A script that knows nothing of this library loads what was written.
TEST(TranscoderFiles, NumPyComputesTheSameFromTheFiles) {
  const TemporaryFolder folder;
  write_transcoder(folder.path(), golden_transcoder(), {.model_name = "golden"});
  const std::optional<int> code =
      run_python("transcoder_files/recompute.py",
                 fmt::format("'{}' '{}/clt'", folder.path().string(), golden_folder().string()));
  if (!code) GTEST_SKIP() << "no python3 with NumPy (Debian: python3-numpy)";
  EXPECT_EQ(*code, 0);
}

TEST(TranscoderFiles, ReadsCheckpointsOfCltForge) {
  const TemporaryFolder folder;
  constexpr std::int64_t L = 3, d = 8, F = 10, pairs = 6;
  const Tensor encoder = random_tensor({L, d, F}, 1), encoder_bias = random_tensor({L, F}, 2),
               decoder = random_tensor({pairs, F, d}, 3),
               decoder_bias = random_tensor({pairs, d}, 4),
               log_threshold = random_tensor({L, F}, 5);
  const Tensor in = Tensor::from({L}, std::vector<float>{2, 4, 0.5f}),
               out = Tensor::from({L}, std::vector<float>{0.5f, 0.25f, 2});
  write_tensors(folder / "checkpoint" / "clt.safetensors",
                {{"W_enc", encoder},
                 {"b_enc", encoder_bias},
                 {"W_dec", decoder},
                 {"b_dec", decoder_bias},
                 {"log_threshold", log_threshold},
                 {"estimated_norm_scaling_factor_in", in},
                 {"estimated_norm_scaling_factor_out", out}});
  for (const char* path : {"checkpoint", "checkpoint/clt.safetensors"}) {
    const auto read = open_dictionary(folder / path);
    EXPECT_EQ(read->hooks().input, "ln2.hook_normalized");
    const FeatureRows rows = read->rows(1, std::vector<std::int32_t>{7, 2});
    // Pairs (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2).
    for (std::int64_t w = 0; w < d; ++w) {
      EXPECT_EQ(rows.encoder.f32()[w], 4 * encoder.f32()[(1 * d + w) * F + 7]);
      EXPECT_EQ(rows.decoder.f32()[0 * d + w], decoder.f32()[(3 * F + 7) * d + w] / 0.25f);
      EXPECT_EQ(rows.decoder.f32()[1 * d + w], decoder.f32()[(4 * F + 7) * d + w] / 2);
      EXPECT_EQ(rows.decoder.f32()[2 * d + w], decoder.f32()[(3 * F + 2) * d + w] / 0.25f);
      EXPECT_FLOAT_EQ(read->decoder_bias(2).f32()[w],
                      (decoder_bias.f32()[2 * d + w] + decoder_bias.f32()[4 * d + w] +
                       decoder_bias.f32()[5 * d + w]) /
                          2);
    }
    EXPECT_EQ(rows.encoder_bias.f32()[1], encoder_bias.f32()[F + 2]);
    EXPECT_FLOAT_EQ(rows.threshold.f32()[1], std::exp(log_threshold.f32()[F + 2]));
  }
}

TEST(TranscoderFiles, ReadsFoldersOfSparsify) {
  const TemporaryFolder folder;
  const Transcoder wanted = three_layers(TranscoderKind::kPerLayer, FeatureActivation::kTopK);
  for (std::size_t l = 0; l < 3; ++l) {
    const TranscoderLayer& layer = wanted.layers()[l];
    const fs::path own = folder / fmt::format("layers.{}.mlp", l);
    write_tensors(
        own / "sae.safetensors",
        {{"encoder.weight", layer.encoder.value()},
         {"encoder.bias", layer.encoder_bias.value()},
         {"W_dec", layer.decoder.value()},
         {"b_dec", layer_rows(wanted.decoder_bias().value(), static_cast<int>(l)).reshape({16})},
         {"W_skip", layer.skip.value()}});
    write_file(own / "cfg.json", R"({"k": 5, "transcode": true, "activation": "topk"})");
  }
  const auto read = open_dictionary(folder.path());
  EXPECT_EQ(read->activation(), FeatureActivation::kTopK);
  expect_equal(*read, *dictionary_of(wanted, {}, 5));
  // The largest of each block, then of all.
  expect_equal(*dictionary_of(open_sparsify(folder.path()), 16 * 9), *dictionary_of(wanted, {}, 5));
  write_file(folder / "layers.1.mlp" / "cfg.json", R"({"k": 5})");
  EXPECT_THAT(error_of([&] { open_dictionary(folder.path()); }), HasSubstr("an autoencoder"));
  fs::remove_all(folder / "layers.1.mlp");
  EXPECT_THAT(error_of([&] { open_dictionary(folder.path()); }), HasSubstr("has no layer 1"));
}

TEST(TranscoderFiles, ReadsArchivesOfGemmaScope) {
  const TemporaryFolder folder;
  Transcoder wanted({TranscoderKind::kPerLayer, 2, 16, 20, false}, FeatureActivation::kJumpRelu,
                    {0, 20});
  for (std::int64_t l = 0; l < 2; ++l) {
    TranscoderLayer& layer = wanted.layers()[static_cast<std::size_t>(l)];
    layer.encoder.mutable_value() = random_tensor({20, 16}, static_cast<std::uint64_t>(11 + l));
    layer.decoder.mutable_value() = random_tensor({20, 16}, static_cast<std::uint64_t>(13 + l));
    const fs::path own = folder / fmt::format("layer_{}/width_20/average_l0_7", l);
    fs::create_directories(own);
    NpzWriter npz(own / "params.npz");
    const auto add = [&](const char* name, std::vector<std::int64_t> shape, const Tensor& tensor) {
      npz.add(name, kind_of(tensor.dtype()), std::move(shape), {tensor.raw(), tensor.bytes()});
    };
    add("W_enc", {16, 20}, transposed(layer.encoder.value()));
    add("W_dec", {20, 16}, layer.decoder.value());
    add("b_enc", {20}, layer.encoder_bias.value());
    add("b_dec", {16}, Tensor::zeros({16}));
    add("threshold", {20}, Tensor::full({20}, 1.0f).to(DType::kF16));
    npz.commit();
  }
  expect_equal(*open_dictionary(folder.path()), *dictionary_of(wanted));
  expect_equal(*dictionary_of(open_gemma_scope(folder.path()), 16 * 9), *dictionary_of(wanted));
  // The same files listed as circuit-tracer does.
  write_file(folder / "config.yaml",
             "model_kind: transcoder_set\nfeature_input_hook: mlp.hook_in\n"
             "feature_output_hook: mlp.hook_out\ntranscoders:\n"
             "  - layer_0/width_20/average_l0_7/params.npz\n"
             "  - layer_1/width_20/average_l0_7/params.npz\n");
  const auto listed = open_dictionary(folder.path());
  expect_equal(*listed, *dictionary_of(wanted));
  EXPECT_EQ(listed->hooks().input, "ln2.hook_normalized");
  EXPECT_EQ(listed->hooks().output, "hook_mlp_out");
}

TEST(TranscoderFiles, ErrorsNameFileAndTensor) {
  const TemporaryFolder folder;
  write_transcoder(folder.path(), golden_transcoder(), {});
  fs::remove(folder / "checksums.json");
  const auto opening = [&] { return error_of([&] { open_dictionary(folder.path()); }); };
  const Tensor wrong = Tensor::zeros({kCltFeatures, 2, kCltWidth});
  write_tensors(folder / "W_dec_1.safetensors", {{"W_dec_1", wrong}});
  EXPECT_THAT(opening(), AllOf(HasSubstr("W_dec_1.safetensors"), HasSubstr("tensor 'W_dec_1' is "
                                                                           "[24, 2, 32], should be "
                                                                           "[24, 3, 32]")));
  write_tensors(folder / "W_dec_1.safetensors", {{"W_dec", wrong}});
  EXPECT_THAT(opening(), HasSubstr("has no tensor 'W_dec_1'; nearest: 'W_dec'"));
  write_tensors(folder / "W_dec_1.safetensors",
                {{"W_dec_1", Tensor::zeros({kCltFeatures, 3, kCltWidth}, DType::kI32)}});
  EXPECT_THAT(opening(), HasSubstr("tensor 'W_dec_1' is I32; F32, BF16 and F16"));
  fs::remove(folder / "W_dec_1.safetensors");
  EXPECT_THAT(opening(), HasSubstr("W_dec_1.safetensors"));
  write_file(folder / "config.yaml", "model_kind: autoencoder\n");
  EXPECT_THAT(opening(), HasSubstr("model_kind 'autoencoder' is not known"));
  write_file(folder / "config.yaml", "model_kind: transcoder_set\ntranscoders:\n- hf://a/b\n");
  EXPECT_THAT(opening(), HasSubstr("download it"));
  write_transcoder(folder.path(), golden_transcoder(), {});
  const auto read = open_dictionary(folder.path());
  EXPECT_THAT(error_of([&] { read->rows(0, std::vector<std::int32_t>{24}); }),
              HasSubstr("no feature 24"));
  EXPECT_THAT(error_of([&] {
                read->encode(4, Tensor::zeros({1, kCltWidth}));
              }),
              HasSubstr("no layer 4"));
}

// 512 MB of encoder and 6 GB of decoders, of which one feature is active.
TEST(TranscoderFiles, ReadsOnlyTheRowsThatAreNeeded) {
  constexpr std::int64_t F = 65536, d = 2048, layers = 4;
  const TemporaryFolder folder;
  std::uint64_t data = 0;
  for (std::int64_t l = 0; l < layers; ++l) {
    Tensor bias = Tensor::zeros({F});
    if (l == layers - 1) bias.mutable_f32()[60001] = 3.0f;
    data = write_layer_of_holes(folder.path(), l, layers - l, bias, d);
  }
  if (!has_holes(folder / "W_dec_0.safetensors") || megabytes("VmHWM") < 0)
    GTEST_SKIP() << "the file system has no files with holes, or the system does not tell memory";
  const std::vector<float> row(static_cast<std::size_t>(d), 0.5f);
  const int file = ::open((folder / "W_dec_3.safetensors").c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(file, row.data(), row.size() * 4,
                     static_cast<off_t>(data) + std::int64_t{60001} * d * 4),
            d * 4);
  ::close(file);
  write_file(folder / "config.yaml", "model_kind: cross_layer_transcoder\n");

  const double before = megabytes("VmHWM");
  const auto read = open_dictionary(folder.path());
  const SparseCode code = read->encode(3, Tensor::full({4, d}, 1.0f));
  EXPECT_EQ(code.entries(), 4);
  EXPECT_EQ(active_features(code), std::vector<std::int32_t>{60001});
  const FeatureRows rows = read->rows(3, active_features(code));
  EXPECT_EQ(numbers(rows.decoder), row);
  EXPECT_LT(megabytes("VmHWM") - before, 200);
}

}  // namespace
}  // namespace filigree
