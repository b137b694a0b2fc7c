#include "filigree/serve/look.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "filigree/analyze/next_token.h"
#include "filigree/runtime/threads.h"
#include "filigree/serve/model_run.h"
#include "filigree/study/not_finite.h"
#include "filigree/study/tokens.h"

namespace filigree::serve {
namespace {

constexpr std::size_t kKeptRuns = 8;
constexpr float kWhole = 65535.0f;

// Appends the lower triangle of a map [size, size].
void append_cells(std::span<const float> map, std::size_t size, std::vector<std::uint16_t>& cells) {
  for (std::size_t i = 0; i < size; ++i) {
    const float* row = map.data() + i * size;
    const std::size_t begin = cells.size();
    cells.resize(begin + i + 1);
    for (std::size_t j = 0; j <= i; ++j) {
      const float weight = std::min(std::max(0.0f, row[j]), 1.0f);  // 0 for what is no number
      const auto level = static_cast<std::int32_t>(weight * kWhole + 0.5f);
      cells[begin + j] = static_cast<std::uint16_t>(level + (weight > 0.0f && level == 0 ? 1 : 0));
    }
  }
}

Prediction prediction_of(const Tensor& logits, const std::vector<TokenId>& ids) {
  const auto V = static_cast<std::size_t>(logits.size(-1));
  const auto row = [&](std::size_t t) { return logits.values().subspan(t * V, V); };
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
  return found;
}

void require_finite(const Prediction& found, const study::LoadedModel& model,
                    const std::vector<TokenId>& ids) {
  study::require_finite(found.logits, "the prediction", model, ids);
  study::require_finite(found.surprise, "the loss", model, ids);
}

std::shared_ptr<const Prediction> plain_run(const study::LoadedModel& model,
                                            const std::vector<TokenId>& ids, PlainRuns& plain) {
  if (std::shared_ptr<const Prediction> found = plain.find(model, ids)) return found;
  const Tensor input = Tensor::from_ids({1, static_cast<std::int64_t>(ids.size())}, ids);
  Prediction made = prediction_of(model.model().forward(input).value(), ids);
  require_finite(made, model, ids);
  auto kept = std::make_shared<const Prediction>(std::move(made));
  plain.keep(model, ids, kept);
  return kept;
}

// The likeliest of both runs, by the run at hand, with their probabilities in each.
Json next_json(const study::LoadedModel& model, const Prediction& now, const Prediction* plain,
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
        {{"token", study::shown_token(model.tokenizer(), id)},
         {"id", id},
         {"logit", now.logits[at]},
         {"probability", std::exp(now.logits[at] - sum)},
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

std::shared_ptr<const Prediction> PlainRuns::find(const study::LoadedModel& model,
                                                  const std::vector<TokenId>& ids) const {
  const std::lock_guard lock(mutex_);
  for (const Kept& one : kept_)
    if (one.model == &model && one.ids == ids) return one.prediction;
  return nullptr;
}

void PlainRuns::keep(const study::LoadedModel& model, const std::vector<TokenId>& ids,
                     std::shared_ptr<const Prediction> prediction) {
  const std::lock_guard lock(mutex_);
  std::erase_if(kept_, [&](const Kept& one) { return one.model == &model && one.ids == ids; });
  if (kept_.size() >= kKeptRuns) kept_.erase(kept_.begin());
  kept_.push_back({&model, ids, std::move(prediction)});
}

Looked look(const study::LoadedModel& model, const LookQuery& query, PlainRuns& plain,
            const Limits& limits, const study::Context& context) {
  const ModelConfig& config = model.config();
  const ModelRun run = run_of(model, query.run);
  const std::vector<TokenId>& ids = run.prompt.ids;
  CaptureOptions options =
      CaptureOptions::of(parse_heads(query.heads, config.layers, config.heads), query.kind);
  check_cells(options.heads.size(), ids.size(), limits.map_cells);
  AppliedInterventions changes(model.model(), run.interventions);
  Prediction now;
  options.interventions = &changes;
  options.logits = [&](const Tensor& logits) { now = prediction_of(logits, ids); };
  context.throw_if_stopped();
  Looked looked;
  looked.cells.reserve(options.heads.size() * (ids.size() * (ids.size() + 1) / 2));
  std::vector<float> map(ids.size() * ids.size());
  capture_maps(model.model(), std::span(&run.prompt, 1), options,
               [&](std::span<const HeadMap> heads) {
                 context.throw_if_stopped();
                 for (const HeadMap& head : heads) {
                   if (query.kind == MapKind::kWeights) {
                     append_cells(head.weights, ids.size(), looked.cells);
                     continue;
                   }
                   fill_map(head, query.kind, map);
                   append_cells(map, ids.size(), looked.cells);
                 }
               });
  require_finite(now, model, ids);
  std::shared_ptr<const Prediction> before;
  if (run.interventions.empty())
    plain.keep(model, ids, std::make_shared<const Prediction>(now));
  else
    before = plain_run(model, ids, plain);
  Json heads = Json::array();
  for (const HeadId& head : options.heads) heads.push_back(head_name(head));
  const auto or_null = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  looked.json = {{"model", model.label()},
                 {"tokens", run.prompt.tokens},
                 {"kind", name_of(query.kind)},
                 {"heads", heads},
                 {"cells", looked.cells.size()},
                 {"next", next_json(model, now, before.get(), query.top)},
                 {"loss", or_null(now.loss())},
                 {"plain_loss", before ? or_null(before->loss()) : Json()},
                 {"surprise", now.surprise},
                 {"divergence",
                  before ? Json(std::max(divergence(before->logits, now.logits), 0.0)) : Json()}};
  return looked;
}

Answer looked_answer(std::span<Looked> models) {
  static_assert(std::endian::native == std::endian::little);
  Json list = Json::array();
  std::size_t cells = 0;
  for (Looked& one : models) {
    one.json["first"] = cells;
    cells += one.cells.size();
    list.push_back(std::move(one.json));
  }
  std::string body = json_answer({{"models", list}}).body;
  body.append((4 - body.size() % 4) % 4, ' ');
  std::uint32_t length = static_cast<std::uint32_t>(body.size());
  char front[sizeof length];
  std::memcpy(front, &length, sizeof length);
  body.insert(0, front, sizeof front);
  std::size_t at = body.size();
  body.resize(at + cells * sizeof(std::uint16_t));
  for (Looked& one : models) {
    const std::size_t bytes = one.cells.size() * sizeof(std::uint16_t);
    std::memcpy(body.data() + at, one.cells.data(), bytes);
    at += bytes;
    one.cells = {};  // they may be many
  }
  return {200, "application/octet-stream", std::move(body)};
}

}  // namespace filigree::serve
