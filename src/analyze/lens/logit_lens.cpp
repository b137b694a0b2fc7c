#include <fmt/format.h>

#include <cmath>
#include <span>

#include "analyze/next_token.h"
#include "filigree/error.h"
#include "filigree/lens.h"
#include "filigree/names.h"
#include "filigree/runtime.h"

namespace filigree {
namespace {

LensCell read_cell(std::span<const float> logits, std::int64_t top, std::optional<TokenId> wanted) {
  const double log_sum = log_sum_of(logits);
  const auto log_probability = [&](TokenId id) {
    return static_cast<double>(logits[static_cast<std::size_t>(id)]) - log_sum;
  };
  LensCell cell;
  for (const TokenId id : likeliest_tokens(logits, static_cast<std::size_t>(top)))
    cell.top.push_back({id, std::exp(log_probability(id))});
  if (wanted) cell.log_probability = log_probability(*wanted), cell.rank = rank_of(logits, *wanted);
  return cell;
}

}  // namespace

std::string tap_name(const LensPoint& point) {
  const char* place = point.place == LensPlace::kBefore   ? "pre"
                      : point.place == LensPlace::kMiddle ? "mid"
                                                          : "post";
  return fmt::format("blocks.{}.hook_resid_{}", point.layer, place);
}

std::string name_of(const LensPoint& point) {
  const std::string tap = tap_name(point);
  return fmt::format("{} {}", layer_name(point.layer), tap.substr(tap.find("resid")));
}

std::vector<LensCell> read_stream(const Model& model, const std::vector<TokenId>& ids,
                                  const Tensor& stream, const LensOptions& options) {
  const auto T = static_cast<std::int64_t>(ids.size());
  // The stream takes the place of what the last layer leaves, so that the model itself applies
  // whatever norm and unembedding it has.
  const ForwardStart start = {model.config().layers, false, stream};
  const Tensor logits = model.forward(Tensor::from_ids({1, T}, ids), {.start = &start}).value();
  const std::int64_t V = logits.size(-1);
  std::vector<LensCell> cells(ids.size());
  parallel_for(T, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      std::optional<TokenId> wanted = options.token;
      // Classes have other numbers than tokens.
      if (!wanted && t + 1 < T && model.config().classes == 0)
        wanted = ids[static_cast<std::size_t>(t + 1)];
      cells[static_cast<std::size_t>(t)] = read_cell(
          logits.values().subspan(static_cast<std::size_t>(t * V), static_cast<std::size_t>(V)),
          options.top, wanted);
    }
  });
  return cells;
}

LogitLens logit_lens(const Model& model, const std::vector<TokenId>& ids,
                     const LensOptions& options) {
  const ModelConfig& config = model.config();
  require(!ids.empty(), "logit lens: the prompt is empty");
  require(options.top >= 0, "logit lens: {} likeliest tokens cannot be shown", options.top);
  require(!options.token || (*options.token >= 0 && *options.token < config.outputs()),
          "logit lens: token {} is outside the {} logits", options.token.value_or(0),
          config.outputs());
  require(!options.middle || config.mlp != MlpKind::kNone,
          "logit lens: the layers of this model are attention only, without a stream before MLPs");
  require(!options.middle || config.residual == ResidualKind::kSequential,
          "logit lens: the attention and the MLP of a layer read the same stream, so that there is "
          "none between them");
  LogitLens lens;
  lens.positions = static_cast<std::int64_t>(ids.size());
  lens.points.push_back({LensPlace::kBefore, 0});
  for (std::int64_t l = 0; l < config.layers; ++l) {
    if (options.middle) lens.points.push_back({LensPlace::kMiddle, l});
    lens.points.push_back({LensPlace::kAfter, l});
  }

  const std::int64_t T = lens.positions;
  const Tensor tokens = Tensor::from_ids({1, T}, ids);
  Taps seen;
  if (options.interventions != nullptr) options.interventions->put_on(seen);
  for (const LensPoint& point : lens.points) seen.observe(tap_name(point));
  model.forward(tokens, {.taps = &seen, .last_position_only = true});

  lens.cells.reserve(lens.points.size() * ids.size());
  for (std::size_t p = 0; p < lens.points.size(); ++p) {
    const std::vector<LensCell> cells =
        read_stream(model, ids, seen.value(tap_name(lens.points[p])), options);
    lens.cells.insert(lens.cells.end(), cells.begin(), cells.end());
    if (options.progress) options.progress(p + 1, lens.points.size());
  }
  return lens;
}

}  // namespace filigree
