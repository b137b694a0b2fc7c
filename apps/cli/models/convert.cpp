// filigree convert: a model folder written anew, with one file of weights in the type that is asked
// for, adapters merged, its gates more or less open, and its tokenizer beside it.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/data/shard_input.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/model/model.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

struct ConvertOptions {
  std::string model;
  std::string out;
  std::string dtype = "f32";
  float raise_gates = 0.0f;
};

DType stored_type(const std::string& name) {
  return name == "bf16" ? DType::kBf16 : name == "f16" ? DType::kF16 : DType::kF32;
}

// A gate is open where q.k / sqrt(D) + b > 0.
void raise_gates(Model& model, const ConvertOptions& options) {
  require(std::isfinite(options.raise_gates), "--raise-gates must be a finite number");
  if (options.raise_gates == 0.0f) return;
  GateConfig gate = model.config().gate;
  require(gate.on(), "--raise-gates: {} has no gates; filigree sparsify makes them",
          printable(options.model));
  for (float& bias : gate.bias) bias += options.raise_gates;
  model.set_gate(gate);
}

void run_convert(const ConvertOptions& options, const Session& session) {
  const fs::path from = model_folder(options.model), to = options.out;
  std::error_code ignored;
  require(!fs::exists(to / "config.json", ignored),
          "--out '{}' holds a model already; choose another folder or remove it",
          printable(options.out));
  const std::unique_ptr<Model> model = load_model(from);
  model->merge_lora();
  raise_gates(*model, options);
  save_model(*model, to, {.dtype = stored_type(options.dtype)});
  copy_tokenizer(from, to);
  const auto bytes = static_cast<std::uint64_t>(fs::file_size(to / "model.safetensors"));
  if (session.json())
    session.print_json({{"model", options.model},
                        {"out", options.out},
                        {"dtype", options.dtype},
                        {"raised_gates", options.raise_gates},
                        {"parameters", model->parameter_count()},
                        {"bytes", bytes},
                        {"tokenizer", has_tokenizer(to)}});
  else
    session.print(fmt::format("{}: {} parameters as {}, {}{}\n", printable(options.out),
                              with_thousands(static_cast<std::uint64_t>(model->parameter_count())),
                              options.dtype, human_bytes(bytes),
                              has_tokenizer(to) ? "" : ", no tokenizer"));
}

}  // namespace

void add_convert(Program& program) {
  const auto options = std::make_shared<ConvertOptions>();
  CLI::App& app = program.add(
      {"convert",
       "Write a model as one file of weights in another type.",
       {"filigree convert run --out small --dtype bf16", "filigree convert sharded-gpt2 --out gpt2",
        "filigree convert sparse --out opener --raise-gates 0.4"}},
      [options](Session& session) { run_convert(*options, session); });
  app.add_option("MODEL", options->model, "model folder or name")->required();
  app.add_option("--out", options->out, "folder to write to")->required()->type_name("DIR");
  app.add_option("--dtype", options->dtype, "of the weights: f32, bf16 or f16")
      ->check(one_of({"f32", "bf16", "f16"}))
      ->type_name("TYPE")
      ->capture_default_str();
  app.add_option(
         "--raise-gates", options->raise_gates,
         "added to the bias of every gate of a sparse model: above 0 opens more edges, below "
         "0 fewer (default 0)")
      ->type_name("X");
}

}  // namespace filigree::cli
