// A checkpoint of CLT-Forge: W_enc [layers, width, features], b_enc and log_threshold [layers,
// features], W_dec [pairs, features, width] and b_dec [pairs, width] with the pairs of a source and
// a target in the order (0, 0), (0, 1), ..., (1, 1), ..., and the scales that inputs and outputs
// were divided by in training.
#include <cmath>

#include "base/file_status.h"
#include "features/files/layouts.h"
#include "filigree/error.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScaleIn = "estimated_norm_scaling_factor_in";
constexpr const char* kScaleOut = "estimated_norm_scaling_factor_out";

Tensor scales(const TensorFile& file, const char* name, std::int64_t layers) {
  if (!file.has(name)) return Tensor::full({layers}, 1.0f);
  const StoredTensor tensor = file.at(name, {layers});
  const Tensor values = tensor.read();
  for (const float value : values.values())
    require(std::isfinite(value) && value > 0.0f, "{} has the scale {}, should be above 0",
            tensor.label(), value);
  return values;
}

}  // namespace

std::optional<fs::path> find_clt_forge(const fs::path& path) {
  const auto is_one = [](const fs::path& file) {
    if (file.extension() != ".safetensors" || !is_file(file)) return false;
    const TensorFile tensors = TensorFile::open(file);
    return tensors.has("W_enc") && tensors.has("W_dec") && tensors.has(kScaleIn);
  };
  if (!is_folder(path)) return is_one(path) ? std::optional(path) : std::nullopt;
  for (const FolderEntry& entry : entries_of(path))
    if (is_one(path / entry.name)) return path / entry.name;
  return std::nullopt;
}

StoredTranscoder open_clt_forge(const fs::path& path) {
  StoredChecksums checksums;
  const TensorFile file = TensorFile::open(path, &checksums);
  const StoredTensor encoder = file.at("W_enc", {-1, -1, -1});
  const std::int64_t layers = encoder.view.shape[0], width = encoder.view.shape[1],
                     features = encoder.view.shape[2];
  StoredTranscoder stored;
  stored.shape = {TranscoderKind::kCrossLayer, layers, width, features, false};
  check_shape(stored.shape);
  // Every layer has a number in these, so that a file of a few bytes cannot have very many.
  const Tensor scale_in = scales(file, kScaleIn, layers);
  const Tensor scale_out = scales(file, kScaleOut, layers);
  const StoredTensor encoder_bias = file.at("b_enc", {layers, features});
  const StoredTensor log_threshold = file.at("log_threshold", {layers, features});
  const std::int64_t pairs = layers * (layers + 1) / 2;
  const StoredTensor decoder = file.at("W_dec", {pairs, features, width});
  const Tensor pair_bias = file.at("b_dec", {pairs, width}).read();

  Tensor bias = Tensor::zeros({layers, width});
  std::int64_t pair = 0;
  for (std::int64_t l = 0; l < layers; ++l) {
    Tensor threshold = log_threshold.part(l).read();
    for (std::int64_t f = 0; f < features; ++f)
      threshold.mutable_f32()[f] = std::exp(threshold.f32()[f]);
    StoredLayer layer{StoredMatrix(encoder.part(l), features, width, true, scale_in.f32()[l]),
                      encoder_bias.part(l).read(),
                      std::move(threshold),
                      {},
                      {}};
    for (std::int64_t m = l; m < layers; ++m, ++pair) {
      layer.decoder.emplace_back(decoder.part(pair), features, width, false,
                                 1.0f / scale_out.f32()[m]);
      for (std::int64_t d = 0; d < width; ++d)
        bias.mutable_f32()[m * width + d] += pair_bias.f32()[pair * width + d];
    }
    stored.layers.push_back(std::move(layer));
  }
  for (std::int64_t m = 0; m < layers; ++m) {
    Tensor own = bias.rows(m, m + 1).reshape({width}).clone();
    for (std::int64_t d = 0; d < width; ++d) own.mutable_f32()[d] /= scale_out.f32()[m];
    stored.layers[static_cast<std::size_t>(m)].decoder_bias = own;
  }
  return stored;
}

}  // namespace filigree
