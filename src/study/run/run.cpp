#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "analyze/next_token.h"
#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/feature_study.h"
#include "filigree/lens_study.h"
#include "study/not_finite.h"

namespace filigree::study {
namespace {

std::span<const float> row_of(const Tensor& logits, std::size_t position) {
  const auto V = static_cast<std::size_t>(logits.size(-1));
  return logits.values().subspan(position * V, V);
}

std::vector<NextToken> next_tokens(std::span<const float> logits, std::span<const TokenId> ids) {
  const double log_sum = log_sum_of(logits);
  std::vector<NextToken> tokens;
  for (const TokenId id : ids) {
    const double logit = logits[static_cast<std::size_t>(id)];
    tokens.push_back({id, rank_of(logits, id), logit, std::exp(logit - log_sum)});
  }
  return tokens;
}

// Of one prompt: [1, ...] -> [...].
Tensor without_batch(const Tensor& value) {
  return value.reshape(Shape(value.shape().extents().subspan(1)));
}

const char* const kHeadTaps = "blocks.*.attn.hook_z";
const char* const kMlpTaps = "blocks.*.hook_mlp_out";
const char* const kExpertTaps = "blocks.*.mlp.hook_expert_out";

double value_times(const float* a, const float* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// The sum over a tap of [1, T, P, D] for each of its P parts: heads or experts.
std::vector<double> by_part(const Taps& taps, const std::string& tap) {
  const Tensor &value = taps.value(tap), &slope = taps.gradient(tap);
  const std::int64_t T = value.size(1), P = value.size(2), D = value.size(3);
  std::vector<double> sums(static_cast<std::size_t>(P), 0.0);
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t p = 0; p < P; ++p)
      sums[static_cast<std::size_t>(p)] +=
          value_times(value.f32() + (t * P + p) * D, slope.f32() + (t * P + p) * D, D);
  return sums;
}

std::vector<PartGradient> part_gradients(const Model& model, const Taps& taps) {
  const ModelConfig& config = model.config();
  std::vector<PartGradient> parts;
  for (std::int64_t l = 0; l < config.layers; ++l) {
    std::int64_t head = 0;
    for (const double sum : by_part(taps, fmt::format("blocks.{}.attn.hook_z", l)))
      parts.push_back({{.kind = ComponentKind::kHead, .layer = l, .head = head++}, sum});
    if (config.mlp == MlpKind::kNone) continue;
    if (config.mlp == MlpKind::kExperts) {
      std::int64_t expert = 0;
      for (const double sum : by_part(taps, fmt::format("blocks.{}.mlp.hook_expert_out", l)))
        parts.push_back({{.kind = ComponentKind::kExpert, .layer = l, .expert = expert++}, sum});
      continue;
    }
    const std::string mlp_tap = fmt::format("blocks.{}.hook_mlp_out", l);
    const Tensor& out = taps.value(mlp_tap);
    parts.push_back({{ComponentKind::kMlp, l},
                     value_times(out.f32(), taps.gradient(mlp_tap).f32(), out.elements())});
  }
  return parts;
}

RunValues run_once(const LoadedModel& loaded, const RunResult& result,
                   AppliedInterventions* changes, SteeredFeatures* steering) {
  const Model& model = loaded.model();
  Taps taps;
  if (changes != nullptr) changes->put_on(taps);
  if (steering != nullptr) steering->put_on(taps);
  const bool gradient = result.gradient_of.has_value();
  for (const std::string& name : result.taps)
    gradient ? taps.observe_gradient(name) : taps.observe(name);
  const auto T = static_cast<std::int64_t>(result.ids.size());
  const Tensor ids = Tensor::from_ids({1, T}, result.ids);
  RunValues values;
  std::optional<Tape> tape;
  if (gradient) {
    taps.observe_gradient(kHeadTaps);
    if (model.config().mlp != MlpKind::kNone)
      taps.observe_gradient(model.config().mlp == MlpKind::kExperts ? kExpertTaps : kMlpTaps);
    // Gates stay as the run sets them: their slope is 0 wherever it exists.
    if (model.config().gate.on())
      taps.intervene("blocks.*.attn.hook_gate",
                     [](const Variable& gate) { return Variable(gate.value()); });
    tape.emplace();
  }
  const Variable logits = model.forward(ids, {.taps = &taps});  // [1, T, V]
  if (gradient) {
    Tensor weights = Tensor::zeros(logits.shape());
    weights.mutable_f32()[(T - 1) * logits.size(-1) + *result.gradient_of] = 1.0f;
    tape->backward(logits, weights);
    values.parts = part_gradients(model, taps);
  }
  values.logits = without_batch(logits.value());
  for (const std::string& name : result.taps) {
    values.taps.push_back(without_batch(taps.value(name)));
    if (gradient) values.gradients.push_back(without_batch(taps.gradient(name)));
  }
  for (std::size_t t = 0; t < result.ids.size(); ++t) {
    const std::span<const float> row = row_of(values.logits, t);
    values.likeliest.push_back(next_tokens(row, likeliest_tokens(row, 1))[0]);
  }
  return values;
}

std::vector<double> divergences(const Tensor& plain, const Tensor& changed) {
  std::vector<double> result;
  for (std::size_t t = 0; t < static_cast<std::size_t>(plain.size(0)); ++t)
    // Rounding may leave a little below 0.
    result.push_back(std::max(divergence(row_of(plain, t), row_of(changed, t)), 0.0));
  return result;
}

// The tokens asked for, then the likeliest of both runs, each once.
std::vector<TokenId> listed_tokens(const RunResult& result, const LoadedModel& model) {
  std::vector<TokenId> ids;
  const auto add = [&](TokenId id) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  };
  for (const std::string& text : result.request.tokens) add(single_token(model, text, "the token"));
  if (result.gradient_of) add(*result.gradient_of);
  const std::size_t last = result.ids.size() - 1;
  for (const RunValues* run : {&result.plain, result.changed ? &*result.changed : nullptr})
    if (run != nullptr)
      for (const TokenId id : likeliest_tokens(row_of(run->logits, last), result.request.top))
        add(id);
  return ids;
}

Json next_json(const RunResult& result, const NextToken& token) {
  return {{"token", result.shown[token.id]},
          {"id", token.id},
          {"rank", token.rank + 1},
          {"logit", token.logit},
          {"probability", token.probability}};
}

Json run_json(const RunResult& result, const RunValues& run) {
  Json next = Json::array(), positions = Json::array(), parts = Json::array();
  for (const NextToken& token : run.listed) next.push_back(next_json(result, token));
  for (const NextToken& token : run.likeliest) positions.push_back(next_json(result, token));
  for (const PartGradient& part : run.parts)
    parts.push_back(
        {{"part", name_of(part.part)}, {"value_times_gradient", part.value_times_gradient}});
  return {
      {"next", next}, {"likeliest", positions}, {"gradients", result.gradient_of ? parts : Json()}};
}

Json steering_json(const std::vector<SteeredFeature>& steered) {
  Json list = Json::array();
  for (const SteeredFeature& one : steered) {
    Json json = to_json(one.change);
    json["activations"] = one.activations;
    list.push_back(json);
  }
  return list;
}

}  // namespace

