
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/table.h"
#include "filigree/feature_study.h"
#include "filigree/names.h"

namespace filigree::study {
namespace {

std::string three_digits(double value) { return fmt::format("{:.3f}", value); }

}  // namespace

std::string quality_table(const std::vector<NamedQuality>& models) {
  Table table({{"model"},
               {"loss", Align::kRight},
               {"replaced", Align::kRight},
               {"ablated", Align::kRight},
               {"recovered", Align::kRight},
               {"KL", Align::kRight},
               {"top-1 agreement", Align::kRight},
               {"NMSE", Align::kRight},
               {"active a layer", Align::kRight},
               {"dead", Align::kRight},
               {"dense", Align::kRight}});
  for (const auto& [name, quality] : models)
    table.add({printable(name), fmt::format("{:.4f}", quality.loss),
               fmt::format("{:.4f}", quality.all.loss),
               fmt::format("{:.4f}", quality.all.ablated_loss), percent(quality.recovered()),
               three_digits(quality.all.kl), percent(quality.all.agreement),
               three_digits(quality.nmse()), fmt::format("{:.1f}", quality.l0()),
               percent(quality.dead()), percent(quality.dense())});
  return table.text();
}

std::string layer_quality_table(const FeatureQuality& quality) {
  std::vector<Table::Column> columns = {{"layer", Align::kRight},
                                        {"NMSE", Align::kRight},
                                        {"active", Align::kRight},
                                        {"dead", Align::kRight},
                                        {"dense", Align::kRight}};
  if (quality.layers_alone)
    for (const char* title : {"loss, it alone replaced", "recovered", "KL", "top-1 agreement"})
      columns.push_back({title, Align::kRight});
  Table table(columns);
  for (std::size_t l = 0; l < quality.layers.size(); ++l) {
    const LayerQuality& layer = quality.layers[l];
    std::vector<std::string> cells = {std::to_string(l), three_digits(layer.nmse),
                                      fmt::format("{:.1f}", layer.l0), percent(layer.dead()),
                                      percent(layer.dense())};
    if (quality.layers_alone) {
      cells.push_back(fmt::format("{:.4f}", layer.alone.loss));
      cells.push_back(percent(layer.alone.recovered(quality.loss)));
      cells.push_back(three_digits(layer.alone.kl));
      cells.push_back(percent(layer.alone.agreement));
    }
    table.add(std::move(cells));
  }
  return table.text();
}

std::string density_text(const FeatureQuality& quality) {
  constexpr int kSteps = 1;
  constexpr double kBar = 40.0;
  const std::vector<std::int64_t> counts = density_histogram(quality, kSteps);
  const auto most = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  const auto decades = static_cast<int>(counts.size());
  Table table({{"active at"}, {"features", Align::kRight}, {""}});
  for (int i = 0; i < decades; ++i) {
    const std::int64_t count = counts[static_cast<std::size_t>(i)];
    const auto length = static_cast<std::size_t>(
        most > 0.0 ? std::ceil(kBar * static_cast<double>(count) / most) : 0.0);
    table.add({fmt::format("1e{} to 1e{} of tokens", i - decades, i - decades + 1),
               with_thousands(static_cast<std::uint64_t>(count)), std::string(length, '#')});
  }
  return table.text();
}

}  // namespace filigree::study
