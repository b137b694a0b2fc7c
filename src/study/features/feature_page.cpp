#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "filigree/data.h"
#include "filigree/error.h"
#include "filigree/feature_study.h"
#include "filigree/lens.h"
#include "filigree/names.h"
#include "filigree/ops.h"

namespace filigree::study {
namespace {

constexpr std::size_t kWordsOfLabel = 3;

double norm_of(const float* row, std::int64_t width) {
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += static_cast<double>(row[i]) * row[i];
  return std::sqrt(sum);
}

// What the norm in front of a layer's MLP does to a vector of the stream, up to its scale; applied
// to an encoder row, what that reads of the stream.
Tensor through_norm(const LoadedModel& model, const FeatureHooks& hooks, std::int64_t layer,
                    Tensor x, bool to_stream) {
  if (hooks.input != "ln2.hook_normalized") return x;
  const NormWeights norm = model.model().weights().layers[static_cast<std::size_t>(layer)].mlp_norm;
  const auto gain = [&] {
    if (!norm.weight.defined()) return;
    const Tensor weight = norm.gain().value().on_host();
    for (std::int64_t i = 0; i < x.elements(); ++i) x.mutable_f32()[i] *= weight.f32()[i];
  };
  const auto centre = [&] {
    if (!norm.centres()) return;
    const double mean = std::accumulate(x.values().begin(), x.values().end(), 0.0) /
                        static_cast<double>(x.elements());
    for (std::int64_t i = 0; i < x.elements(); ++i) x.mutable_f32()[i] -= static_cast<float>(mean);
  };
  if (to_stream) {
    gain();
    centre();
  } else {
    centre();
    gain();
  }
  return x;
}

// The `top` largest by magnitude of a layer's, joined to those of others.
void keep_largest(std::vector<FeaturePartner>& kept, std::int64_t layer, const Tensor& weights,
                  std::size_t top) {
  for (std::int64_t f = 0; f < weights.elements(); ++f)
    kept.push_back({{layer, f}, static_cast<double>(weights.f32()[f])});
  const auto larger = [](const FeaturePartner& a, const FeaturePartner& b) {
    const double x = std::abs(a.weight), y = std::abs(b.weight);
    return x != y ? x > y : a.feature < b.feature;
  };
  const std::size_t count = std::min(top, kept.size());
  std::partial_sort(kept.begin(), kept.begin() + static_cast<std::int64_t>(count), kept.end(),
                    larger);
  kept.resize(count);
}

// The sum of the first `targets` decoder rows.
Tensor written_sum(const FeatureRows& rows, std::int64_t targets) {
  const std::int64_t width = rows.decoder.size(2);
  Tensor sum = Tensor::zeros({width});
  for (std::int64_t j = 0; j < std::min(targets, rows.decoder.size(1)); ++j)
    for (std::int64_t d = 0; d < width; ++d)
      sum.mutable_f32()[d] += rows.decoder.f32()[j * width + d];
  return sum;
}

void look_at_partners(const LoadedModel& model, const FeatureDictionary& dictionary,
                      const FeatureRows& rows, FeaturePage& page) {
  const std::int64_t layer = page.feature.layer;
  const Tensor reads = through_norm(model, dictionary.hooks(), layer,
                                    rows.encoder.reshape({page.shape.width}).clone(), true);
  for (std::int64_t l = 0; l < layer; ++l)
    keep_largest(page.reads, l, dictionary.decoder_products(l, reads, layer - l), page.request.top);
  for (std::int64_t m = layer + 1; m < page.shape.layers; ++m)
    keep_largest(page.read_by, m,
                 dictionary.encoder_products(m, through_norm(model, dictionary.hooks(), m,
                                                             written_sum(rows, m - layer), false)),
                 page.request.top);
}

void look_at_record(const LoadedModel& model, const FeatureDictionary& dictionary,
                    FeaturePage& page) {
  const FeatureIndex index = open_feature_index(page.request.index, model, dictionary);
  page.indexed = index.facts();
  page.record = index.record(page.feature);
  page.frequency = index.frequency(page.record);
  std::map<TokenId, std::size_t> counts;
  for (const FeatureExample& example : page.record.top)
    ++counts[example.tokens[static_cast<std::size_t>(example.centre)]];
  for (const auto& [token, count] : counts)
    page.tokens.push_back(
        {token, static_cast<double>(count) / static_cast<double>(page.record.top.size())});
  std::stable_sort(page.tokens.begin(), page.tokens.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  const auto show = [&](const FeatureExample& example) {
    for (const TokenId id : example.tokens) page.shown.add(model.tokenizer(), id);
  };
  std::for_each(page.record.top.begin(), page.record.top.end(), show);
  std::for_each(page.record.sampled.begin(), page.record.sampled.end(), show);
}

Json example_json(const FeaturePage& page, const FeatureExample& example) {
  Json tokens = Json::array();
  for (const TokenId id : example.tokens) tokens.push_back(page.text_of(id));
  return {{"position", example.position},
          {"activation", example.value},
          {"centre", example.centre},
          {"tokens", tokens},
          {"activations", example.activations}};
}

Json record_json(const FeaturePage& page) {
  if (!page.indexed) return {};
  Json top = Json::array(), bands = Json::array(), tokens = Json::array();
  for (const FeatureExample& example : page.record.top) top.push_back(example_json(page, example));
  for (const FeatureBand& band : quantile_bands(page.record, 5, page.request.examples)) {
    Json examples = Json::array();
    for (const FeatureExample* example : band.examples)
      examples.push_back(example_json(page, *example));
    bands.push_back({{"from", band.from}, {"to", band.to}, {"examples", examples}});
  }
  for (const FeatureToken& token : page.tokens)
    tokens.push_back({{"token", page.text_of(token.token)}, {"share", token.share}});
  return {{"tokens_looked_at", page.indexed->tokens},
          {"active_at", page.record.count},
          {"frequency", page.frequency},
          {"smallest", page.record.min},
          {"largest", page.record.max},
          {"median", page.record.quantile(0.5)},
          {"histogram", page.record.histogram.shares(20, 0, page.record.max)},
          {"largest_at", tokens},
          {"top", top},
          {"bands", bands}};
}

}  // namespace

namespace {

std::string substituted(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace

std::string with_line_breaks(std::string shown) {
  return substituted(substituted(std::move(shown), "\\x0a", "\n"), "\\x09", "\t");
}

std::string in_one_line(const std::string& shown) {
  return substituted(substituted(shown, "\\x0a", "↵"), "\\x09", "⇥");
}

std::string FeaturePage::words() const {
  std::string text;
  const auto quote = [&](TokenId id) {
    text += fmt::format("{}\"{}\"", text.empty() || text.ends_with(' ') ? "" : " ",
                        printable(in_one_line(shown[id]), 24));
  };
  for (std::size_t i = 0; i < std::min(tokens.size(), kWordsOfLabel); ++i)
    if (i == 0 || tokens[i].share >= 0.1) quote(tokens[i].token);
  text += text.empty() ? "raises " : ", raises ";
  for (std::size_t i = 0; i < std::min(raised.size(), kWordsOfLabel); ++i) quote(raised[i].token);
  return text;
}

FeatureIndex open_feature_index(const std::filesystem::path& file, const LoadedModel& model,
                                const FeatureDictionary& dictionary) {
  FeatureIndex index = FeatureIndex::open(file);
  const TranscoderShape& shape = dictionary.shape();
  require(index.facts().layers == shape.layers && index.facts().features == shape.features,
          "'{}' is an index of {} layers of {} features; these have {} of {}", file.string(),
          index.facts().layers, index.facts().features, shape.layers, shape.features);
  require(index.facts().tokenizer == tokenizer_fingerprint(model.tokenizer()),
          "'{}' was made with another tokenizer than that of '{}'", file.string(),
          printable(model.name()));
  return index;
}

std::vector<FeatureLogits> feature_logits(const LoadedModel& model, const Tensor& unembedding,
                                          const Tensor& written, std::size_t top) {
  const Tensor logits =
      linear(Variable(written), {.weight = Variable(unembedding), .bias = {}, .out_in = true})
          .value();
  const std::int64_t V = logits.size(1);
  std::vector<TokenId> known;
  for (TokenId id = 0; id < V; ++id)
    if (model.tokenizer().has_token(id)) known.push_back(id);
  std::vector<FeatureLogits> result;
  for (std::int64_t f = 0; f < logits.size(0); ++f) {
    const float* row = logits.f32() + f * V;
    const double mean = std::accumulate(row, row + V, 0.0) / static_cast<double>(V);
    const auto largest = [&](double sign) {
      const std::size_t count = std::min(top, known.size());
      std::partial_sort(known.begin(), known.begin() + static_cast<std::int64_t>(count),
                        known.end(), [&](TokenId a, TokenId b) {
                          const double x = sign * row[a], y = sign * row[b];
                          return x != y ? x > y : a < b;
                        });
      std::vector<FeatureLogit> list;
      for (std::size_t i = 0; i < count; ++i)
        list.push_back({known[i], static_cast<double>(row[known[i]]) - mean});
      return list;
    };
    result.push_back({largest(1), largest(-1)});
  }
  return result;
}

FeaturePage describe_feature(const FeatureRequest& request, const LoadedModel& model,
                             const FeatureDictionary& dictionary) {
  FeaturePage page;
  page.request = request;
  page.model = model.name(), page.label = model.label();
  page.feature = parse_feature(request.feature);
  page.shape = dictionary.shape();
  page.activation = dictionary.activation();
  const TranscoderShape& shape = page.shape;
  require(page.feature.layer < shape.layers && page.feature.feature < shape.features,
          "there is no feature {}; the transcoder has {} layers of {}", request.feature,
          shape.layers, shape.features);
  const auto number = static_cast<std::int32_t>(page.feature.feature);
  const FeatureRows rows = dictionary.rows(page.feature.layer, std::span(&number, 1));
  page.encoder_norm = norm_of(rows.encoder.f32(), shape.width);
  page.encoder_bias = rows.encoder_bias.f32()[0];
  page.threshold = rows.threshold.f32()[0];
  for (std::int64_t j = 0; j < rows.decoder.size(1); ++j)
    page.writes.push_back(
        {page.feature.layer + j, norm_of(rows.decoder.f32() + j * shape.width, shape.width)});
  FeatureLogits logits =
      feature_logits(model, folded_unembedding(model.model()),
                     written_sum(rows, shape.layers).reshape({1, shape.width}), request.top)[0];
  page.raised = std::move(logits.raised), page.lowered = std::move(logits.lowered);
  for (const std::vector<FeatureLogit>* list : {&page.raised, &page.lowered})
    for (const FeatureLogit& logit : *list) page.shown.add(model.tokenizer(), logit.token);
  look_at_partners(model, dictionary, rows, page);
  if (!request.index.empty()) look_at_record(model, dictionary, page);
  return page;
}

Json to_json(const FeaturePage& page) {
  const auto logits = [&](const std::vector<FeatureLogit>& list) {
    Json json = Json::array();
    for (const FeatureLogit& logit : list)
      json.push_back({{"token", page.text_of(logit.token)}, {"effect", logit.effect}});
    return json;
  };
  const auto partners = [](const std::vector<FeaturePartner>& list) {
    Json json = Json::array();
    for (const FeaturePartner& partner : list)
      json.push_back({{"feature", feature_name(partner.feature)}, {"weight", partner.weight}});
    return json;
  };
  Json writes = Json::array();
  for (const FeatureWrite& write : page.writes)
    writes.push_back({{"layer", write.layer}, {"norm", write.norm}});
  return {{"model", page.model},
          {"features", page.request.features},
          {"feature", feature_name(page.feature)},
          {"words", page.words()},
          {"kind", name_of(page.shape.kind)},
          {"activation", name_of(page.activation)},
          {"encoder_norm", page.encoder_norm},
          {"encoder_bias", page.encoder_bias},
          {"threshold", page.threshold},
          {"writes", writes},
          {"raises", logits(page.raised)},
          {"lowers", logits(page.lowered)},
          {"reads", partners(page.reads)},
          {"read_by", partners(page.read_by)},
          {"index", record_json(page)}};
}

}  // namespace filigree::study