double root_mean_square(std::span<const float> values) {
  constexpr float kNoScore = -std::numeric_limits<float>::infinity();
  double sum = 0;
  std::size_t count = 0;
  for (const float value : values)
    if (value != kNoScore) sum += static_cast<double>(value) * value, ++count;
  return count == 0 ? 0.0 : std::sqrt(sum / static_cast<double>(count));
}

std::vector<std::string> RunResult::tokens() const {
  std::vector<std::string> texts;
  for (const TokenId id : ids) texts.push_back(shown[id]);
  return texts;
}

std::vector<std::string> matching_taps(const Model& model, const std::string& glob) {
  std::vector<std::string> names;
  for (const std::string& name : model.tap_names())
    if (fnmatch(glob.c_str(), name.c_str(), 0) == 0) names.push_back(name);
  if (names.empty()) fail_no_tap(glob, model);
  return names;
}

std::vector<PartGradient> part_gradients(const LoadedModel& model, const std::vector<TokenId>& ids,
                                         TokenId token) {
  RunResult asked;
  asked.ids = ids, asked.gradient_of = token;
  return run_once(model, asked, nullptr, nullptr).parts;
}

RunResult run(const RunRequest& request, Models models, const Context& context) {
  const LoadedModel& model = models.only();
  RunResult result;
  result.request = request;
  result.model = model.name(), result.label = model.label();
  result.ids = prompt_tokens(model, request.prompt, request.chat);
  if (!request.gradient_of.empty())
    result.gradient_of = single_token(model, request.gradient_of, "the token to differentiate");
  for (const std::string& glob : request.taps)
    for (const std::string& name :
         glob == kLogitsTap ? std::vector<std::string>() : matching_taps(model.model(), glob))
      if (std::find(result.taps.begin(), result.taps.end(), name) == result.taps.end())
        result.taps.push_back(name);
  const Interventions interventions = for_text(request.interventions, model, result.ids);
  result.request.interventions = interventions;
  check_fits(interventions, static_cast<std::int64_t>(result.ids.size()));
  context.throw_if_stopped();
  result.plain = run_once(model, result, nullptr, nullptr);
  require_finite(result.plain.logits.values(), "the prediction", model, result.ids);
  if (!interventions.empty() || !request.steering.empty()) {
    context.throw_if_stopped();
    AppliedInterventions changes(model.model(), interventions);
    std::optional<Steering> steering;
    if (!request.steering.empty()) {
      steering.emplace(request.features, request.steering, model);
      steering->check_positions(static_cast<std::int64_t>(result.ids.size()));
    }
    result.changed = run_once(model, result, &changes, steering ? &steering->features() : nullptr);
    require_finite(result.changed->logits.values(), "the changed prediction", model, result.ids);
    for (std::size_t i = 0; i < request.steering.size(); ++i)
      result.steered.push_back({request.steering[i], steering->features().activations()[i]});
    result.divergence = divergences(result.plain.logits, result.changed->logits);
  }
  result.listed = listed_tokens(result, model);
  const std::size_t last = result.ids.size() - 1;
  for (RunValues* run : {&result.plain, result.changed ? &*result.changed : nullptr}) {
    if (run == nullptr) continue;
    run->listed = next_tokens(row_of(run->logits, last), result.listed);
    for (const NextToken& token : run->likeliest) result.shown.add(model.tokenizer(), token.id);
  }
  for (const std::vector<TokenId>* ids : {&result.ids, &result.listed})
    for (const TokenId id : *ids) result.shown.add(model.tokenizer(), id);
  return result;
}

