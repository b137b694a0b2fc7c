// filigree run: one prompt through a model, with taps read and parts changed.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "apps/cli/commands.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/intervention_options.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/table.h"
#include "filigree/lens_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

constexpr std::size_t kShownTaps = 40;  // of the table; the file and JSON have all
constexpr std::size_t kShownParts = 15, kShownPlaces = 8;
constexpr std::size_t kLineWidth = 98;

struct RunCommand {
  std::string model;
  study::RunRequest request;
  std::string out;
};

std::string quoted_token(const study::RunResult& result, TokenId id) {
  return "'" + printable(result.shown[id]) + "'";
}

// The tokens with their positions; lines break between them, never in one.
std::string prompt_text(const study::RunResult& result) {
  std::string text, line;
  for (std::size_t t = 0; t < result.ids.size(); ++t) {
    const std::string token = fmt::format("  {} {}", t, quoted_token(result, result.ids[t]));
    if (!line.empty() && display_width(line + token) > kLineWidth)
      text += std::exchange(line, "") + "\n";
    line += token;
  }
  return text + line + "\n";
}

// What the features that were changed were before, where they were active.
std::string steered_text(const study::RunResult& result) {
  std::string text;
  for (const study::SteeredFeature& one : result.steered) {
    std::string active;
    for (std::size_t t = 0; t < one.activations.size(); ++t)
      if (one.activations[t] != 0)
        active += fmt::format("  {} {} {:.3g}", t, quoted_token(result, result.ids[t]),
                              one.activations[t]);
    text += fmt::format("{} was{}\n", feature_name(one.change.feature),
                        active.empty() ? " not active" : active);
  }
  return text;
}

std::string next_text(const study::RunResult& result) {
  std::vector<Table::Column> columns = {{"next token"},
                                        {"rank", Align::kRight},
                                        {"probability", Align::kRight},
                                        {"logit", Align::kRight}};
  if (result.changed)
    columns.insert(columns.end(), {{"   changed: rank", Align::kRight},
                                   {"probability", Align::kRight},
                                   {"logit", Align::kRight},
                                   {"by", Align::kRight}});
  Table table(columns);
  for (std::size_t i = 0; i < result.listed.size(); ++i) {
    const study::NextToken& plain = result.plain.listed[i];
    std::vector<std::string> row = {quoted_token(result, plain.id), std::to_string(plain.rank + 1),
                                    percent(plain.probability), fmt::format("{:.3f}", plain.logit)};
    if (result.changed) {
      const study::NextToken& changed = result.changed->listed[i];
      row.insert(row.end(), {std::to_string(changed.rank + 1), percent(changed.probability),
                             fmt::format("{:.3f}", changed.logit),
                             fmt::format("{:+.3f}", changed.logit - plain.logit)});
    }
    table.add(std::move(row));
  }
  std::string text = table.text(2);
  if (result.changed)
    text += fmt::format("\n  KL(plain || changed) of the next token: {:.4g} nats\n",
                        result.divergence.back());
  return text;
}

// Where in the prompt the prediction changes most.
std::string places_text(const study::RunResult& result) {
  std::vector<std::size_t> order(result.divergence.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return result.divergence[a] > result.divergence[b];
  });
  if (result.divergence[order[0]] == 0) return "\nthe prediction is the same everywhere\n";
  Table table(
      {{"", Align::kRight}, {"after"}, {"plain"}, {"changed"}, {"KL in nats", Align::kRight}});
  for (std::size_t i = 0; i < std::min(order.size(), kShownPlaces); ++i) {
    const std::size_t t = order[i];
    if (result.divergence[t] == 0) break;
    const study::NextToken &plain = result.plain.likeliest[t],
                           &changed = result.changed->likeliest[t];
    table.add({std::to_string(t), quoted_token(result, result.ids[t]),
               fmt::format("{} {}", quoted_token(result, plain.id), percent(plain.probability)),
               fmt::format("{} {}", quoted_token(result, changed.id), percent(changed.probability)),
               fmt::format("{:.4g}", result.divergence[t])});
  }
  return "\nwhere the prediction changes most\n" + table.text(2);
}

std::string gradient_text(const study::RunResult& result) {
  const std::vector<study::PartGradient>& plain = result.plain.parts;
  std::vector<std::size_t> order(plain.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(plain[a].value_times_gradient) > std::abs(plain[b].value_times_gradient);
  });
  std::vector<Table::Column> columns = {{"part"}, {"value x gradient", Align::kRight}};
  if (result.changed) columns.push_back({"changed", Align::kRight});
  Table table(columns);
  for (std::size_t i = 0; i < std::min(order.size(), kShownParts); ++i) {
    std::vector<std::string> row = {name_of(plain[order[i]].part),
                                    fmt::format("{:+.4f}", plain[order[i]].value_times_gradient)};
    if (result.changed)
      row.push_back(fmt::format("{:+.4f}", result.changed->parts[order[i]].value_times_gradient));
    table.add(std::move(row));
  }
  return fmt::format(
             "\ngradient of the logit of {}: a first-order estimate of what each part adds to it\n",
             quoted_token(result, *result.gradient_of)) +
         table.text(2);
}

