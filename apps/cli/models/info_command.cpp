// filigree info: what a model is, what it can be asked for, and what the machine has.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "apps/cli/commands.h"
#include "apps/cli/models/text_tokens.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "base/table.h"
#include "filigree/device.h"
#include "filigree/error.h"
#include "filigree/model.h"
#include "filigree/model_study.h"
#include "filigree/names.h"
#include "filigree/training_study.h"

namespace filigree::cli {
namespace {

using study::ModelPart;
using study::ModelSummary;

constexpr const char *kTaps = "taps", *kDevices = "devices", *kIds = "ids";
constexpr const char *kCheck = "check", *kWrite = "write";

struct InfoOptions {
  std::vector<std::string> folders;
  std::string model;  // the first of them, of what takes one
  std::int64_t batch = 1;
  std::int64_t length = 0;
  std::string show;   // what is shown instead of the model
  std::string match;  // of taps
  std::string checksums;
  study::CurvesRequest curves;
  TextTokens tokens;
};

std::string grouped_digits(std::int64_t count) {
  return with_thousands(static_cast<std::uint64_t>(count));
}

std::string architecture_text(const ModelConfig& config) {
  const std::string keys = config.key_heads == config.heads
                               ? ""
                               : fmt::format(" ({} for keys and values)", config.key_heads);
  const std::string experts = config.mlp != MlpKind::kExperts
                                  ? ""
                                  : fmt::format(" in each of {} experts, {} a token",
                                                config.experts, config.experts_per_token);
  return fmt::format("{}: {} layers, {} heads of {}{}, width {}, MLP {}{}", config.family,
                     config.layers, config.heads, config.head_width, keys, config.width,
                     config.mlp_width, experts);
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
  if (!summary.adapter.empty()) facts.add({"adapter", printable(summary.adapter)});
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
  const auto model = study::model_source(options.model, session.context().adapter)
                         .load({.warn_about_values = false});
  std::vector<std::string> names;
  for (const std::string& name : model->tap_names())
    if (options.match.empty() || ::fnmatch(options.match.c_str(), name.c_str(), 0) == 0)
      names.push_back(name);
  if (names.empty())
    fail("no tap of '{}' matches '{}'; --show taps lists all {}, for example {}",
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

std::string folder_line(const study::VerifiedFolder& folder) {
  const std::string name = printable(folder.folder, 400);
  if (!folder.problem.empty()) return fmt::format("{}: damaged\n  {}\n", name, folder.problem);
  if (!folder.checksums) return fmt::format("{}: there are no checksums here\n", name);
  std::uint64_t bytes = 0;
  std::string problems;
  for (const CheckedFile& file : folder.files) {
    bytes += file.bytes;
    if (!file.problem.empty())
      problems += fmt::format("  {} {}\n", printable(file.name), file.problem);
  }
  if (!problems.empty()) return fmt::format("{}: damaged\n{}", name, problems);
  return fmt::format("{}: whole, {} files, {}\n", name, folder.files.size(), human_bytes(bytes));
}

void check_files(const InfoOptions& options, Session& session) {
  const study::Verification result =
      study::run(study::VerificationRequest{options.folders, options.checksums == kWrite}, {},
                 session.context());
  constexpr int kDamaged = 1;
  session.set_exit_code(result.damaged() ? kDamaged : result.checked_any() ? 0 : kOutOfReach);
  if (session.json()) return session.print_json(to_json(result));
  std::string text;
  for (const study::VerifiedFolder& folder : result.folders) text += folder_line(folder);
  session.print(text);
}

void draw_curves(const InfoOptions& options, const Session& session) {
  study::CurvesRequest request = options.curves;
  request.runs = options.folders;
  const study::CurvesResult drawn = study::run(request, {}, session.context());
  if (session.json())
    session.print_json(study::to_json(drawn));
  else
    session.print(drawn.out + "\n");
}

void run_info(const InfoOptions& given, Session& session) {
  InfoOptions options = given;
  if (options.tokens.given() &&
      (!options.match.empty() || !options.checksums.empty() || !options.curves.out.empty() ||
       options.show == kTaps || options.show == kDevices))
    throw UsageError("--prompt, --text and --ids show tokens, and nothing else goes with them");
  if (options.show == kDevices) {
    if (!options.folders.empty()) throw UsageError("--show devices takes no FOLDER");
    return show_devices(session);
  }
  if (options.folders.empty()) throw UsageError("FOLDER is required");
  if (!options.checksums.empty()) return check_files(options, session);
  if (!options.curves.out.empty()) return draw_curves(options, session);
  if (options.folders.size() > 1)
    throw UsageError(
        "several folders go with --checksums, or with --out for the curves of training runs");
  options.model = options.folders[0];
  options.tokens.only_ids = options.show == kIds;
  if (options.tokens.given() || options.tokens.only_ids)
    return options.tokens.show(options.model, session);
  if (options.show == kTaps || !options.match.empty())
    show_taps(options, session);
  else
    show_model(options, session);
}

}  // namespace

void add_info(Program& program) {
  const auto options = std::make_shared<InfoOptions>();
  CLI::App& app = program.add(
      {"info",
       "What a model is, and its tokens of a text; file checks; training curves.",
       {"filigree info gpt2", "filigree info gpt2 --batch 8 --context 512",
        "filigree info gpt2 --prompt \"Hello world\"",
        "filigree info gpt2 --text book.txt --show ids > book.ids",
        "filigree info gpt2 --ids - < book.ids", "filigree info gpt2 --tap \"blocks.3.attn.*\"",
        "filigree info --show devices", "filigree info dense-12x12 shards --checksums check",
        "filigree info sparse control --out curves.svg"},
       Computes::kNothing,
       true},
      [options](Session& session) { run_info(*options, session); });
  app.add_option("FOLDER", options->folders,
                 "model folder or name; with a text also a tokenizer's; with --checksums also "
                 "runs, shards and transcoders, with "
                 "--out training runs or their log.jsonl");
  app.add_option("--batch", options->batch, "texts at once, for the memory needed")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--context", options->length,
                 "tokens a text, for the memory needed (default the model's context)")
      ->check(whole_number(1, 1 << 24))
      ->type_name("N");
  add_choice(app, "--show", options->show, {kTaps, kDevices, kIds},
             "instead of the model the names of its intermediates, this machine's processors, or "
             "the ids of a text (of stdin unless one is given), on one line");
  options->tokens.add_options(app);
  app.add_option("--tap", options->match, "list the taps that fit this pattern (* and ?)")
      ->type_name("GLOB");
  add_choice(
      app, "--checksums", options->checksums, {kCheck, kWrite},
      "compare files with the checksums written beside them, or first write those of a model "
      "that came without or was changed on purpose");
  app.add_option("--out", options->curves.out,
                 "file of a figure of training runs: gap and edges of sparse ones, loss of dense "
                 "ones; .svg, .pdf or .png")
      ->check(figure_file())
      ->type_name("FILE");
  Knobs knobs = knobs_of(options->curves.style);
  options->tokens.add_knobs(knobs);
  program.add_knobs(app, std::move(knobs));
}

}  // namespace filigree::cli