Json to_json(const RunResult& result) {
  Json taps = Json::array();
  for (std::size_t i = 0; i < result.taps.size(); ++i) {
    const Tensor& value = result.plain.taps[i];
    const auto square = [](const std::vector<Tensor>& tensors, std::size_t at) {
      return tensors.empty() ? Json() : Json(root_mean_square(tensors[at].values()));
    };
    const std::span<const std::int64_t> shape = value.shape().extents();
    taps.push_back({{"tap", result.taps[i]},
                    {"shape", std::vector<std::int64_t>(shape.begin(), shape.end())},
                    {"plain_rms", root_mean_square(value.values())},
                    {"changed_rms", result.changed ? square(result.changed->taps, i) : Json()},
                    {"gradient_rms", square(result.plain.gradients, i)}});
  }
  return {{"model", result.model},
          {"prompt", shown_prompt(result.request.prompt)},
          {"ids", result.ids},
          {"tokens", result.tokens()},
          {"interventions", to_json(result.request.interventions)},
          {"features", result.request.features.empty() ? Json() : Json(result.request.features)},
          {"steering", steering_json(result.steered)},
          {"gradient_of", result.gradient_of ? Json(result.shown[*result.gradient_of]) : Json()},
          {"plain", run_json(result, result.plain)},
          {"changed", result.changed ? run_json(result, *result.changed) : Json()},
          {"divergence", result.changed ? Json(result.divergence) : Json()},
          {"taps", taps}};
}

}  // namespace filigree::study
