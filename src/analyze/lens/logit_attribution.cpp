#include "filigree/analyze/lens/logit_attribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "filigree/analyze/task/check.h"
#include "filigree/autograd/tape.h"
#include "filigree/base/component.h"
#include "filigree/base/error.h"

namespace filigree {
namespace {

// Rows of the last position, by tap: [B, inner].
using LastRows = std::map<std::string, std::vector<float>, std::less<>>;

// Keeps the last position of every value it is shown, [B, T, ...].
TapWatcher keep_last(LastRows& rows) {
  return [&rows](std::string_view name, const Tensor& value) {
    const std::int64_t B = value.size(0), T = value.size(1);
    const std::int64_t inner = value.elements() / (B * T);
    std::vector<float>& kept = rows[std::string(name)];
    kept.resize(static_cast<std::size_t>(B * inner));
    for (std::int64_t b = 0; b < B; ++b)
      std::copy_n(value.f32() + (b * T + T - 1) * inner, inner, kept.data() + b * inner);
  };
}

// The weights of the logits in the difference: [B, 1, V].
Tensor logit_weights(const PromptRefs& prompts, std::int64_t V) {
  const auto rows = static_cast<std::int64_t>(prompts.size());
  Tensor weights = Tensor::zeros({rows, 1, V});
  for (std::int64_t row = 0; row < rows; ++row) {
    const TaskPrompt& prompt = *prompts[static_cast<std::size_t>(row)];
    require(!prompt.answers.empty(), "logit attribution: a prompt has no answer");
    for (const bool right : {true, false}) {
      const std::vector<TokenId>& ids = right ? prompt.answers : prompt.wrong;
      for (const TokenId id : ids) {
        require(id >= 0 && id < V, "logit attribution: token {} is outside the {} logits", id, V);
        weights.mutable_f32()[row * V + id] +=
            (right ? 1.0f : -1.0f) / static_cast<float>(ids.size());
      }
    }
  }
  return weights;
}

double product(const float* a, const float* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

std::string stream_tap(const Model& model) {
  return fmt::format("blocks.{}.hook_resid_post", model.config().layers - 1);
}

// What the logits' difference is when the stream is zero: the biases behind it, which the scale of
// the norm does not reach.
std::vector<double> output_biases(const Model& model, const Tensor& ids, const Tensor& weights) {
  const ModelConfig& config = model.config();
  const std::int64_t B = ids.size(0), T = ids.size(1), V = weights.size(2);
  const ForwardStart start = {config.layers, false, Tensor::zeros({B, T, config.width})};
  Taps taps;
  taps.intervene("ln_final.hook_scale",
                 [](const Variable& scale) { return Variable(Tensor::full(scale.shape(), 1.0f)); });
  const Tensor logits =
      model.forward(ids, {.taps = &taps, .start = &start, .last_position_only = true}).value();
  std::vector<double> biases;
  for (std::int64_t b = 0; b < B; ++b)
    biases.push_back(product(logits.f32() + b * V, weights.f32() + b * V, V));
  return biases;
}

std::vector<Part> parts_of(const Model& model, bool positions) {
  std::vector<Part> parts = {{PartKind::kEmbedding}};
  if (positions) parts.push_back({PartKind::kPositions});
  for (std::int64_t l = 0; l < model.config().layers; ++l) {
    for (std::int64_t h = 0; h < model.config().heads; ++h)
      parts.push_back({PartKind::kHead, l, h});
    parts.push_back({PartKind::kAttentionBias, l});
    parts.push_back({PartKind::kMlp, l});
  }
  parts.push_back({PartKind::kRest});
  parts.push_back({PartKind::kOutputBias});
  return parts;
}

bool has_tap(const Model& model, std::string_view name) {
  return std::find(model.tap_names().begin(), model.tap_names().end(), name) !=
         model.tap_names().end();
}

void attribute_prompts(const Model& model, const std::vector<std::size_t>& batch,
                       const std::vector<TaskPrompt>& prompts, LogitAttribution& result) {
  PromptRefs refs;
  for (const std::size_t i : batch) refs.push_back(&prompts[i]);
  const Tensor ids = prompt_ids(refs, false);
  const std::int64_t d = model.config().width, H = model.config().heads;
  const std::string stream = stream_tap(model);

  LastRows rows;
  Taps taps;
  for (const char* name : {"hook_embed", "hook_pos_embed"})
    if (has_tap(model, name)) taps.watch(name, keep_last(rows));
  for (const char* name :
       {"blocks.*.attn.hook_result", "blocks.*.hook_attn_out", "blocks.*.hook_mlp_out"})
    taps.watch(name, keep_last(rows));
  taps.watch(stream, keep_last(rows));
  taps.intervene("ln_final.hook_scale",
                 [](const Variable& scale) { return Variable(scale.value()); });
  taps.observe_gradient(stream);
  Tape tape;
  const Variable logits = model.forward(ids, {.taps = &taps, .last_position_only = true});
  const std::int64_t V = logits.size(-1);
  const Tensor weights = logit_weights(refs, V);
  tape.backward(logits, weights);
  LastRows slopes;
  keep_last(slopes)("slope", taps.gradient(stream));
  const std::vector<double> biases = output_biases(model, ids, weights);

  for (std::size_t b = 0; b < batch.size(); ++b) {
    const auto row = static_cast<std::int64_t>(b);
    const float* slope = slopes.at("slope").data() + row * d;
    const auto written = [&](const std::string& tap, std::int64_t head = 0,
                             std::int64_t heads = 1) {
      return product(rows.at(tap).data() + (row * heads + head) * d, slope, d);
    };
    double named = 0;  // the contributions of all parts of the stream so far
    double heads = 0;  // of the layer at hand
    for (std::size_t p = 0; p < result.parts.size(); ++p) {
      const Part& part = result.parts[p];
      const std::string block = fmt::format("blocks.{}.", part.layer);
      double value = 0;
      switch (part.kind) {
        case PartKind::kEmbedding: value = written("hook_embed"); break;
        case PartKind::kPositions: value = written("hook_pos_embed"); break;
        case PartKind::kHead:
          if (part.head == 0) heads = 0;
          value = written(block + "attn.hook_result", part.head, H);
          heads += value;
          break;
        case PartKind::kAttentionBias: value = written(block + "hook_attn_out") - heads; break;
        case PartKind::kMlp: value = written(block + "hook_mlp_out"); break;
        case PartKind::kRest: value = written(stream) - named; break;
        case PartKind::kOutputBias: value = biases[b]; break;
      }
      named += value;
      result.contributions[p][batch[b]] = value;
    }
    result.total[batch[b]] = product(logits.value().f32() + row * V, weights.f32() + row * V, V);
  }
}

}  // namespace

std::string name_of(const Part& part) {
  switch (part.kind) {
    case PartKind::kEmbedding: return "embedding";
    case PartKind::kPositions: return "positions";
    case PartKind::kHead: return head_name({part.layer, part.head});
    case PartKind::kAttentionBias: return layer_name(part.layer) + " attention bias";
    case PartKind::kMlp: return mlp_name(part.layer);
    case PartKind::kRest: return "rest";
    case PartKind::kOutputBias: return "output bias";
  }
  return "unknown";
}

std::vector<std::size_t> LogitAttribution::order() const {
  std::vector<double> means;
  for (std::size_t i = 0; i < parts.size(); ++i) means.push_back(std::abs(of(i).mean));
  std::vector<std::size_t> places(parts.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return means[a] > means[b]; });
  return places;
}

LogitAttribution attribute_logits(const Model& model, const std::vector<TaskPrompt>& prompts,
                                  const AttributionOptions& options) {
  require(!prompts.empty(), "logit attribution: there is no prompt");
  const ModelConfig& config = model.config();
  require(config.branch_norms == BranchNorms::kBefore && config.logit_soft_cap == 0.0f,
          "logit attribution: a {} model has {}, so that its logits are no sum of what its parts "
          "write",
          config.family,
          config.logit_soft_cap != 0.0f ? "a soft cap on its logits"
                                        : "norms behind attention and MLP");
  LogitAttribution result;
  result.parts = parts_of(model, has_tap(model, "hook_pos_embed"));
  result.contributions.assign(result.parts.size(), std::vector<double>(prompts.size()));
  result.total.resize(prompts.size());
  std::size_t done = 0;
  for (const std::vector<std::size_t>& batch : batches_of(prompts, options.tokens_at_once)) {
    attribute_prompts(model, batch, prompts, result);
    done += batch.size();
    if (options.progress) options.progress(done);
  }
  return result;
}

}  // namespace filigree
