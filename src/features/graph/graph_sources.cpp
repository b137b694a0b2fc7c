#include <algorithm>

#include "filigree/error.h"
#include "filigree/trace.h"

namespace filigree {
namespace {

bool reads_behind_norm(const FeatureHooks& hooks) {
  if (hooks.input == "ln2.hook_normalized" || hooks.input == "mlp.hook_in") return true;
  require(hooks.input == "hook_resid_mid" || hooks.input == "hook_mlp_in",
          "trace: features that read {} are not known, only those of ln2.hook_normalized, "
          "hook_resid_mid and hook_mlp_in",
          hooks.input);
  return false;
}

// The features of one layer that are active, and where.
struct ActiveLayer {
  SparseCode code;
  std::vector<std::int32_t> features;  // those active anywhere, ascending
  FeatureRows rows;

  std::int64_t row_of(std::int32_t feature) const {
    return std::lower_bound(features.begin(), features.end(), feature) - features.begin();
  }
};

ActiveLayer active_layer(const FrozenModel& frozen, const FeatureDictionary& dictionary,
                         std::int64_t l, bool without_first) {
  ActiveLayer active;
  active.code = dictionary.encode(l, frozen.layer(l).mlp_input);
  if (without_first) {
    // The entries of row 0 go.
    const std::int32_t gone = active.code.begin.i32()[1];
    std::vector<std::int32_t> begin(active.code.begin.i32(),
                                    active.code.begin.i32() + active.code.rows + 1);
    for (std::int32_t& b : begin) b = std::max(0, b - gone);
    const auto features = std::vector<std::int32_t>(
        active.code.feature.i32() + gone, active.code.feature.i32() + active.code.entries());
    active.code = make_code(
        active.code.features, begin, features,
        Variable(
            active.code.value.value().rows(gone, active.code.value.value().elements()).clone()));
  }
  active.features = active_features(active.code);
  active.rows = dictionary.rows(l, active.features);
  return active;
}

StreamReading reading_of(const FrozenModel& frozen, std::int64_t l, std::int64_t p,
                         const float* encoder, float bias, bool behind_norm) {
  const std::vector<double> vector(encoder, encoder + frozen.width);
  StreamReading reading;
  if (behind_norm)
    reading = frozen.read_mlp(l, p, vector);
  else
    reading = {2 * l + 1, {{p, std::vector<float>(encoder, encoder + frozen.width)}}, 0.0};
  reading.constant += static_cast<double>(bias);
  return reading;
}

double dot(const float* a, const float* b, std::int64_t width) {
  double sum = 0.0;
  for (std::int64_t c = 0; c < width; ++c)
    sum += static_cast<double>(a[c]) * static_cast<double>(b[c]);
  return sum;
}

// W_skip behind the norm as a matrix on the stream, and what it makes of the norm's bias.
std::vector<double> fold_skip(const FrozenModel& frozen, const Tensor& skip, std::int64_t l,
                              bool behind_norm, FrozenLayer& layer) {
  std::vector<double> bias(static_cast<std::size_t>(frozen.width));
  layer.skip = Tensor::empty({frozen.width, frozen.width});
  layer.skip_scale.assign(static_cast<std::size_t>(frozen.positions), 1.0f);
  for (std::int64_t o = 0; o < frozen.width; ++o) {
    const float* row = skip.f32() + o * frozen.width;
    const StreamReading reading = reading_of(frozen, l, 0, row, 0.0f, behind_norm);
    bias[static_cast<std::size_t>(o)] = reading.constant;
    const float scale = behind_norm ? layer.mlp_scale[0] : 1.0f;
    for (std::int64_t c = 0; c < frozen.width; ++c)
      layer.skip.mutable_f32()[o * frozen.width + c] =
          reading.parts[0].vector[static_cast<std::size_t>(c)] / scale;
  }
  if (behind_norm) layer.skip_scale = layer.mlp_scale;
  return bias;
}

// Biases alone, one write a position.
StreamWrites bias_writes(const Tensor& rows, std::int32_t bias) {
  StreamWrites writes{rows, {}, {}};
  writes.source.assign(static_cast<std::size_t>(rows.size(0)), bias);
  for (std::int64_t p = 0; p <= rows.size(0); ++p) writes.begin.push_back(p);
  return writes;
}

}  // namespace

FeatureReading feature_reading(const FrozenModel& frozen, const FeatureDictionary& features,
                               std::int64_t layer, std::int64_t position, std::int32_t feature) {
  const FeatureRows rows = features.rows(layer, std::span(&feature, 1));
  FeatureReading result;
  result.reading = reading_of(frozen, layer, position, rows.encoder.f32(),
                              rows.encoder_bias.f32()[0], reads_behind_norm(features.hooks()));
  result.value = dot(rows.encoder.f32(),
                     frozen.layer(layer).mlp_input.f32() + position * frozen.width, frozen.width) +
                 static_cast<double>(rows.encoder_bias.f32()[0]);
  return result;
}

GraphSources graph_sources(FrozenModel& frozen, const FeatureDictionary& dictionary,
                           const SourceOptions& options) {
  const TranscoderShape& shape = dictionary.shape();
  const std::int64_t L = frozen.depth(), n = frozen.positions, width = frozen.width;
  require(shape.layers == L && shape.width == width,
          "trace: the features are of a model of {} layers and width {}, this one has {} and {}",
          shape.layers, shape.width, L, width);
  const bool behind_norm = reads_behind_norm(dictionary.hooks());
  const std::int64_t first = options.without_first_position ? 1 : 0;
  GraphSources sources;
  std::vector<ActiveLayer> active;
  std::vector<std::int64_t> first_node;  // of each layer's features
  for (std::int64_t l = 0; l < L; ++l) {
    active.push_back(active_layer(frozen, dictionary, l, options.without_first_position));
    const ActiveLayer& here = active.back();
    first_node.push_back(sources.features);
    sources.features += here.code.entries();
    sources.reach.push_back(shape.reach(l));
    for (std::int64_t p = 0; p < n; ++p)
      for (std::int32_t e = here.code.begin.i32()[p]; e < here.code.begin.i32()[p + 1]; ++e) {
        const std::int32_t f = here.code.feature.i32()[e];
        const float* encoder = here.rows.encoder.f32() + here.row_of(f) * width;
        const float bias = here.rows.encoder_bias.f32()[here.row_of(f)];
        sources.nodes.push_back(
            {NodeKind::kFeature, l, p, f, static_cast<double>(here.code.value.value().f32()[e])});
        sources.readings.push_back(reading_of(frozen, l, p, encoder, bias, behind_norm));
        sources.values.push_back(dot(encoder, frozen.layer(l).mlp_input.f32() + p * width, width) +
                                 static_cast<double>(bias));
      }
  }
  for (std::int64_t l = 0; l < L; ++l)
    for (std::int64_t p = first; p < n; ++p)
      sources.nodes.push_back({NodeKind::kError, l, p, -1, 0.0});
  sources.errors = L * (n - first);
  for (std::int64_t p = 0; p < n; ++p)
    sources.nodes.push_back(
        {NodeKind::kEmbedding, -1, p, frozen.ids[static_cast<std::size_t>(p)], 0.0});
  sources.embeddings = n;

  for (std::int64_t m = 0; m < L; ++m) {
    FrozenLayer& layer = frozen.layers[static_cast<std::size_t>(m)];
    const Tensor skip = dictionary.skip(m);
    std::vector<double> constant(static_cast<std::size_t>(width));
    if (skip.defined()) {
      constant = fold_skip(frozen, skip, m, behind_norm, layer);
      if (first == 1) layer.skip_scale[0] = 0.0f;
    }
    const Tensor decoder_bias = dictionary.decoder_bias(m);
    for (std::int64_t c = 0; c < width; ++c)
      constant[static_cast<std::size_t>(c)] += static_cast<double>(decoder_bias.f32()[c]);

    StreamWrites writes;
    std::vector<float> rows;
    std::vector<double> written(static_cast<std::size_t>(width));
    for (std::int64_t p = 0; p < n; ++p) {
      writes.begin.push_back(static_cast<std::int64_t>(writes.source.size()));
      const float* output = layer.mlp_output.f32() + p * width;
      if (p < first) {  // all of it is a constant
        rows.insert(rows.end(), output, output + width);
        writes.source.push_back(sources.bias());
        continue;
      }
      std::fill(written.begin(), written.end(), 0.0);
      for (std::int64_t l = 0; l <= m; ++l) {
        const ActiveLayer& from = active[static_cast<std::size_t>(l)];
        const std::int64_t reach = shape.reach(l);
        if (m - l >= reach) continue;
        for (std::int32_t e = from.code.begin.i32()[p]; e < from.code.begin.i32()[p + 1]; ++e) {
          const float value = from.code.value.value().f32()[e];
          const float* decoder = from.rows.decoder.f32() +
                                 (from.row_of(from.code.feature.i32()[e]) * reach + m - l) * width;
          for (std::int64_t c = 0; c < width; ++c) {
            rows.push_back(value * decoder[c]);
            written[static_cast<std::size_t>(c)] += static_cast<double>(rows.back());
          }
          writes.source.push_back(
              static_cast<std::int32_t>(first_node[static_cast<std::size_t>(l)] + e));
        }
      }
      if (skip.defined())
        for (std::int64_t c = 0; c < width; ++c)
          written[static_cast<std::size_t>(c)] +=
              dot(skip.f32() + c * width, layer.mlp_input.f32() + p * width, width);
      // The biases of a skip are among the constants, and in what was just added.
      for (std::int64_t c = 0; c < width; ++c)
        rows.push_back(static_cast<float>(static_cast<double>(output[c]) -
                                          written[static_cast<std::size_t>(c)] -
                                          static_cast<double>(decoder_bias.f32()[c])));
      writes.source.push_back(
          static_cast<std::int32_t>(sources.features + m * (n - first) + p - first));
      for (std::int64_t c = 0; c < width; ++c)
        rows.push_back(static_cast<float>(constant[static_cast<std::size_t>(c)]));
      writes.source.push_back(sources.bias());
    }
    writes.begin.push_back(static_cast<std::int64_t>(writes.source.size()));
    writes.rows = Tensor::from({static_cast<std::int64_t>(writes.source.size()), width}, rows);
    sources.mlp.push_back(std::move(writes));
    sources.attention.push_back(bias_writes(layer.attention_bias, sources.bias()));
  }

  const bool apart = frozen.position_embedding.defined() && !options.positions_in_embeddings;
  const std::int64_t each = apart ? 2 : 1;
  sources.embedding.rows = Tensor::empty({n * each, width});
  for (std::int64_t p = 0; p < n; ++p) {
    sources.embedding.begin.push_back(p * each);
    float* row = sources.embedding.rows.mutable_f32() + p * each * width;
    const float* token = frozen.token_embedding.f32() + p * width;
    std::copy_n(token, width, row);
    sources.embedding.source.push_back(
        static_cast<std::int32_t>(sources.features + sources.errors + p));
    if (!frozen.position_embedding.defined()) continue;
    const float* position = frozen.position_embedding.f32() + p * width;
    if (apart) {
      std::copy_n(position, width, row + width);
      sources.embedding.source.push_back(sources.bias());
    } else {
      for (std::int64_t c = 0; c < width; ++c) row[c] += position[c];
    }
  }
  sources.embedding.begin.push_back(n * each);
  return sources;
}

}  // namespace filigree
