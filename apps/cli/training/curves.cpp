// filigree curves: how training runs went, drawn from their logs.
#include <CLI/CLI.hpp>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/program.h"
#include "filigree/training_study.h"

namespace filigree::cli {

void add_curves(Program& program) {
  const auto request = std::make_shared<study::CurvesRequest>();
  CLI::App& app =
      program.add({"curves",
                   "Draw how training went: gap and edges of sparse runs, loss of dense ones.",
                   {"filigree curves sparse --out curves.svg",
                    "filigree curves log linear --out objectives.pdf --theme print"}},
                  [request](Session& session) {
                    const study::CurvesResult drawn = study::run(*request, {}, session.context());
                    if (session.json())
                      session.print_json(study::to_json(drawn));
                    else
                      session.print(drawn.out + "\n");
                  });
  app.add_option("RUN", request->runs,
                 "folders of filigree pretrain or sparsify, or their log.jsonl")
      ->required();
  add_figure_file(app, request->out, request->style);
  app.get_option("--out")->required();
}

}  // namespace filigree::cli
