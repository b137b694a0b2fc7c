// filigree info: what a model is, what it can be asked for, and what the machine has.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "apps/cli/commands.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "base/table.h"
#include "filigree/device.h"
#include "filigree/error.h"
#include "filigree/model.h"
#include "filigree/model_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

using study::ModelPart;
using study::ModelSummary;

struct InfoOptions {
  std::string model;
  std::int64_t batch = 1;
  std::int64_t length = 0;
  bool taps = false;
  std::string match;
  bool devices = false;
};

std::string grouped_digits(std::int64_t count) {
  return with_thousands(static_cast<std::uint64_t>(count));
}

std::string architecture_text(const ModelConfig& config) {
  const std::string keys = config.key_heads == config.heads
                               ? ""
                               : fmt::format(" ({} for keys and values)", config.key_heads);
  return fmt::format("{}: {} layers, {} heads of {}{}, width {}, MLP {}", config.family,
                     config.layers, config.heads, config.head_width, keys, config.width,
                     config.mlp_width);
}

std::string files_text(const ModelSummary& summary) {
  if (summary.files.size() == 1)
    return fmt::format("{} in {}, {}", summary.stored_as,
                       printable(summary.files[0].filename().string()),
                       human_bytes(summary.file_bytes));
  return fmt::format("{} in {} files, {}", summary.stored_as, summary.files.size(),
                     human_bytes(summary.file_bytes));
}

std::string tokenizer_text(const study::TokenizerSummary& tokenizer) {
  if (!tokenizer.problem.empty()) return "not readable: " + tokenizer.problem;
  if (!tokenizer.present) return "none in this folder";
  std::string text = fmt::format("{}, {} tokens", tokenizer.kind, grouped_digits(tokenizer.tokens));
  for (std::size_t i = 0; i < std::min<std::size_t>(tokenizer.special.size(), 4); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "; special: " : ", ",
                        printable(tokenizer.special[i].content), tokenizer.special[i].id);
  if (tokenizer.special.size() > 4)
    text += fmt::format(" and {} more", tokenizer.special.size() - 4);
  return text;
}

// "bias 2 for every head", or the range of the heads' own.
std::string gate_text(const ModelConfig& config) {
  const std::vector<float>& bias = config.gate.bias;
  if (bias.empty()) return "none: every causal edge is open";
  if (bias.size() == 1) return fmt::format("bias {} for every head", bias[0]);
  const auto [least, most] = std::minmax_element(bias.begin(), bias.end());
  const double sum = std::accumulate(bias.begin(), bias.end(), 0.0);
  return fmt::format("a bias for each of {} heads, {:.3g} to {:.3g}, mean {:.3g}", bias.size(),
                     *least, *most, sum / static_cast<double>(bias.size()));
}

// What training would take on this machine's devices.
std::string training_text(const ModelSummary& summary) {
  Table table({{fmt::format("training, {} x {} tokens", summary.memory.batch,
                            grouped_digits(summary.memory.length))},
               {"device"},
               {"needs", Align::kRight},
               {"has", Align::kRight},
               {""}});
  for (const study::TrainingVariant& variant : summary.training)
    table.add({variant.command,
               fmt::format("{} {}", name_of(variant.placement.device),
                           name_of(variant.placement.precision)),
               human_bytes(variant.memory.total), human_bytes(variant.there),
               variant.fits() ? "fits" : "too large"});
  return table.text();
}

// "23 of 144 on held-out.txt; keys per query of those: median 1.03, largest 36.6 (L9H6)".
std::string living_text(const ModelSummary& summary, const std::optional<study::HeadsAlive>& alive,
                        const std::string& problem) {
  if (!problem.empty()) return "not looked for: " + problem;
  if (alive)
    return fmt::format("{} on {}; keys per query of those: {}", study::count_text(alive->heads),
                       alive->source, study::keys_text(alive->heads));
  return summary.config.gate.on() ? "not looked for: filigree eval MODEL --text FILE counts them"
                                  : "all: they attend to everything";
}

