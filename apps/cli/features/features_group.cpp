// filigree features: what stands under this name.
#include "apps/cli/commands.h"
#include "apps/cli/features/feature_commands.h"
#include "apps/cli/program/program.h"

namespace filigree::cli {

void add_features(Program& program) {
  program.add_group("features",
                    "Features of transcoders: train them, index a text, see what one is.");
  add_features_train(program);
  add_features_index(program);
  add_features_show(program);
}

}  // namespace filigree::cli
