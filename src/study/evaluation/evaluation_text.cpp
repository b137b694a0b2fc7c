
#include <fmt/format.h>

#include <algorithm>

#include "base/table.h"
#include "filigree/evaluation_study.h"
#include "filigree/names.h"

namespace filigree::study {
namespace {

std::string loss_with_error(const std::string& value, std::optional<double> error) {
  return error ? fmt::format("{} ±{:.4f}", value, *error) : value;
}

std::int64_t most_layers(const std::vector<EvaluatedModel>& models) {
  std::int64_t layers = 0;
  for (const EvaluatedModel& model : models) layers = std::max(layers, model.evaluation.layers);
  return layers;
}

}  // namespace

std::string evaluation_table(const std::vector<EvaluatedModel>& models) {
  const bool several = models.size() > 1;
  const bool bytes = std::any_of(models.begin(), models.end(),
                                 [](const EvaluatedModel& model) { return model.bytes > 0; });
  std::vector<Table::Column> columns = {{"model"}, {"loss", Align::kRight}};
  if (several) columns.push_back({"change", Align::kRight});
  columns.push_back({"perplexity", Align::kRight});
  if (bytes) columns.push_back({"bits/byte", Align::kRight});
  columns.insert(columns.end(), {{"active edges", Align::kRight},
                                 {"keys/query", Align::kRight},
                                 {"living heads", Align::kRight},
                                 {"their keys/query"},
                                 {"tokens", Align::kRight},
                                 {"tokens/s", Align::kRight}});
  Table table(columns);
  for (std::size_t i = 0; i < models.size(); ++i) {
    const EvaluatedModel& model = models[i];
    const Evaluation& evaluation = model.evaluation;
    std::vector<std::string> row = {
        model.label,
        loss_with_error(fmt::format("{:.4f}", evaluation.loss()), evaluation.loss_error())};
    if (several) {
      const Evaluation& first = models[0].evaluation;
      row.push_back(i == 0
                        ? ""
                        : loss_with_error(fmt::format("{:+.4f}", evaluation.loss() - first.loss()),
                                          change_error(evaluation, first)));
    }
    row.push_back(fmt::format("{:.4g}", evaluation.perplexity()));
    if (const auto bits = model.bits_per_byte(); bytes)
      row.push_back(bits ? fmt::format("{:.4f}", *bits) : "-");
    const Connectivity connectivity = evaluation.connectivity();
    const auto tokens = static_cast<std::uint64_t>(evaluation.total.tokens);
    const LivingHeads living = evaluation.living();
    row.insert(row.end(), {percent(connectivity.active_edges),
                           fmt::format("{:.4g}", connectivity.keys_per_query), count_text(living),
                           keys_text(living), with_thousands(tokens),
                           fmt::format("{:.0f}", static_cast<double>(tokens) / model.seconds)});
    table.add(std::move(row));
  }
  return table.text();
}

std::string layer_table(const std::vector<EvaluatedModel>& models) {
  std::vector<Table::Column> columns = {{"layer", Align::kRight}};
  for (const EvaluatedModel& model : models) {
    columns.push_back({model.label + ": active edges", Align::kRight});
    columns.push_back({"keys/query", Align::kRight});
  }
  Table table(columns);
  for (std::int64_t l = 0; l < most_layers(models); ++l) {
    std::vector<std::string> row = {std::to_string(l)};
    for (const EvaluatedModel& model : models) {
      if (l >= model.evaluation.layers) {
        row.insert(row.end(), {"", ""});
        continue;
      }
      const Connectivity connectivity = model.evaluation.connectivity(l);
      row.push_back(percent(connectivity.active_edges));
      row.push_back(fmt::format("{:.4g}", connectivity.keys_per_query));
    }
    table.add(std::move(row));
  }
  return table.text();
}

std::string head_tables(const std::vector<EvaluatedModel>& models) {
  std::string text;
  for (const EvaluatedModel& model : models) {
    const Evaluation& evaluation = model.evaluation;
    std::vector<Table::Column> columns = {{"layer", Align::kRight}};
    for (std::int64_t h = 0; h < evaluation.heads; ++h)
      columns.push_back({fmt::format("H{}", h), Align::kRight});
    Table table(columns);
    for (std::int64_t l = 0; l < evaluation.layers; ++l) {
      std::vector<std::string> row = {std::to_string(l)};
      for (std::int64_t h = 0; h < evaluation.heads; ++h)
        row.push_back(fmt::format("{:.3g}", 100.0 * evaluation.connectivity(l, h).active_edges));
      table.add(std::move(row));
    }
    text += fmt::format("{}{}: active edges of each head in %\n{}", text.empty() ? "" : "\n",
                        model.label, table.text());
  }
  return text;
}

}  // namespace filigree::study
