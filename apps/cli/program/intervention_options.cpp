#include "apps/cli/program/intervention_options.h"

#include <CLI/CLI.hpp>

#include "apps/cli/program/values.h"

namespace filigree::cli {
namespace {

using AddChange = void (Interventions::*)(std::string_view);

void add_changes(CLI::App& app, const std::string& name, Interventions& interventions,
                 AddChange add, const std::string& kind, const std::string& label,
                 const std::string& help) {
  app.add_option_function<std::vector<std::string>>(
         name,
         [&interventions, add](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) (interventions.*add)(text);
         },
         help)
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(checked_by(kind,
                         [add](const std::string& text) {
                           Interventions read;
                           (read.*add)(text);
                         }))
      ->type_name(label);
}

}  // namespace

void add_intervention_options(CLI::App& app, Interventions& interventions) {
  add_changes(app, "--ablate", interventions, &Interventions::add_ablations, "places", "PLACE,...",
              "set to zero: L6H11, L7MLP, L3E5, L6H*, L6H11.q, L6.resid or a tap; L6H11@-1, "
              "@START, @END or @' John' at one position only");
  add_changes(app, "--scale", interventions, &Interventions::add_scales, "factors", "PLACE=X,...",
              "multiply: L6H11=0.5,L7MLP=2");
  add_changes(app, "--patch", interventions, &Interventions::add_patch, "patch", "PLACE=TEXT",
              "take the value from the run on another text: L6H11@' John'=TEXT; may come again");
}

void add_steering_options(CLI::App& app, std::vector<SteeringChange>& changes,
                          std::string& features) {
  app.add_option_function<std::vector<std::string>>(
         "--steer",
         [&changes](const std::vector<std::string>& texts) {
           for (const std::string& text : texts)
             for (const SteeringChange& change : parse_steering(text)) changes.push_back(change);
         },
         "set a feature: L5F123=0; =+8 makes it 8 more than it is, *=-2 turns it round; "
         "L5F123@-1=8 at one position only; may come again")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(checked_by("feature-changes", [](const std::string& text) { parse_steering(text); }))
      ->type_name("FEATURE=X,...");
  app.add_option(
         "--features", features,
         "transcoder that has them: folder or name (default MODEL-features beside the model's "
         "folder)")
      ->type_name("DIR");
}

}  // namespace filigree::cli
