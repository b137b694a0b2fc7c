#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/table.h"
#include "filigree/circuit_study.h"
#include "filigree/lens_study.h"
#include "filigree/names.h"

namespace filigree::study {
namespace {

// A part of the stream that no tap names is an error of the analysis unless it is rounding.
constexpr double kRounding = 1e-3;

std::string signed_text(const Estimate& value) {
  return value.error ? fmt::format("{:+.3f} +- {:.3f}", value.mean, *value.error)
                     : fmt::format("{:+.3f}", value.mean);
}

std::string attributed_model_text(const AttributedModel& model, std::size_t top) {
  const LogitAttribution& found = model.found;
  std::string text = fmt::format("\n{}\n", printable(model.label));
  if (model.task)
    text += dropped_text(model.task->prompts) + verdict_text(*model.check, model.task->prompts);
  Table sums({{""}, {"contribution", Align::kRight}});
  for (const KindSum& kind : kind_sums(found)) {
    if (kind.name == "rest" && std::abs(kind.sum.mean) <= kRounding) continue;
    sums.add({kind.name == "mlps" ? "MLPs" : std::string(kind.name), signed_text(kind.sum)});
  }
  sums.add({"sum", signed_text(estimate(found.total))});
  text += "\n" + sums.text(2) + "\n";
  Table parts({{"", Align::kRight}, {"part"}, {"contribution", Align::kRight}});
  const std::vector<std::size_t> order = found.order();
  for (std::size_t i = 0; i < std::min(order.size(), top); ++i)
    parts.add(
        {std::to_string(i + 1), name_of(found.parts[order[i]]), signed_text(found.of(order[i]))});
  return top > 0 ? text + parts.text(2) : text;
}

}  // namespace

std::string text_of(const AttributionResult& result, std::size_t top) {
  std::string text =
      measured_text(result.request) + "\n" + changed_text(result.request.interventions);
  for (const AttributedModel& model : result.models) text += attributed_model_text(model, top);
  return text;
}

}  // namespace filigree::study
