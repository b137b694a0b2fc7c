#include "apps/cli/program/knob_options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/cli/program/help.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/values.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "json/json.h"

namespace filigree::cli {
namespace {

// "dual-rate=0.1": the knob and what it is set to.
std::pair<const Knob&, Knob::Json> read_setting(const Knobs& knobs, const std::string& text) {
  const std::size_t equals = text.find('=');
  require(equals != std::string::npos, "'{}' is not NAME=VALUE", printable(text));
  const Knob& knob = knobs.at(text.substr(0, equals));
  Knob::Json value = knob.value_of(text.substr(equals + 1));
  const std::string problem = knob.problem(value);
  require(problem.empty(), "{}: {}", knob.name, problem);
  return {knob, std::move(value)};
}

CLI::Validator check_of(const Knob& knob) {
  if (knob.kind == KnobKind::kChoice) return one_of(knob.choices);
  const bool text = knob.kind == KnobKind::kText;
  return checked_by(text ? "" : "number", [knob](const std::string& given) {
    const std::string problem = knob.problem(knob.value_of(given));
    require(problem.empty(), "{}", problem);
  });
}

CLI::Option* add_option(CLI::App& app, const Knob& knob) {
  const std::string name = "--" + knob.name;
  CLI::Option* option = nullptr;
  if (knob.kind == KnobKind::kFlag) {
    option = app.add_flag_callback(
        name, [] {}, knob.what);
  } else {
    const std::string help = knob.kind == KnobKind::kChoice
                                 ? fmt::format("{}: {}", knob.what, any_of_text(knob.choices))
                                 : knob.what;
    // The value is taken from the option once all are read (apply()).
    option = app.add_option_function<std::string>(
        name, [](const std::string&) {}, help);
    if (knob.kind != KnobKind::kText) option->check(check_of(knob));
    option->type_name(knob.kind == KnobKind::kCount    ? "N"
                      : knob.kind == KnobKind::kNumber ? "X"
                      : knob.kind == KnobKind::kChoice ? "NAME"
                                                       : "TEXT");
    option->default_str(knob.default_text());
  }
  option->group(knob.section);
  if (knob.level == KnobLevel::kMore) show_in_full_help_only(*option);
  return option;
}

// Of a file, or written in place.
nlohmann::ordered_json read_recipe(const std::string& recipe) {
  const bool in_place = recipe.starts_with('{');
  return parse_json(in_place ? recipe : read_text(recipe),
                    in_place ? "--recipe" : source_name(recipe));
}

}  // namespace

void KnobOptions::add(CLI::App& app, Knobs knobs) {
  knobs_ = std::move(knobs);
  for (const Knob& knob : knobs_.all())
    if (knob.level != KnobLevel::kRecipe) options_.emplace_back(knob.name, add_option(app, knob));
  app.add_option("--set", set_, "set one of the settings that --help-all lists; may come again")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(
          checked_by("setting", [this](const std::string& text) { read_setting(knobs_, text); }))
      ->type_name("NAME=VALUE")
      ->group("Settings");
  app.add_option("--recipe", recipe_,
                 "settings as a JSON object, in a file or written here: '{\"lambda_max\": 20}'")
      ->type_name("FILE")
      ->group("Settings");
}

void KnobOptions::apply() const {
  if (!recipe_.empty())
    as_usage("--recipe", [&] {
      knobs_.read(read_recipe(recipe_), recipe_.starts_with('{') ? "" : source_name(recipe_));
      return true;
    });
  for (const std::string& text : set_) {
    const auto [knob, value] = read_setting(knobs_, text);
    knob.set(value);
  }
  for (const auto& [name, option] : options_) {
    if (option->count() == 0) continue;
    const Knob& knob = knobs_.at(name);
    knob.set(knob.kind == KnobKind::kFlag ? Knob::Json(option->as<bool>())
                                          : knob.value_of(option->as<std::string>()));
  }
}

}  // namespace filigree::cli
