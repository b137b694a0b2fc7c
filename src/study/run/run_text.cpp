#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/table.h"
#include "filigree/lens_study.h"
#include "filigree/names.h"

namespace filigree::study {
namespace {

constexpr std::size_t kShownTaps = 40;  // of the table; the file and JSON have all
constexpr std::size_t kShownParts = 15, kShownPlaces = 8;
constexpr std::size_t kLineWidth = 98;

std::string quoted_token(const RunResult& result, TokenId id) {
  return "'" + printable(result.shown[id]) + "'";
}

// The tokens with their positions; lines break between them, never in one.
std::string numbered_tokens(const RunResult& result) {
  std::string text, line;
  for (std::size_t t = 0; t < result.ids.size(); ++t) {
    const std::string token = fmt::format("  {} {}", t, quoted_token(result, result.ids[t]));
    if (!line.empty() && display_width(line + token) > kLineWidth)
      text += std::exchange(line, "") + "\n";
    line += token;
  }
  return text + line + "\n";
}

// What the features that were changed were before, where they were active.
std::string steered_text(const RunResult& result) {
  std::string text;
  for (const SteeredFeature& one : result.steered) {
    std::string active;
    for (std::size_t t = 0; t < one.activations.size(); ++t)
      if (one.activations[t] != 0)
        active += fmt::format("  {} {} {:.3g}", t, quoted_token(result, result.ids[t]),
                              one.activations[t]);
    text += fmt::format("{} was{}\n", feature_name(one.change.feature),
                        active.empty() ? " not active" : active);
  }
  return text;
}

std::string next_tokens_table(const RunResult& result) {
  std::vector<Table::Column> columns = {{"next token"},
                                        {"rank", Align::kRight},
                                        {"probability", Align::kRight},
                                        {"logit", Align::kRight}};
  if (result.changed)
    columns.insert(columns.end(), {{"   changed: rank", Align::kRight},
                                   {"probability", Align::kRight},
                                   {"logit", Align::kRight},
                                   {"by", Align::kRight}});
  Table table(columns);
  for (std::size_t i = 0; i < result.listed.size(); ++i) {
    const NextToken& plain = result.plain.listed[i];
    std::vector<std::string> row = {quoted_token(result, plain.id), std::to_string(plain.rank + 1),
                                    percent(plain.probability), fmt::format("{:.3f}", plain.logit)};
    if (result.changed) {
      const NextToken& changed = result.changed->listed[i];
      row.insert(row.end(), {std::to_string(changed.rank + 1), percent(changed.probability),
                             fmt::format("{:.3f}", changed.logit),
                             fmt::format("{:+.3f}", changed.logit - plain.logit)});
    }
    table.add(std::move(row));
  }
  std::string text = table.text(2);
  if (result.changed)
    text += fmt::format("\n  KL(plain || changed) of the next token: {:.4g} nats\n",
                        result.divergence.back());
  return text;
}

// Where in the prompt the prediction changes most.
std::string changed_places_text(const RunResult& result) {
  std::vector<std::size_t> order(result.divergence.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return result.divergence[a] > result.divergence[b];
  });
  if (result.divergence[order[0]] == 0) return "\nthe prediction is the same everywhere\n";
  Table table(
      {{"", Align::kRight}, {"after"}, {"plain"}, {"changed"}, {"KL in nats", Align::kRight}});
  for (std::size_t i = 0; i < std::min(order.size(), kShownPlaces); ++i) {
    const std::size_t t = order[i];
    if (result.divergence[t] == 0) break;
    const NextToken &plain = result.plain.likeliest[t], &changed = result.changed->likeliest[t];
    table.add({std::to_string(t), quoted_token(result, result.ids[t]),
               fmt::format("{} {}", quoted_token(result, plain.id), percent(plain.probability)),
               fmt::format("{} {}", quoted_token(result, changed.id), percent(changed.probability)),
               fmt::format("{:.4g}", result.divergence[t])});
  }
  return "\nwhere the prediction changes most\n" + table.text(2);
}

std::string gradient_text(const RunResult& result) {
  const std::vector<PartGradient>& plain = result.plain.parts;
  std::vector<std::size_t> order(plain.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(plain[a].value_times_gradient) > std::abs(plain[b].value_times_gradient);
  });
  std::vector<Table::Column> columns = {{"part"}, {"value x gradient", Align::kRight}};
  if (result.changed) columns.push_back({"changed", Align::kRight});
  Table table(columns);
  for (std::size_t i = 0; i < std::min(order.size(), kShownParts); ++i) {
    std::vector<std::string> row = {name_of(plain[order[i]].part),
                                    fmt::format("{:+.4f}", plain[order[i]].value_times_gradient)};
    if (result.changed)
      row.push_back(fmt::format("{:+.4f}", result.changed->parts[order[i]].value_times_gradient));
    table.add(std::move(row));
  }
  return fmt::format(
             "\ngradient of the logit of {}: a first-order estimate of what each part adds to it\n",
             quoted_token(result, *result.gradient_of)) +
         table.text(2);
}

std::string taps_table(const RunResult& result) {
  const bool gradient = result.gradient_of.has_value();
  std::vector<Table::Column> columns = {{"tap"}, {"shape"}, {"rms", Align::kRight}};
  if (gradient) columns.push_back({"of the gradient", Align::kRight});
  if (result.changed) columns.push_back({"of the change", Align::kRight});
  Table table(columns);
  for (std::size_t i = 0; i < std::min(result.taps.size(), kShownTaps); ++i) {
    const Tensor& value = result.plain.taps[i];
    std::vector<std::string> row = {result.taps[i], value.shape().to_string(),
                                    fmt::format("{:.4g}", root_mean_square(value.values()))};
    if (gradient)
      row.push_back(fmt::format("{:.4g}", root_mean_square(result.plain.gradients[i].values())));
    if (result.changed) {
      const std::span<const float> a = value.values(), b = result.changed->taps[i].values();
      std::vector<float> change;
      for (std::size_t c = 0; c < a.size(); ++c)  // scores above the diagonal are no change
        change.push_back(a[c] == b[c] ? 0.0f : b[c] - a[c]);
      row.push_back(fmt::format("{:.4g}", root_mean_square(change)));
    }
    table.add(std::move(row));
  }
  std::string text = "\n" + table.text(2);
  if (result.taps.size() > kShownTaps)
    text += fmt::format("  and {} more\n", result.taps.size() - kShownTaps);
  return text;
}

}  // namespace

std::string text_of(const RunResult& result) {
  std::string text = fmt::format("{}\n", printable(result.label)) + numbered_tokens(result) +
                     changed_text(result.request.interventions, result.request.steering) +
                     steered_text(result) + "\n" + next_tokens_table(result);
  if (result.changed) text += changed_places_text(result);
  if (result.gradient_of) text += gradient_text(result);
  if (!result.taps.empty()) text += taps_table(result);
  return text;
}

}  // namespace filigree::study
