#include <fmt/format.h>

#include "base/atomic_file.h"
#include "filigree/features.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/trace_study.h"
#include "study/comparison/comparison_output.h"

namespace filigree::study {
namespace {

std::string modulators(const TracedModel& traced) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, traced.modulated_by.size()); ++i) {
    const Modulation& token = traced.modulated_by[i];
    text += fmt::format("{}{} (layers {}-{})", i == 0 ? "" : ", ",
                        printable(traced.token_at(token.position)), token.first_layer,
                        token.last_layer);
  }
  return text;
}

// What stands beside each other in the section's table.
std::vector<std::vector<std::string>> trace_rows(const TraceResult& result) {
  std::vector<std::vector<std::string>> rows;
  const auto row = [&](const std::string& name, const auto& value) {
    rows.push_back({name});
    for (const TracedModel& traced : result.models) rows.back().push_back(value(traced));
  };
  row("answer", [](const TracedModel& t) {
    return fmt::format("'{}' {}", printable(t.shown[t.top_token]), percent(t.top_probability));
  });
  row("heads for 80 % of the pair", [](const TracedModel& t) {
    return t.pair ? std::to_string(t.pair->heads_for_80) : std::string("none");
  });
  row("heads for 80 % of all pairs",
      [](const TracedModel& t) { return std::to_string(t.heads_for_80); });
  row("modulated most by", modulators);
  row("nodes", [](const TracedModel& t) { return std::to_string(t.pruned.count()); });
  row("edges", [](const TracedModel& t) { return with_thousands(t.pruned.edges.size()); });
  row("replacement score",
      [](const TracedModel& t) { return fmt::format("{:.2f}", t.scores.replacement); });
  row("completeness score",
      [](const TracedModel& t) { return fmt::format("{:.2f}", t.scores.completeness); });
  return rows;
}

}  // namespace

ReportTask write_trace(const ComparisonRequest& request, Models models, ComparisonResult& result,
                       ComparisonFolder& folder, const Context& context) {
  TraceRequest through = request.trace;
  for (const std::string& features : request.features) through.features.push_back({features, {}});
  const TraceResult traced = run(through, models, context);
  ReportTask section;
  section.name = "one prompt, by features";
  section.description = request.trace.prompt;
  section.columns = {""};
  for (const TracedModel& model : traced.models) section.columns.push_back(model.label);
  section.rows = trace_rows(traced);
  const auto add = [&](const FigureInput& input, const std::string& name,
                       const std::string& title) {
    for (const figure::Format format : request.formats)
      save_figure(input, folder.add(fmt::format("figures/{}.{}", name, name_of(format))),
                  request.style);
    FigureStyle dark = request.style;
    dark.theme = FigureTheme::kDark;
    FigureStyle light = request.style;
    if (light.theme == FigureTheme::kDark) light.theme = FigureTheme::kLight;
    section.figures.push_back({title, "", figure_svg(input, light), figure_svg(input, dark)});
  };
  if (std::all_of(traced.models.begin(), traced.models.end(),
                  [](const TracedModel& model) { return model.pair.has_value(); })) {
    const figure::CarriedPairFigure heads = heads_figure(traced);
    add(&heads, "trace-heads", "The heads that carry one token to another");
  }
  const figure::FeatureGraphFigure graph = graph_figure(traced);
  add(&graph, "trace-graph", "The attribution graphs");
  for (const TracedModel& model : traced.models) {
    const std::string name = fmt::format("data/trace-{}.json", slug_of(model.label));
    write_file_atomically(
        folder.add(name),
        graph_json(model, request.trace.prompt, request.trace)
            .graph.dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace));
  }
  result.trace = to_json(traced);
  return section;
}

}  // namespace filigree::study
