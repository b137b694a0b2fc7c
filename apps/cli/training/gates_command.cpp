// filigree gates: the gates of a sparse model closed, raised, or averaged with another model's,
// without training.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/models/conversion_text.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/program.h"
#include "apps/cli/training/evaluation_data.h"
#include "filigree/error.h"
#include "filigree/model_study.h"
#include "filigree/training_study.h"

namespace filigree::cli {
namespace {

// Every measurement reads them all, and there are some dozens.
constexpr std::int64_t kDefaultTokens = 100000;

struct GatesCommand {
  std::string action;
  std::string model, other;
  study::CloseGatesRequest closing;
  EvaluationDataOptions data;
  std::optional<double> edges, add, share;
  std::string out;
  MatrixType dtype = MatrixType::kF32;
};

void close_gates(const GatesCommand& command, Session& session) {
  if (!command.edges) throw UsageError("gates close needs --edges X, the share that may be open");
  study::CloseGatesRequest request = command.closing;
  request.max_edges = *command.edges;
  request.out = command.out;
  request.dtype = command.dtype;
  request.data = read_evaluation_data(command.data, session);
  const study::Context context = session.context();
  const study::ClosedGates closed =
      study::run(request, study::load_models({command.model}, context), context);
  if (!closed.closing.reached()) session.set_exit_code(kOutOfReach);
  if (!session.json()) return session.print(text_of(closed));
  Json json = to_json(closed);
  add_evaluation_data(json, command.data);
  session.print_json(json);
}

void write_changed(const GatesCommand& command, const Session& session) {
  study::ConversionRequest request;
  request.raise_gates = static_cast<float>(command.add.value_or(0.0));
  request.model = command.model;
  request.out = command.out;
  request.dtype = command.dtype;
  if (command.action == "raise") {
    if (!command.add) throw UsageError("gates raise needs --add X, which is added to every bias");
  } else {
    if (command.other.empty()) throw UsageError("gates mix needs OTHER, the model to average with");
    request.mix_with = command.other;
    request.mix_share = command.share.value_or(request.mix_share);
  }
  print_conversion(study::run(request, {}, session.context()), session);
}

// What goes with one action alone.
void check_options(const GatesCommand& command) {
  const auto only = [&](const char* action, bool given, const char* what) {
    if (given && command.action != action)
      throw UsageError(fmt::format("{} goes with gates {}", what, action));
  };
  if (command.action == "close" && command.add)
    throw UsageError("--add goes with gates raise and mix");
  only("close", command.edges.has_value(), "--edges");
  only("close", !command.data.text.empty() || !command.data.data.empty(), "a text");
  only("mix", command.share.has_value(), "--share");
  only("mix", !command.other.empty(), "OTHER");
}

}  // namespace

void add_gates(Program& program) {
  const auto command = std::make_shared<GatesCommand>();
  WindowOptions& windows = command->closing.windows;
  windows.max_tokens = kDefaultTokens;
  CLI::App& app =
      program.add({"gates",
                   "Close, raise or average the gates of a sparse model, without training.",
                   {"filigree gates close sparse --edges 0.003 --text text.txt --out fewer",
                    "filigree gates close sparse --edges 0.01 --data shards --out fewer",
                    "filigree gates raise sparse --add 0.4 --out opener",
                    "filigree gates mix sparse further --share 0.65 --out between"},
                   Computes::kOnRanks,
                   true},
                  [command](Session& session) {
                    check_options(*command);
                    if (command->action == "close")
                      close_gates(*command, session);
                    else
                      write_changed(*command, session);
                  });
  app.add_option("ACTION", command->action,
                 "close the open edges that are worth least, raise every gate's bias, or mix: "
                 "average all weights and biases with those of OTHER")
      ->required()
      ->check(one_of({"close", "raise", "mix"}));
  app.add_option("MODEL", command->model, "sparse model, folder or name")->required();
  app.add_option("OTHER", command->other, "model of the same shape, folder or name");
  app.add_option("--out", command->out, "folder of the new model")->required()->type_name("DIR");
  app.add_option("--edges", command->edges,
                 "close: share of the attention edges that may be open, 0.003 for 0.3 %")
      ->check(number(0.0, 1.0))
      ->type_name("X");
  app.add_option("--add", command->add,
                 "raise, mix: added to the bias of every gate; above 0 opens edges, below 0 closes "
                 "them")
      ->check(number(-1e6, 1e6))
      ->type_name("X");
  app.add_option("--share", command->share, "mix: share of OTHER in the average (default 0.5)")
      ->check(number(0.0, 1.0))
      ->type_name("X");
  add_evaluation_data(app, command->data);
  app.add_option("--context", windows.length, "tokens a window (default the model's context)")
      ->check(whole_number(1, 1 << 30))
      ->type_name("N");
  app.add_option("--max-tokens", windows.max_tokens,
                 "tokens of the text, which is read some dozen times")
      ->check(whole_number(2, INT64_MAX))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--batch", windows.batch, "windows computed at once (default about 1024 tokens)")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N");
  add_choice(app, "--dtype", command->dtype, "of the weights; other programs do not read i8");
}

}  // namespace filigree::cli
