#include "filigree/features/files/transcoder_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "filigree/base/atomic_file.h"
#include "filigree/base/error.h"
#include "filigree/features/files/circuit_tracer_names.h"
#include "filigree/features/files/flat_yaml.h"
#include "filigree/features/files/layouts.h"
#include "filigree/io/safetensors_writer.h"
#include "filigree/ops/elementwise/elementwise.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

// A tensor as it goes into a file, on the CPU and in its element type.
TensorToWrite to_write(std::string name, Tensor tensor, std::vector<std::int64_t> shape,
                       DType dtype) {
  // Converted when its turn comes, and kept until the next one's.
  const auto kept = std::make_shared<Tensor>();
  return {std::move(name), kind_of(dtype), std::move(shape), [kept, tensor, dtype] {
            *kept = tensor.to(DeviceKind::kCpu).to(dtype);
            return std::span(kept->raw(), kept->bytes());
          }};
}

TensorToWrite vector_to_write(std::string name, const Tensor& tensor) {
  return to_write(std::move(name), tensor, {tensor.elements()}, DType::kF32);
}

// What activations of a layer must exceed; undefined for ReLU.
Tensor exported_threshold(const Transcoder& transcoder, std::int64_t layer,
                          const std::vector<float>& thresholds) {
  if (transcoder.activation() == FeatureActivation::kRelu) return {};
  const NoGrad constant;
  if (transcoder.activation() == FeatureActivation::kJumpRelu)
    return transcoder.threshold(layer).value();
  return Tensor::full({transcoder.shape().features}, thresholds[static_cast<std::size_t>(layer)]);
}

void write_layer(const fs::path& folder, const Transcoder& transcoder, std::int64_t l,
                 const TranscoderExport& options) {
  const TranscoderShape& shape = transcoder.shape();
  const TranscoderLayer& layer = transcoder.layers()[static_cast<std::size_t>(l)];
  const bool cross = shape.kind == TranscoderKind::kCrossLayer;
  const auto name = [&](const char* what) {
    return cross ? fmt::format("{}_{}", what, l) : std::string(what);
  };
  const std::int64_t F = shape.features, d = shape.width;
  const Tensor bias = transcoder.decoder_bias().value().on_host();
  std::vector<TensorToWrite> tensors = {
      to_write(name("W_enc"), layer.encoder.value(), {F, d}, options.dtype),
      vector_to_write(name("b_enc"), layer.encoder_bias.value()),
      vector_to_write(name("b_dec"), layer_rows(bias, l).clone())};
  if (const Tensor threshold = exported_threshold(transcoder, l, options.thresholds);
      threshold.defined())
    tensors.push_back(
        vector_to_write(cross ? name("threshold") : "activation_function.threshold", threshold));
  if (cross) {
    write_safetensors(folder / decoder_file(l), {to_write(name("W_dec"), layer.decoder.value(),
                                                          {F, shape.reach(l), d}, options.dtype)});
  } else {
    tensors.push_back(to_write("W_dec", layer.decoder.value(), {F, d}, options.dtype));
    if (layer.skip.defined())
      tensors.push_back(to_write("W_skip", layer.skip.value(), {d, d}, options.dtype));
  }
  write_safetensors(folder / (cross ? encoder_file(l) : layer_file(l)), std::move(tensors));
}

// circuit-tracer counts files, so none of an earlier transcoder may stay.
void remove_old(const fs::path& folder) {
  fs::remove(folder / kTranscoderConfig);
  for (const auto& file_of : {encoder_file, decoder_file, layer_file})
    for (std::int64_t l = 0; fs::remove(folder / file_of(l)); ++l) {
    }
}

