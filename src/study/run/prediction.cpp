#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "analyze/next_token.h"
#include "filigree/lens_study.h"
#include "filigree/runtime.h"
#include "filigree/study.h"
#include "study/not_finite.h"

namespace filigree::study {
namespace {

Json next_json(const LoadedModel& model, const Prediction& now, const Prediction* plain,
               std::size_t top) {
  std::vector<TokenId> ids = likeliest_tokens(now.logits, top);
  if (plain != nullptr)
    for (const TokenId id : likeliest_tokens(plain->logits, top))
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  const double sum = log_sum_of(now.logits), plain_sum = plain ? log_sum_of(plain->logits) : 0;
  Json next = Json::array();
  for (const TokenId id : ids) {
    const auto at = static_cast<std::size_t>(id);
    next.push_back(
        {{"token", shown_token(model.tokenizer(), id)},
         {"id", id},
         {"logit", now.logits[at]},
         {"rank", rank_of(now.logits, id) + 1},
         {"probability", std::exp(now.logits[at] - sum)},
         {"plain_rank", plain ? Json(rank_of(plain->logits, id) + 1) : Json()},
         {"plain_probability", plain ? Json(std::exp(plain->logits[at] - plain_sum)) : Json()}});
  }
  return next;
}

}  // namespace

double Prediction::loss() const {
  if (surprise.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(surprise.begin(), surprise.end(), 0.0) /
         static_cast<double>(surprise.size());
}

Prediction prediction_of(const Tensor& logits, const LoadedModel& model,
                         const std::vector<TokenId>& ids, std::size_t run) {
  const auto V = static_cast<std::size_t>(logits.size(-1));
  const auto row = [&](std::size_t t) {
    return logits.values().subspan((run * ids.size() + t) * V, V);
  };
  Prediction found;
  found.surprise.resize(ids.size() - 1);
  parallel_for(
      static_cast<std::int64_t>(found.surprise.size()), 4,
      [&](std::int64_t begin, std::int64_t end) {
        for (auto t = static_cast<std::size_t>(begin); t < static_cast<std::size_t>(end); ++t)
          found.surprise[t] = log_sum_of(row(t)) - row(t)[static_cast<std::size_t>(ids[t + 1])];
      });
  const std::span<const float> last = row(ids.size() - 1);
  found.logits.assign(last.begin(), last.end());
  require_finite(found.logits, "the prediction", model, ids);
  require_finite(found.surprise, "the loss", model, ids);
  return found;
}

Prediction predict(const LoadedModel& model, const std::vector<TokenId>& ids,
                   AppliedInterventions* changes) {
  Taps taps;
  if (changes != nullptr) changes->put_on(taps);
  const Tensor input = Tensor::from_ids({1, static_cast<std::int64_t>(ids.size())}, ids);
  return prediction_of(model.model().forward(input, {.taps = changes ? &taps : nullptr}).value(),
                       model, ids);
}

Json to_json(const Prediction& now, const Prediction* plain, const LoadedModel& model,
             std::size_t top) {
  const auto or_null = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  return {
      {"next", next_json(model, now, plain, top)},
      {"loss", or_null(now.loss())},
      {"plain_loss", plain ? or_null(plain->loss()) : Json()},
      {"surprise", now.surprise},
      {"divergence", plain ? Json(std::max(divergence(plain->logits, now.logits), 0.0)) : Json()}};
}

}  // namespace filigree::study
