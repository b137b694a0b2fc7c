// The transcoder of tests/golden/clt, or some of its features, and the run of its model.
#pragma once

#include <fmt/format.h>

#include "filigree/features.h"
#include "filigree/model.h"
#include "filigree/ops.h"
#include "support/golden.h"

namespace filigree {

inline constexpr std::int64_t kCltLayers = 4, kCltFeatures = 24, kCltWidth = 32;

inline SafetensorsFile clt_file(const char* name) {
  return SafetensorsFile::open(golden_folder() / "clt" / name);
}

inline Tensor features_in(const Tensor& tensor, const FeatureRange& range) {
  return tensor.rows(range.begin, range.end).clone();
}

inline Transcoder golden_transcoder(const FeatureRange& range = {0, kCltFeatures}) {
  const TranscoderShape shape{TranscoderKind::kCrossLayer, kCltLayers, kCltWidth, kCltFeatures,
                              false};
  Transcoder transcoder(shape, FeatureActivation::kJumpRelu, range);
  const SafetensorsFile file = clt_file("clt.safetensors");
  Tensor bias = Tensor::zeros({kCltLayers, 1, kCltWidth});
  for (std::int64_t l = 0; l < kCltLayers; ++l) {
    TranscoderLayer& layer = transcoder.layers()[static_cast<std::size_t>(l)];
    const auto read = [&](const char* name) {
      return golden_tensor(file, fmt::format("{}_{}", name, l));
    };
    layer.encoder.mutable_value() = features_in(read("W_enc"), range);
    layer.encoder_bias.mutable_value() = features_in(read("b_enc"), range);
    layer.log_threshold.mutable_value() =
        log(Variable(features_in(read("threshold"), range))).value();
    layer.decoder.mutable_value() =
        features_in(read("W_dec").reshape({kCltFeatures, (kCltLayers - l) * kCltWidth}), range);
    bias.rows(l, l + 1).copy_from(read("b_dec").reshape({1, 1, kCltWidth}));
  }
  transcoder.decoder_bias().mutable_value() = bias;
  return transcoder;
}

struct GoldenRun {
  Tensor inputs, outputs;  // [layers, tokens, width]
};

inline GoldenRun golden_run() {
  const auto model = load_model(golden_folder() / "clt" / "model");
  const Tensor ids = golden_tensor(clt_file("activations.safetensors"), "input_ids");
  Taps taps;
  taps.observe("blocks.*.ln2.hook_normalized");
  taps.observe("blocks.*.hook_mlp_out");
  model->forward(ids.reshape({1, ids.elements()}), {.taps = &taps});
  GoldenRun run{Tensor::empty({kCltLayers, ids.elements(), kCltWidth}),
                Tensor::empty({kCltLayers, ids.elements(), kCltWidth})};
  for (std::int64_t l = 0; l < kCltLayers; ++l) {
    run.inputs.rows(l, l + 1).copy_from(
        taps.value(fmt::format("blocks.{}.ln2.hook_normalized", l)));
    run.outputs.rows(l, l + 1).copy_from(taps.value(fmt::format("blocks.{}.hook_mlp_out", l)));
  }
  return run;
}

}  // namespace filigree
