#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include "analyze/circuit/head_outputs.h"
#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/lens.h"
#include "filigree/names.h"
#include "filigree/tasks.h"

namespace filigree {
namespace {

// A place of a batch whose logits are read.
struct ReadPosition {
  std::int64_t row = 0, position = 0;
};

// Rows of the places, by tap: [places, inner].
using PositionRows = std::map<std::string, std::vector<float>, std::less<>>;

// Keeps the places of every value it is shown, [B, T, ...].
TapWatcher keep_positions(std::span<const ReadPosition> places, PositionRows& rows) {
  return [places, &rows](std::string_view name, const Tensor& value) {
    const std::int64_t B = value.size(0), T = value.size(1);
    const std::int64_t inner = value.elements() / (B * T);
    std::vector<float>& kept = rows[std::string(name)];
    kept.resize(places.size() * static_cast<std::size_t>(inner));
    float* to = kept.data();
    for (const ReadPosition& place : places)
      to = std::copy_n(value.f32() + (place.row * T + place.position) * inner, inner, to);
  };
}

// The weights of the logits in a difference, written to V zeros.
void write_weights(const std::vector<TokenId>& answers, const std::vector<TokenId>& wrong,
                   float* weights, std::int64_t V) {
  require(!answers.empty(), "logit attribution: a prompt has no answer");
  for (const bool right : {true, false}) {
    const std::vector<TokenId>& ids = right ? answers : wrong;
    for (const TokenId id : ids) {
      require(id >= 0 && id < V, "logit attribution: token {} is outside the {} logits", id, V);
      weights[id] += (right ? 1.0f : -1.0f) / static_cast<float>(ids.size());
    }
  }
}

double product(const float* a, const float* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

bool has_tap(const Model& model, std::string_view name) {
  return std::find(model.tap_names().begin(), model.tap_names().end(), name) !=
         model.tap_names().end();
}

// Whether vectors of positions are part of the stream.
bool has_positions(const Model& model) {
  return model.config().positions == PositionKind::kLearned;
}

// Makes the logits linear in the stream, which they are without a norm.
void hold_final_scale(const Model& model, Taps& taps, Intervention held) {
  if (has_tap(model, "ln_final.hook_scale")) taps.intervene("ln_final.hook_scale", std::move(held));
}

std::string stream_tap(const Model& model) {
  return fmt::format("blocks.{}.hook_resid_post", model.config().layers - 1);
}

// The logits when the stream is zero: the biases behind it, which the scale of the norm does not
// reach.
Tensor output_biases(const Model& model) {
  const ModelConfig& config = model.config();
  const ForwardStart start = {config.layers, false, Tensor::zeros({1, 1, config.width})};
  Taps taps;
  hold_final_scale(model, taps, [](const Variable& scale) {
    return Variable(Tensor::full(scale.shape(), 1.0f));
  });
  const Tensor ids = Tensor::from_ids({1, 1}, std::vector<TokenId>{0});
  return model.forward(ids, {.taps = &taps, .start = &start, .uncapped_logits = true}).value();
}

std::vector<Part> parts_of(const Model& model, bool positions) {
  std::vector<Part> parts = {{PartKind::kEmbedding}};
  if (positions) parts.push_back({PartKind::kPositions});
  for (std::int64_t l = 0; l < model.config().layers; ++l) {
    for (std::int64_t h = 0; h < model.config().heads; ++h)
      parts.push_back({PartKind::kHead, l, h});
    parts.push_back({PartKind::kAttentionBias, l});
    if (model.config().mlp != MlpKind::kNone) parts.push_back({PartKind::kMlp, l});
  }
  parts.push_back({PartKind::kRest});
  parts.push_back({PartKind::kOutputBias});
  return parts;
}

// What is read of a batch: the difference of logits at place i goes to slot i of the result.
struct Readings {
  std::vector<ReadPosition> places = {};
  std::vector<const std::vector<TokenId>*> answers = {}, wrong = {};
  std::vector<std::size_t> slots = {};
  bool last_only = false;  // all places are last positions
};

void attribute_batch(const Model& model, const Tensor& ids, const Readings& readings,
                     AppliedInterventions* changes, LogitAttribution& result) {
  const std::int64_t d = model.config().width, H = model.config().heads;
  const std::string stream = stream_tap(model);

  PositionRows rows;
  Taps taps;
  if (changes != nullptr) changes->put_on(taps);
  const TapWatcher keep = keep_positions(readings.places, rows);
  taps.watch("hook_embed", keep);
  if (has_positions(model)) taps.watch("hook_pos_embed", keep);
  taps.watch("blocks.*.hook_attn_out", keep);
  if (model.config().mlp != MlpKind::kNone) taps.watch("blocks.*.hook_mlp_out", keep);
  const HeadOutputs heads_of(model);
  for (std::int64_t l = 0; l < model.config().layers; ++l) heads_of.watch(taps, l, keep);
  taps.watch(stream, keep);
  hold_final_scale(model, taps, [](const Variable& scale) { return Variable(scale.value()); });
  taps.observe_gradient(stream);
  Tape tape;
  const Variable logits = model.forward(
      ids, {.taps = &taps, .last_position_only = readings.last_only, .uncapped_logits = true});
  const std::int64_t V = logits.size(-1);
  // A logit depends on the stream at its own position alone behind the last layer, so that one
  // backward pass gives the slopes of all.
  Tensor weights = Tensor::zeros(logits.shape());
  const auto logits_of = [&](std::size_t i) {
    const ReadPosition& place = readings.places[i];
    return (place.row * logits.size(1) + (readings.last_only ? 0 : place.position)) * V;
  };
  for (std::size_t i = 0; i < readings.places.size(); ++i)
    write_weights(*readings.answers[i], *readings.wrong[i], weights.mutable_f32() + logits_of(i),
                  V);
  tape.backward(logits, weights);
  PositionRows slopes;
  keep_positions(readings.places, slopes)("slope", taps.gradient(stream));
  const Tensor biases = output_biases(model);

  for (std::size_t i = 0; i < readings.places.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    const float* slope = slopes.at("slope").data() + row * d;
    const float* weight = weights.f32() + logits_of(i);
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
          value = written(HeadOutputs::tap(part.layer), part.head, H);
          heads += value;
          break;
        case PartKind::kAttentionBias: value = written(block + "hook_attn_out") - heads; break;
        case PartKind::kMlp: value = written(block + "hook_mlp_out"); break;
        case PartKind::kRest: value = written(stream) - named; break;
        case PartKind::kOutputBias: value = product(biases.f32(), weight, V); break;
      }
      named += value;
      result.contributions[p][readings.slots[i]] = value;
    }
    result.total[readings.slots[i]] = product(logits.value().f32() + logits_of(i), weight, V);
  }
}

void attribute_prompts(const Model& model, const std::vector<std::size_t>& batch,
                       const std::vector<TaskPrompt>& prompts, LogitAttribution& result) {
  PromptRefs refs;
  for (const std::size_t i : batch) refs.push_back(&prompts[i]);
  const Tensor ids = prompt_ids(refs, false);
  const std::int64_t read = refs[0]->position;
  Readings readings = {.slots = batch, .last_only = read < 0};
  for (std::size_t b = 0; b < batch.size(); ++b) {
    readings.places.push_back({static_cast<std::int64_t>(b), read < 0 ? ids.size(1) - 1 : read});
    readings.answers.push_back(&refs[b]->answers);
    readings.wrong.push_back(&refs[b]->wrong);
  }
  attribute_batch(model, ids, readings, nullptr, result);
}

// With room for so many.
LogitAttribution empty_attribution(const Model& model, std::size_t count) {
  LogitAttribution result;
  result.parts = parts_of(model, has_positions(model));
  result.contributions.assign(result.parts.size(), std::vector<double>(count));
  result.total.resize(count);
  return result;
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
  LogitAttribution result = empty_attribution(model, prompts.size());
  std::size_t done = 0;
  for (const std::vector<std::size_t>& batch : batches_of(prompts, options.tokens_at_once)) {
    attribute_prompts(model, batch, prompts, result);
    done += batch.size();
    if (options.progress) options.progress(done);
  }
  return result;
}

LogitAttribution attribute_positions(const Model& model, const std::vector<TokenId>& ids,
                                     const std::vector<ReadLogit>& logits,
                                     AppliedInterventions* changes) {
  require(!ids.empty() && !logits.empty(), "logit attribution: there is no logit to attribute");
  LogitAttribution result = empty_attribution(model, logits.size());
  const auto T = static_cast<std::int64_t>(ids.size());
  Readings readings = {.last_only = logits.size() == 1 && logits[0].position == T - 1};
  std::vector<bool> read(ids.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const std::int64_t at = logits[i].position;
    require(at >= 0 && at < T, "logit attribution: position {} of a prompt of {} tokens", at, T);
    require(!read[static_cast<std::size_t>(at)], "logit attribution: position {} comes twice", at);
    read[static_cast<std::size_t>(at)] = true;
    readings.places.push_back({0, at});
    readings.answers.push_back(&logits[i].answers);
    readings.wrong.push_back(&logits[i].wrong);
    readings.slots.push_back(i);
  }
  attribute_batch(model, Tensor::from_ids({1, T}, ids), readings, changes, result);
  return result;
}

}  // namespace filigree