void print_model(const ModelSummary& summary, const std::optional<study::HeadsAlive>& alive,
                 const std::string& problem, const Session& session) {
  const ModelConfig& config = summary.config;
  const study::MemoryEstimate& memory = summary.memory;
  Table facts({{""}, {""}});
  facts.add({"model", printable(summary.folder)});
  facts.add({"architecture", architecture_text(config)});
  facts.add({"context", fmt::format("{} positions", grouped_digits(config.context))});
  facts.add({"vocabulary", fmt::format("{} tokens, output {} the token embedding",
                                       grouped_digits(config.vocabulary),
                                       config.tied_embeddings ? "shares" : "separate from")});
  facts.add({"parameters", grouped_digits(summary.parameters)});
  facts.add({"weights", files_text(summary)});
  facts.add({"tokenizer", tokenizer_text(summary.tokenizer)});
  facts.add({"gate", gate_text(config)});
  facts.add({"living heads", living_text(summary, alive, problem)});

  Table parts({{"part"}, {"parameters", Align::kRight}, {"share", Align::kRight}});
  for (const ModelPart& part : summary.parts)
    parts.add({part.repeats > 1 ? fmt::format("{} x {}", part.repeats, part.name) : part.name,
               grouped_digits(part.parameters),
               fmt::format("{:.1f} %", 100.0 * static_cast<double>(part.parameters) /
                                           static_cast<double>(summary.parameters))});

  Table needed(
      {{fmt::format("memory for {} x {} tokens", memory.batch, grouped_digits(memory.length))},
       {"", Align::kRight}});
  needed.add({"weights in f32", human_bytes(memory.weights)});
  needed.add({"activations of a forward pass", human_bytes(memory.forward)});
  needed.add({fmt::format("all {} attention maps, if kept", config.layers * config.heads),
              human_bytes(memory.attention_maps)});
  needed.add({"key-value cache for generation", human_bytes(memory.cache)});
  session.print(facts.text() + "\n" + parts.text() + "\n" + needed.text() + "\n" +
                training_text(summary));
}

void show_model(const InfoOptions& options, const Session& session) {
  const ModelSummary summary = study::run(
      study::SummaryRequest{options.model, options.batch, options.length}, {}, session.context());
  std::optional<study::HeadsAlive> alive;
  std::string problem;  // that keeps it from being run; what is in its headers is worth showing
  if (living_heads_are_cheap(summary)) try {
      const study::Context context = session.context();
      const std::vector<study::LoadedModel> models = study::load_models({options.model}, context);
      alive = study::find_living_heads(models[0], {}, context);
    } catch (const Error& error) {
      problem = error.what();
    }
  if (session.json())
    session.print_json(to_json(summary, alive));
  else
    print_model(summary, alive, problem, session);
}

void show_taps(const InfoOptions& options, const Session& session) {
  const auto model = load_model(model_folder(options.model), {.warn_about_values = false});
  std::vector<std::string> names;
  for (const std::string& name : model->tap_names())
    if (options.match.empty() || ::fnmatch(options.match.c_str(), name.c_str(), 0) == 0)
      names.push_back(name);
  if (names.empty())
    fail("no tap of '{}' matches '{}'; --taps lists all {}, for example {}",
         printable(options.model), printable(options.match), model->tap_names().size(),
         fmt::join(nearest_names(options.match, model->tap_names(), 2), ", "));
  if (session.json())
    session.print_json({{"model", options.model}, {"taps", names}});
  else
    session.print(fmt::format("{}\n", fmt::join(names, "\n")));
}

void show_devices(const Session& session) {
  Table table({{"device"},
               {"name"},
               {"cores", Align::kRight},
               {"memory", Align::kRight},
               {"instructions"}});
  Json list = Json::array();
  for (const DeviceInfo& device : list_devices()) {
    const std::string id = device.kind == DeviceKind::kCpu
                               ? "cpu"
                               : fmt::format("{}:{}", name_of(device.kind), device.index);
    table.add({id, device.name, std::to_string(device.cores), human_bytes(device.memory_bytes),
               device.instructions});
    list.push_back({{"device", id},
                    {"name", device.name},
                    {"cores", device.cores},
                    {"memory_bytes", device.memory_bytes},
                    {"instructions", device.instructions}});
  }
  if (session.json())
    session.print_json({{"devices", list}});
  else
    session.print(table.text());
}

void run_info(const InfoOptions& options, Session& session) {
  if (options.devices) {
    if (!options.model.empty()) throw UsageError("--devices takes no MODEL");
    show_devices(session);
    return;
  }
  if (options.model.empty()) throw UsageError("MODEL is required");
  if (options.taps || !options.match.empty())
    show_taps(options, session);
  else
    show_model(options, session);
}

}  // namespace

void add_info(Program& program) {
  const auto options = std::make_shared<InfoOptions>();
  CLI::App& app =
      program.add({"info",
                   "Architecture, sizes, gate, tokenizer and memory of a model.",
                   {"filigree info gpt2", "filigree info gpt2 --batch 8 --length 512",
                    "filigree info gpt2 --match \"blocks.3.attn.*\"", "filigree info --devices"}},
                  [options](Session& session) { run_info(*options, session); });
  app.add_option("MODEL", options->model, "model folder or name");
  app.add_option("--batch", options->batch, "texts at once, for the memory needed")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--length", options->length,
                 "tokens a text, for the memory needed (default the model's context)")
      ->check(whole_number(1, 1 << 24))
      ->type_name("N");
  app.add_flag("--taps", options->taps, "list the names of the model's intermediates instead");
  app.add_option("--match", options->match, "list only taps that fit this pattern (* and ?)")
      ->type_name("GLOB");
  app.add_flag("--devices", options->devices, "list the processors of this machine instead");
}

}  // namespace filigree::cli
