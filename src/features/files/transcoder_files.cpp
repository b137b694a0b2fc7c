#include <algorithm>
#include <numeric>

#include "base/file_status.h"
#include "features/files/circuit_tracer_names.h"
#include "features/files/layouts.h"
#include "features/files/transcoder_writer.h"
#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/features.h"
#include "filigree/ops.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

// Copied to the host when they are first asked for.
LayerToWrite::Rows rows_of(const Tensor& tensor) {
  const auto host = std::make_shared<Tensor>();
  return [tensor, host](std::int64_t begin, std::int64_t count) {
    if (!host->defined()) *host = tensor.on_host();
    return host->rows(begin, begin + count);
  };
}

// Without keeping what was read of the file in memory.
Tensor taken(const StoredMatrix& matrix, std::int64_t begin, std::int64_t count) {
  Tensor rows = matrix.block(begin, count).clone();
  matrix.release(begin, count);
  return rows;
}

// Of all targets side by side.
LayerToWrite::Rows rows_of(const std::vector<StoredMatrix>& matrices) {
  return [&matrices](std::int64_t begin, std::int64_t count) {
    if (matrices.size() == 1) return taken(matrices[0], begin, count);
    std::int64_t width = 0, at = 0;
    for (const StoredMatrix& matrix : matrices) width += matrix.width();
    Tensor rows = Tensor::empty({count, width});
    for (const StoredMatrix& matrix : matrices) {
      const Tensor part = taken(matrix, begin, count);
      for (std::int64_t r = 0; r < count; ++r)
        std::copy_n(part.f32() + r * matrix.width(), matrix.width(),
                    rows.mutable_f32() + r * width + at);
      at += matrix.width();
    }
    return rows;
  };
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

StoredTranscoder open_stored(const fs::path& path) {
  if (is_file(path / kTranscoderConfig)) return open_circuit_tracer(path);
  if (!is_there(path)) fail("transcoder: there is no '{}'", path.string());
  if (is_folder(path)) {
    if (is_file(path / encoder_file(0)) || is_file(path / layer_file(0)))
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
  const Tensor bias = transcoder.decoder_bias().value().on_host();
  TranscoderWriter writer(folder, shape, options);
  for (std::int64_t l = 0; l < shape.layers; ++l) {
    const TranscoderLayer& layer = transcoder.layers()[static_cast<std::size_t>(l)];
    writer.add({rows_of(layer.encoder.value()), rows_of(layer.decoder.value()),
                layer.encoder_bias.value().reshape({shape.features}),
                exported_threshold(transcoder, l, options.thresholds),
                layer_rows(bias, l).clone().reshape({shape.width}),
                layer.skip.defined() ? layer.skip.value() : Tensor()});
  }
  writer.commit();
}

RewrittenTranscoder rewrite_transcoder(const fs::path& path, const fs::path& folder,
                                       TranscoderExport options) {
  const StoredTranscoder stored = open_stored(path);
  options.hooks = stored.hooks;
  options.k = stored.k;
  if (options.model_name.empty()) options.model_name = stored.model_name;
  if (options.scan.empty()) options.scan = stored.scan;
  TranscoderWriter writer(folder, stored.shape, options);
  for (const StoredLayer& layer : stored.layers)
    writer.add(
        {[&](std::int64_t begin, std::int64_t count) { return taken(layer.encoder, begin, count); },
         rows_of(layer.decoder), layer.encoder_bias, layer.threshold, layer.decoder_bias,
         layer.skip ? layer.skip->read() : Tensor()});
  writer.commit();
  return {stored.shape, options.model_name, writer.bytes()};
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
