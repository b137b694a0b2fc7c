// filigree close-gates: a sparse model with fewer open edges, where they are worth least.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/program.h"
#include "apps/cli/training/evaluation_data.h"
#include "base/table.h"
#include "filigree/training_study.h"

namespace filigree::cli {
namespace {

// Every measurement reads them all, and there are some dozens.
constexpr std::int64_t kDefaultTokens = 100000;

struct CloseGatesOptions {
  std::string model;
  study::CloseGatesRequest request;
  EvaluationDataOptions data;
};

void run_close_gates(const CloseGatesOptions& options, Session& session) {
  study::CloseGatesRequest request = options.request;
  request.data = read_evaluation_data(options.data, session);
  const study::Context context = session.context();
  const study::ClosedGates closed =
      study::run(request, study::load_models({options.model}, context), context);
  if (!closed.closing.reached()) session.set_exit_code(kOutOfReach);
  if (!session.json()) {
    session.print(text_of(closed));
    return;
  }
  Json json = to_json(closed);
  add_evaluation_data(json, options.data);
  session.print_json(json);
}

}  // namespace

void add_close_gates(Program& program) {
  const auto options = std::make_shared<CloseGatesOptions>();
  study::CloseGatesRequest& request = options->request;
  request.windows.max_tokens = kDefaultTokens;
  CLI::App& app =
      program.add({"close-gates",
                   "Close the open attention edges of a sparse model that are worth least.",
                   {"filigree close-gates sparse --most-edges 0.003 --text text.txt --out fewer",
                    "filigree close-gates sparse --most-edges 0.01 --data shards --out fewer"},
                   Computes::kOnRanks},
                  [options](Session& session) { run_close_gates(*options, session); });
  app.add_option("MODEL", options->model, "sparse model, folder or name")->required();
  app.add_option("--most-edges", request.most_edges,
                 "share of the attention edges that may be open, 0.003 for 0.3 %")
      ->required()
      ->check(number(0.0, 1.0))
      ->type_name("X");
  app.add_option("--out", request.out, "folder of the new model")->required()->type_name("DIR");
  add_evaluation_data(app, options->data);
  app.add_option("--length", request.windows.length,
                 "tokens a window (default the model's context)")
      ->check(whole_number(1, 1 << 30))
      ->type_name("N");
  app.add_option("--max-tokens", request.windows.max_tokens, "of the text, read some dozen times")
      ->check(whole_number(2, INT64_MAX))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--batch", request.windows.batch,
                 "windows computed at once (default about 1024 tokens)")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N");
  add_choice(app, "--dtype", request.dtype, "of the weights; other programs do not read i8");
}

}  // namespace filigree::cli
