#include "study/generation/token_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyze/next_token.h"
#include "filigree/error.h"
#include "study/not_finite.h"

namespace filigree::study {

TokenSteps::TokenSteps(const LoadedModel& model, std::vector<TokenId> prompt, StepOptions options,
                       AppliedInterventions* interventions)
    : model_(model),
      options_(options),
      interventions_(interventions),
      ids_(std::move(prompt)),
      prompt_(ids_.size()),
      sampler_(options.sampling, options.seed),
      decoder_(model.tokenizer()) {
  const ModelConfig& config = model.config();
  const auto length = static_cast<std::int64_t>(prompt_);
  require(length > 0, "the prompt is empty, and the tokenizer has no token that begins a text");
  require(length < config.context,
          "the prompt is {} tokens long and leaves no room for more in the model's context of {}",
          length, config.context);
  if (interventions_ != nullptr) {
    interventions_->put_on(taps_);
    cut_ = cut_edges(interventions_->interventions(), config, length);
  }
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    taps_.watch(fmt::format("blocks.{}.attn.hook_pattern", layer),
                [this, layer](std::string_view, const Tensor& pattern) { see(layer, pattern); });
  cache_ = model.model().make_cache(1, std::min(config.context, length + options_.max_tokens));
  run(0);
}

// Of the tokens from `known` on, which the cache does not hold yet.
void TokenSteps::run(std::size_t known) {
  if (!model_.config().same_angles(cache_->longest_run(), static_cast<std::int64_t>(ids_.size()))) {
    cache_->clear();
    known = 0;
  }
  const std::span<const TokenId> fresh = std::span(ids_).subspan(known);
  edges_.clear();
  if (interventions_ != nullptr)
    interventions_->set_pass(static_cast<std::int64_t>(known), static_cast<std::int64_t>(prompt_));
  const Tensor input = Tensor::from_ids({1, static_cast<std::int64_t>(fresh.size())}, fresh);
  const Variable logits = model_.model().forward(
      input, {.taps = &taps_, .cache = cache_.get(), .last_position_only = true});
  const std::span<const float> values = logits.value().values();
  logits_.assign(values.begin(), values.end());
  require_finite(logits_, "the prediction", model_, ids_);
  for (std::size_t id = 0; id < logits_.size(); ++id)  // padding of the embedding
    if (!model_.tokenizer().has_token(static_cast<TokenId>(id)))
      logits_[id] = -std::numeric_limits<float>::infinity();
}

// [1, H, queries, keys]: the last query's.
void TokenSteps::see(std::int64_t layer, const Tensor& pattern) {
  const std::int64_t H = pattern.size(1), queries = pattern.size(2), keys = pattern.size(3);
  const auto length = static_cast<std::int64_t>(ids_.size());
  for (std::int64_t h = 0; h < H; ++h) {
    const float* row = pattern.f32() + ((h + 1) * queries - 1) * keys;
    for (std::int64_t key = 0; key < std::min(length, keys); ++key)
      if (row[key] >= options_.least_weight && row[key] > 0 &&
          !is_cut(cut_, {layer, h}, length - 1, key))
        edges_.push_back({{layer, h}, key, row[key]});
  }
}

std::optional<GeneratedToken> TokenSteps::next() {
  const auto made = static_cast<std::int64_t>(ids_.size() - prompt_);
  finish_ = Finish::kMaxTokens;
  if (made >= options_.max_tokens) return std::nullopt;
  finish_ = Finish::kContext;
  if (static_cast<std::int64_t>(ids_.size()) >= model_.config().context) return std::nullopt;
  GeneratedToken token;
  token.id = sampler_.choose(logits_);
  finish_ = Finish::kEndOfText;
  if (token.id == model_.tokenizer().eos_id()) return std::nullopt;
  token.probability = std::exp(logits_[static_cast<std::size_t>(token.id)] - log_sum_of(logits_));
  token.text = decoder_.push(token.id);
  ids_.push_back(token.id);
  run(ids_.size() - 1);
  std::stable_sort(edges_.begin(), edges_.end(),
                   [](const OpenEdge& a, const OpenEdge& b) { return a.weight > b.weight; });
  edges_.resize(std::min(edges_.size(), options_.most_edges));
  token.edges = std::move(edges_);
  return token;
}

}  // namespace filigree::study
