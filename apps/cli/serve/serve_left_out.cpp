// filigree serve in a build without httplib: says what is missing.
#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/commands.h"
#include "apps/cli/program/program.h"
#include "filigree/error.h"

namespace filigree::cli {

void add_serve(Program& program) {
  const auto models = std::make_shared<std::vector<std::string>>();
  CLI::App& app = program.add({"serve",
                               "Look into models in the browser (left out of this build).",
                               {"filigree serve"},
                               Computes::kOnDevice},
                              [models](Session&) {
                                fail(
                                    "serve: this build has no server; install libcpp-httplib-dev "
                                    "and build again");
                              });
  app.add_option("MODEL", *models, "model folders or names");
}

}  // namespace filigree::cli