StoredTranscoder open_stored(const fs::path& path) {
  std::error_code failure;
  if (fs::is_regular_file(path / kTranscoderConfig, failure)) return open_circuit_tracer(path);
  if (!fs::exists(path, failure)) fail("transcoder: there is no '{}'", path.string());
  if (fs::is_directory(path)) {
    if (fs::is_regular_file(path / encoder_file(0)) || fs::is_regular_file(path / layer_file(0)))
      fail("transcoder: '{}' has no {}: it was not written to its end", path.string(),
           kTranscoderConfig);
    if (is_sparsify(path)) return open_sparsify(path);
    if (is_gemma_scope(path)) return open_gemma_scope(path);
  }
  if (const auto file = find_clt_forge(path)) return open_clt_forge(*file);
  fail(
      "transcoder: '{}' is none: no {}, no checkpoint of CLT-Forge, no layers of sparsify "
      "(layers.0.mlp) or Gemma Scope (layer_0)",
      path.string(), kTranscoderConfig);
}

}  // namespace

void write_transcoder(const fs::path& folder, const Transcoder& transcoder,
                      const TranscoderExport& options) {
  const TranscoderShape& shape = transcoder.shape();
  require(transcoder.whole(), "transcoder: a part of the features cannot be written");
  const bool chosen = transcoder.activation() == FeatureActivation::kTopK ||
                      transcoder.activation() == FeatureActivation::kBatchTopK;
  require(!chosen || static_cast<std::int64_t>(options.thresholds.size()) == shape.layers,
          "transcoder: {} thresholds for {} layers of {} features", options.thresholds.size(),
          shape.layers, name_of(transcoder.activation()));
  require(
      options.dtype == DType::kF32 || options.dtype == DType::kBf16 || options.dtype == DType::kF16,
      "transcoder: cannot be written as {}", name_of(options.dtype));
  fs::create_directories(folder);
  remove_old(folder);
  for (std::int64_t l = 0; l < shape.layers; ++l) write_layer(folder, transcoder, l, options);
  const bool cross = shape.kind == TranscoderKind::kCrossLayer;
  std::string config = fmt::format(
      "model_name: {}\nmodel_kind: {}\nfeature_input_hook: {}\nfeature_output_hook: {}\n",
      yaml_text(options.model_name), cross ? kCrossLayerKind : kPerLayerKind, options.hooks.input,
      options.hooks.output);
  if (!options.scan.empty()) config += fmt::format("scan: {}\n", yaml_text(options.scan));
  write_file_atomically(folder / kTranscoderConfig, config);
}

std::unique_ptr<FeatureDictionary> open_dictionary(const fs::path& path) {
  return dictionary_of(open_stored(path));
}

LoadedTranscoder load_transcoder(const fs::path& path) {
  StoredTranscoder stored = open_stored(path);
  const TranscoderShape shape = stored.shape;
  const FeatureActivation activation = stored.activation();
  LoadedTranscoder loaded{Transcoder(shape, activation, {0, shape.features}), stored.hooks,
                          stored.k};
  const auto dictionary = dictionary_of(std::move(stored));
  std::vector<std::int32_t> all(static_cast<std::size_t>(shape.features));
  std::iota(all.begin(), all.end(), 0);
  Tensor bias = Tensor::empty({shape.layers, 1, shape.width});
  const NoGrad constant;
  for (std::int64_t l = 0; l < shape.layers; ++l) {
    TranscoderLayer& layer = loaded.transcoder.layers()[static_cast<std::size_t>(l)];
    const FeatureRows rows = dictionary->rows(l, all);
    layer.encoder.mutable_value() = rows.encoder;
    layer.encoder_bias.mutable_value() = rows.encoder_bias;
    layer.decoder.mutable_value() =
        rows.decoder.reshape({shape.features, shape.reach(l) * shape.width});
    if (layer.log_threshold.defined())
      layer.log_threshold.mutable_value() = log(Variable(rows.threshold)).value();
    if (const Tensor skip = dictionary->skip(l); skip.defined()) layer.skip.mutable_value() = skip;
    bias.rows(l, l + 1).copy_from(dictionary->decoder_bias(l).reshape({1, 1, shape.width}));
  }
  loaded.transcoder.decoder_bias().mutable_value() = bias;
  return loaded;
}

}  // namespace filigree
