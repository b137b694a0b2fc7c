// filigree convert: a model folder written anew.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/program.h"
#include "filigree/model_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

void run_convert(const study::ConversionRequest& request, const Session& session) {
  const study::Conversion result = study::run(request, {}, session.context());
  if (session.json())
    session.print_json(to_json(result));
  else
    session.print(fmt::format("{}: {} parameters as {}, {}{}\n", printable(request.out.string()),
                              with_thousands(static_cast<std::uint64_t>(result.parameters)),
                              name_of(request.dtype), human_bytes(result.bytes),
                              result.tokenizer ? "" : ", no tokenizer"));
}

}  // namespace

void add_convert(Program& program) {
  const auto request = std::make_shared<study::ConversionRequest>();
  CLI::App& app = program.add(
      {"convert",
       "Write a model or a PyTorch state dict as a folder with one file of weights.",
       {"filigree convert run --out small --dtype bf16", "filigree convert sharded-gpt2 --out gpt2",
        "filigree convert sparse --out opener --raise-gates 0.4",
        "filigree convert sparse --out between --mix-with further --mix-share 0.65",
        "filigree convert final.pth --out sparse-gpt2 --config gpt2 --gate-bias 0"}},
      [request](Session& session) { run_convert(*request, session); });
  app.add_option("MODEL", request->model, "model folder or name, or a PyTorch state dict")
      ->required();
  app.add_option("--out", request->out, "folder of the new model")->required()->type_name("DIR");
  add_choice(app, "--dtype", request->dtype, "of the weights; other programs do not read i8");
  add_choice(app, "--not-finite", request->not_finite,
             "weights that are NaN or infinite, or too large for --dtype");
  app.add_option(
         "--raise-gates", request->raise_gates,
         "added to the bias of every gate of a sparse model: above 0 opens more edges, below "
         "0 fewer (default 0)")
      ->check(number(-1e6, 1e6))
      ->type_name("X");
  CLI::Option* const other =
      app.add_option("--mix-with", request->mix_with,
                     "another model of the same shape, folder or name: every weight and gate bias "
                     "becomes the average of both")
          ->type_name("MODEL");
  app.add_option("--mix-share", request->mix_share, "of that model in the average")
      ->check(number(0.0, 1.0))
      ->capture_default_str()
      ->needs(other)
      ->type_name("X");
  app.add_option(
         "--config", request->config,
         "config.json that says what the weights are, a model that has one, or gpt2 for the "
         "smallest of these (default what lies beside them)")
      ->type_name("FILE");
  app.add_option("--gate-bias", request->gate_bias,
                 "puts a gate of this bias on every head; 0 keeps an edge where its score is above "
                 "zero")
      ->check(number(-1000.0, 1000.0))
      ->type_name("X");
}

}  // namespace filigree::cli