std::string taps_text(const study::RunResult& result) {
  const bool gradient = result.gradient_of.has_value();
  std::vector<Table::Column> columns = {{"tap"}, {"shape"}, {"rms", Align::kRight}};
  if (gradient) columns.push_back({"of the gradient", Align::kRight});
  if (result.changed) columns.push_back({"of the change", Align::kRight});
  Table table(columns);
  for (std::size_t i = 0; i < std::min(result.taps.size(), kShownTaps); ++i) {
    const Tensor& value = result.plain.taps[i];
    std::vector<std::string> row = {result.taps[i], value.shape().to_string(),
                                    fmt::format("{:.4g}", study::root_mean_square(value.values()))};
    if (gradient)
      row.push_back(
          fmt::format("{:.4g}", study::root_mean_square(result.plain.gradients[i].values())));
    if (result.changed) {
      const std::span<const float> a = value.values(), b = result.changed->taps[i].values();
      std::vector<float> change;
      for (std::size_t c = 0; c < a.size(); ++c)  // scores above the diagonal are no change
        change.push_back(a[c] == b[c] ? 0.0f : b[c] - a[c]);
      row.push_back(fmt::format("{:.4g}", study::root_mean_square(change)));
    }
    table.add(std::move(row));
  }
  std::string text = "\n" + table.text(2);
  if (result.taps.size() > kShownTaps)
    text += fmt::format("  and {} more\n", result.taps.size() - kShownTaps);
  return text;
}

std::string run_text(const study::RunResult& result) {
  std::string text = fmt::format("{}\n", printable(result.label)) + prompt_text(result) +
                     changed_text(result.request.interventions, result.request.steering) +
                     steered_text(result) + "\n" + next_text(result);
  if (result.changed) text += places_text(result);
  if (result.gradient_of) text += gradient_text(result);
  if (!result.taps.empty()) text += taps_text(result);
  return text;
}

void run_run(const RunCommand& command, const Session& session) {
  if (!command.out.empty() && !command.out.ends_with(".npz"))
    throw UsageError(fmt::format("--out: '{}' must end in .npz", printable(command.out)));
  if (!command.out.empty() && command.request.taps.empty())
    throw UsageError("--out holds the values of taps; say which with --tap GLOB");
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models({command.model}, context);
  const study::RunResult result = study::run_prompt(command.request, models[0], context);
  if (!command.out.empty()) study::write_npz(result, command.out);
  if (!session.json()) return session.print(run_text(result));
  study::Json json = to_json(result);
  json["out"] = out_json(command.out);
  session.print_json(json);
}

}  // namespace

void add_run(Program& program) {
  const auto command = std::make_shared<RunCommand>();
  CLI::App& app =
      program.add({"run",
                   "One prompt through a model: read any tap, change any part, compare.",
                   {"filigree run gpt2 --prompt \"Paris is in\" --ablate L6H11,L7MLP",
                    "filigree run gpt2 --prompt \"Paris is in\" --tap \"*hook_z\" --out z.npz",
                    "filigree run gpt2 --prompt \"Paris is in\" --patch \"L5.resid@0=Rome is in\"",
                    "filigree run gpt2 --prompt \"Paris is in\" --scale L9H6=2 --token \" France\"",
                    "filigree run gpt2 --prompt \"Paris is in\" --feature L5F123=0 --features clt",
                    "filigree run gpt2 --prompt \"Paris is in\" --gradient-of \" France\" --json"},
                   Computes::kOnDevice},
                  [command](Session& session) { run_run(*command, session); });
  study::RunRequest& request = command->request;
  const auto several = [](CLI::Option* option, const char* label) {
    option->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->type_name(label);
  };
  app.add_option("MODEL", command->model, "model folder or name")->required();
  app.add_option("--prompt", request.prompt, "text to read")->required()->type_name("TEXT");
  add_intervention_options(app, request.interventions);
  add_steering_options(app, "--feature", request.steering, request.features);
  several(app.add_option("--tap", request.taps,
                         "taps to read, * for any characters (see info --taps); may come again"),
          "GLOB");
  app.add_option("--gradient-of", request.gradient_of,
                 "differentiate the last logit of this token, with the space before it, at every "
                 "tap that is read")
      ->type_name("TEXT");
  several(app.add_option("--token", request.tokens,
                         "token that is listed whatever its rank; may come again"),
          "TEXT");
  app.add_option("--top", request.top, "likeliest next tokens listed")
      ->check(whole_number(0, 1000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--out", command->out,
                 "file of the taps that are read, with gradients and logits (.npz)")
      ->type_name("FILE");
}

}  // namespace filigree::cli
