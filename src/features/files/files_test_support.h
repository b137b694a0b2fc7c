// What tests of transcoders' files share.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <numeric>

#include "filigree/features.h"
#include "io/safetensors_writer.h"
#include "support/check_op.h"
#include "support/files.h"
#include "support/random_transcoder.h"
#include "support/temporary_folder.h"

namespace filigree {

inline std::vector<std::int32_t> all_features(std::int64_t count) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

inline std::vector<float> numbers(const Tensor& tensor) {
  return {tensor.values().begin(), tensor.values().end()};
}

// Per-layer ones with a skip.
inline Transcoder three_layers(TranscoderKind kind, FeatureActivation activation) {
  return random_transcoder({kind, 3, 16, 40, kind == TranscoderKind::kPerLayer}, activation);
}

// What both give for the same inputs and for every feature, to the last bit.
inline void expect_equal(const FeatureDictionary& a, const FeatureDictionary& b) {
  ASSERT_EQ(a.shape().layers, b.shape().layers);
  EXPECT_EQ(a.shape().kind, b.shape().kind);
  const std::vector<std::int32_t> all = all_features(a.shape().features);
  const Tensor inputs = random_tensor({5, a.shape().width}, 99, -4.0f, 4.0f);
  for (std::int64_t l = 0; l < a.shape().layers; ++l) {
    const FeatureRows of_a = a.rows(l, all), of_b = b.rows(l, all);
    EXPECT_EQ(numbers(of_a.encoder), numbers(of_b.encoder));
    EXPECT_EQ(numbers(of_a.encoder_bias), numbers(of_b.encoder_bias));
    EXPECT_EQ(numbers(of_a.threshold), numbers(of_b.threshold));
    EXPECT_EQ(of_a.decoder.shape(), of_b.decoder.shape());
    EXPECT_EQ(numbers(of_a.decoder), numbers(of_b.decoder));
    EXPECT_EQ(numbers(a.decoder_bias(l)), numbers(b.decoder_bias(l)));
    ASSERT_EQ(a.skip(l).defined(), b.skip(l).defined());
    if (a.skip(l).defined()) {
      EXPECT_EQ(numbers(a.skip(l)), numbers(b.skip(l)));
    }
    EXPECT_EQ(numbers(dense_code(a.encode(l, inputs))), numbers(dense_code(b.encode(l, inputs))));
    EXPECT_GT(a.encode(l, inputs).entries(), 0);
  }
}

inline void write_tensors(const std::filesystem::path& path,
                          const std::vector<std::pair<std::string, Tensor>>& all) {
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, tensor] : all) {
    const auto extents = tensor.shape().extents();
    tensors.push_back(tensor_to_write(name, kind_of(tensor.dtype()),
                                      {extents.begin(), extents.end()},
                                      {tensor.raw(), tensor.bytes()}));
  }
  std::filesystem::create_directories(path.parent_path());
  write_safetensors(path, std::move(tensors));
}

// A safetensors file of one tensor of zeros that takes no room; returns where its data begins.
inline std::uint64_t write_hole(const std::filesystem::path& path, const std::string& name,
                                std::vector<std::int64_t> shape) {
  const TensorToWrite tensor = tensor_to_write(name, TensorKind::kF32, shape, {});
  const std::string header = safetensors_header(path.string(), std::span(&tensor, 1), {});
  write_file(path, header);
  std::filesystem::resize_file(path, header.size() + tensor_bytes(name, TensorKind::kF32, shape));
  return header.size();
}

// "VmHWM", "VmRSS": megabytes.
inline double megabytes(const std::string& field) {
#ifdef __SANITIZE_THREAD__
  return -1;  // what ThreadSanitizer remembers of every access is several times as much
#endif
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::stod(line.substr(field.size() + 1)) / 1024;
  return -1;
}

// An encoder and a decoder of zeros for a layer, with these biases; returns where the decoder's
// data begins.
inline std::uint64_t write_layer_of_holes(const std::filesystem::path& folder, std::int64_t layer,
                                          std::int64_t reach, const Tensor& bias,
                                          std::int64_t width) {
  const std::int64_t features = bias.elements();
  const auto name = [layer](const char* what) { return fmt::format("{}_{}", what, layer); };
  // The matrix comes first in the file, as the format's order of names has it.
  const TensorToWrite tensors[] = {
      tensor_to_write(name("W_enc"), TensorKind::kF32, {features, width}, {}),
      tensor_to_write(name("b_dec"), TensorKind::kF32, {width}, {}),
      tensor_to_write(name("b_enc"), TensorKind::kF32, {features}, {})};
  const std::filesystem::path path = folder / (name("W_enc") + ".safetensors");
  write_file(path, safetensors_header(path.string(), tensors, {}));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) +
                                         static_cast<std::uint64_t>((features + 1) * width) * 4);
  std::ofstream(path, std::ios::binary | std::ios::app)
      .write(reinterpret_cast<const char*>(bias.raw()), static_cast<long>(bias.bytes()));
  return write_hole(folder / (name("W_dec") + ".safetensors"), name("W_dec"),
                    {features, reach, width});
}

// Whether the file system leaves zeros out.
inline bool has_holes(const std::filesystem::path& file) {
  struct stat status = {};
  return ::stat(file.c_str(), &status) == 0 && status.st_blocks * 512 <= status.st_size / 2;
}

}  // namespace filigree
