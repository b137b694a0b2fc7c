// filigree features show: what one feature is.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/features/feature_commands.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/program.h"
#include "base/atomic_file.h"
#include "base/table.h"
#include "filigree/feature_study.h"
#include "filigree/names.h"
#include "study/features/feature_sheet_data.h"

namespace filigree::cli {
namespace {

struct ShowCommand {
  std::string model, index, out;
  study::FeatureRequest request;
};

void run_show(const ShowCommand& command, const Session& session) {
  if (!command.out.empty() && !command.out.ends_with(".html") && !command.out.ends_with(".json"))
    throw UsageError(fmt::format("--out: '{}' must end in .html or .json", printable(command.out)));
  study::FeatureRequest request = command.request;
  request.index = command.index;
  const study::Context context = session.context();
  const study::LoadedModel model = std::move(study::load_models({command.model}, context).front());
  const auto dictionary = study::open_features(request.features, model.model());
  const study::FeaturePage page = study::describe_feature(request, model, *dictionary);
  if (command.out.ends_with(".html"))
    write_file_atomically(command.out, feature_html(study::sheet_of(page)));
  if (command.out.ends_with(".json"))
    write_file_atomically(command.out, study::feature_detail(page).dump() + "\n");
  if (!session.json()) return session.print(text_of(page));
  study::Json json = to_json(page);
  json["out"] = out_json(command.out);
  session.print_json(json);
}

}  // namespace

void add_features_show(Program& program) {
  const auto command = std::make_shared<ShowCommand>();
  CLI::App& app =
      program.add({"features show",
                   "What one feature is: examples, logits, partners, where it writes.",
                   {"filigree features show dense-12x12 dense-12x12-features L5F123",
                    "filigree features show gpt2 clt L5F123 --index clt.index --out feature.html",
                    "filigree features show gpt2 clt L5F123 --index clt.index --out feature.json"},
                   Computes::kNothing,
                   true},
                  [command](Session& session) { run_show(*command, session); });
  study::FeatureRequest& request = command->request;
  app.add_option("MODEL", command->model, "model folder or name")->required();
  app.add_option("FEATURES", request.features, "folder or name of a transcoder")->required();
  app.add_option("FEATURE", request.feature, "the feature: L5F123")
      ->required()
      ->check(checked_by("feature", [](const std::string& text) { parse_feature(text); }));
  app.add_option("--index", command->index,
                 "what features index wrote (default none: what weights tell alone)")
      ->type_name("FILE");
  app.add_option("--top", request.top, "rows of each list")
      ->check(whole_number(1, 1000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--examples", request.examples, "examples of each range of activations")
      ->check(whole_number(1, 1000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--out", command->out,
                 "file of the page (.html), or of the feature as circuit-tracer and Neuronpedia "
                 "read it (.json)")
      ->type_name("FILE");
}

}  // namespace filigree::cli
