#include <fmt/format.h>

#include "base/table.h"
#include "filigree/names.h"
#include "filigree/training_study.h"

namespace filigree::study {

std::string text_of(const ClosedGates& closed) {
  const GateClosing& closing = closed.closing;
  Table table({{""}, {"loss", Align::kRight}, {"active edges", Align::kRight}});
  const auto row = [&](const std::string& what, double loss, double edges) {
    table.add({what, fmt::format("{:.4f}", loss), fmt::format("{:.4f} %", 100.0 * edges)});
  };
  row("as it was", closing.loss, closing.edges);
  for (const GateClosing::Step& step : closing.steps)
    row(fmt::format("{} lowered by {:g}", closed.head(step.head), step.lowered), step.loss,
        step.edges);
  return table.text() +
         (closing.reached()
              ? std::string()
              : fmt::format("\nno head is left to lower: {:.4f} % of the edges stay "
                            "open, {:.4f} % were asked for\n",
                            100.0 * closing.last_edges(), 100.0 * closing.most_edges));
}

}  // namespace filigree::study
