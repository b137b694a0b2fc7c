#include <fmt/format.h>

#include <algorithm>

#include "base/table.h"
#include "filigree/feature_study.h"
#include "filigree/names.h"

namespace filigree::study {
namespace {

constexpr std::size_t kShownExamples = 6;

std::string quoted_list(const FeaturePage& page, const std::vector<FeatureLogit>& logits) {
  std::string text;
  for (const FeatureLogit& logit : logits)
    text += fmt::format("  '{}' {:+.2f}", printable(in_one_line(page.shown[logit.token])),
                        logit.effect);
  return text;
}

std::string partner_line(const std::vector<FeaturePartner>& partners) {
  std::string text;
  for (const FeaturePartner& partner : partners)
    text += fmt::format("  {} {:+.2f}", feature_name(partner.feature), partner.weight);
  return text.empty() ? "  none" : text;
}

// "... the old «king» of ...".
std::string example_text(const FeaturePage& page, const FeatureExample& example) {
  std::string text;
  for (std::size_t t = 0; t < example.tokens.size(); ++t) {
    const std::string token = in_one_line(page.shown[example.tokens[t]]);
    text += t == static_cast<std::size_t>(example.centre) ? "«" + token + "»" : token;
  }
  return fmt::format("  {:>8.3g}  {}\n", example.value, printable(text, 400));
}

}  // namespace

std::string text_of(const FeaturePage& page) {
  std::string text = fmt::format("{} of {}: {}\n", feature_name(page.feature),
                                 printable(page.label), printable(page.words(), 200));
  if (page.indexed) {
    text += fmt::format("active at {}", frequency_text(page.frequency));
    if (page.record.active())
      text += fmt::format("; median {:.3g}, largest {:.3g}", page.record.quantile(0.5),
                          page.record.max);
    text += fmt::format(" (in {} tokens)\n", with_thousands(page.indexed->tokens));
  }
  text += fmt::format("\nraises{}\nlowers{}\n", quoted_list(page, page.raised),
                      quoted_list(page, page.lowered));
  text += "writes to";
  for (const FeatureWrite& write : page.writes)
    text += fmt::format("  {} {:.2f}", layer_name(write.layer), write.norm);
  text += fmt::format("\nreads{}\nis read by{}\n", partner_line(page.reads),
                      partner_line(page.read_by));
  if (!page.indexed) return text + "\nexamples need an index: filigree features index\n";
  if (!page.record.active()) return text;
  text += "\nwhere it is largest\n";
  for (std::size_t i = 0; i < std::min(page.record.top.size(), kShownExamples); ++i)
    text += example_text(page, page.record.top[i]);
  text += "\nby chance, from its range of activations\n";
  for (const FeatureBand& band : quantile_bands(page.record, 5, 1))
    for (const FeatureExample* example : band.examples) text += example_text(page, *example);
  return text;
}

}  // namespace filigree::study
