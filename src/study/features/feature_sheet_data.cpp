#include "study/features/feature_sheet_data.h"

#include <fmt/format.h>

#include "filigree/names.h"
#include "filigree/version.h"

namespace filigree::study {
namespace {

SheetExample sheet_example(const FeaturePage& page, const FeatureExample& example) {
  SheetExample shown{{},
                     {example.activations.begin(), example.activations.end()},
                     static_cast<std::size_t>(example.centre),
                     static_cast<double>(example.value)};
  for (const TokenId id : example.tokens) shown.tokens.push_back(page.text_of(id));
  return shown;
}

SheetList logit_list(const FeaturePage& page, const char* title, const char* note,
                     const std::vector<FeatureLogit>& logits) {
  SheetList list{title, note, {}, true};
  for (const FeatureLogit& logit : logits)
    list.rows.emplace_back(page.text_of(logit.token), logit.effect);
  return list;
}

SheetList partner_list(const char* title, const char* note,
                       const std::vector<FeaturePartner>& partners) {
  SheetList list{title, note, {}, false};
  for (const FeaturePartner& partner : partners)
    list.rows.emplace_back(feature_name(partner.feature), partner.weight);
  return list;
}

}  // namespace

std::string frequency_text(double frequency) {
  if (frequency <= 0) return "never";
  return fmt::format("{} of the tokens", percent(frequency));
}

FeatureSheet sheet_of(const FeaturePage& page) {
  FeatureSheet sheet;
  sheet.name = feature_name(page.feature);
  sheet.words = page.words();
  sheet.model = page.label;
  sheet.facts = {
      {"model", page.model},
      {"features", page.request.features},
      {"kind", fmt::format("{}, {}", name_of(page.shape.kind), name_of(page.activation))}};
  if (page.indexed) {
    sheet.facts.emplace_back("active at", frequency_text(page.frequency));
    sheet.facts.emplace_back("tokens looked at", with_thousands(page.indexed->tokens));
    sheet.facts.emplace_back(
        "median, largest activation",
        fmt::format("{:.3g}, {:.3g}", page.record.quantile(0.5), page.record.max));
    sheet.largest = page.record.max;
    sheet.histogram = page.record.histogram.shares(40, 0, page.record.max);
    SheetBand top{"Largest activations", {}};
    for (const FeatureExample& example : page.record.top)
      top.examples.push_back(sheet_example(page, example));
    sheet.bands.push_back(std::move(top));
    for (const FeatureBand& band : quantile_bands(page.record, 5, page.request.examples)) {
      SheetBand shown{fmt::format("Quantiles {:.0f} to {:.0f} %", 100 * band.from, 100 * band.to),
                      {}};
      for (const FeatureExample* example : band.examples)
        shown.examples.push_back(sheet_example(page, *example));
      sheet.bands.push_back(std::move(shown));
    }
  }
  if (page.activation == FeatureActivation::kJumpRelu)
    sheet.facts.emplace_back("threshold", fmt::format("{:.3g}", page.threshold));
  sheet.lists.push_back(
      logit_list(page, "Raises", "logit of a token, by a unit of the feature", page.raised));
  sheet.lists.push_back(logit_list(page, "Lowers", "likewise", page.lowered));
  SheetList writes{
      "Writes to", "norm of what a unit adds to a layer's MLP output", {}, false, true};
  for (const FeatureWrite& write : page.writes)
    writes.rows.emplace_back(mlp_name(write.layer), write.norm);
  sheet.lists.push_back(std::move(writes));
  sheet.lists.push_back(partner_list("Reads", "earlier features, by weights", page.reads));
  sheet.lists.push_back(partner_list("Is read by", "later features, by weights", page.read_by));
  sheet.foot = fmt::format("Made by {}.", build_description());
  return sheet;
}

}  // namespace filigree::study
