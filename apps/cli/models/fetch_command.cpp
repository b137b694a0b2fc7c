// filigree fetch: a model of the Hugging Face hub into the cache of this machine.
#include <CLI/CLI.hpp>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/program/program.h"
#include "filigree/model_study.h"

namespace filigree::cli {
namespace {

void run_fetch(const study::FetchRequest& request, const Session& session) {
  // Asked to end by anybody, it keeps what it has for the next time.
  catch_termination();
  const study::FetchedModel fetched = study::run(request, {}, session.context());
  if (session.json())
    session.print_json(to_json(fetched));
  else
    session.print(text_of(fetched));
}

}  // namespace

void add_fetch(Program& program) {
  const auto request = std::make_shared<study::FetchRequest>();
  CLI::App& app =
      program.add({"fetch",
                   "Download a model of the Hugging Face hub into the cache that others share.",
                   {"filigree fetch roneneldan/TinyStories-33M",
                    "filigree fetch HuggingFaceTB/SmolLM2-135M@main",
                    "filigree fetch QuantFactory/SmolLM-135M-GGUF:SmolLM-135M.Q4_K_M.gguf"}},
                  [request](Session& session) { run_fetch(*request, session); });
  app.add_option("MODEL", request->model,
                 "name of the model on the hub, ORG/NAME; @REVISION and :FILE.gguf may follow")
      ->required();
}

}  // namespace filigree::cli
