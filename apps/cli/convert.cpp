// filigree convert: a model folder written anew, with one file of weights in the type that is asked
// for, adapters merged, and its tokenizer beside it.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/input.h"
#include "apps/cli/program.h"
#include "apps/cli/shard_input.h"
#include "base/error.h"
#include "base/strings.h"
#include "model/model.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

struct ConvertOptions {
  std::string model;
  std::string out;
  std::string dtype = "f32";
};

DType stored_type(const std::string& name) {
  return name == "bf16" ? DType::kBf16 : name == "f16" ? DType::kF16 : DType::kF32;
}

void run_convert(const ConvertOptions& options, const Session& session) {
  const fs::path from = model_folder(options.model), to = options.out;
  std::error_code ignored;
  require(!fs::exists(to / "config.json", ignored),
          "--out '{}' holds a model already; choose another folder or remove it",
          printable(options.out));
  const std::unique_ptr<Model> model = load_model(from);
  model->merge_lora();
  save_model(*model, to, {.dtype = stored_type(options.dtype)});
  copy_tokenizer(from, to);
  const auto bytes = static_cast<std::uint64_t>(fs::file_size(to / "model.safetensors"));
  if (session.json())
    session.print_json({{"model", options.model},
                        {"out", options.out},
                        {"dtype", options.dtype},
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
  CLI::App& app = program.add({"convert",
                               "Write a model as one file of weights in another type.",
                               {"filigree convert run --out small --dtype bf16",
                                "filigree convert sharded-gpt2 --out gpt2"}},
                              [options](Session& session) { run_convert(*options, session); });
  app.add_option("MODEL", options->model, "model folder or name")->required();
  app.add_option("--out", options->out, "folder to write to")->required()->type_name("DIR");
  app.add_option("--dtype", options->dtype, "of the weights: f32, bf16 or f16")
      ->check(one_of({"f32", "bf16", "f16"}))
      ->type_name("TYPE")
      ->capture_default_str();
}

}  // namespace filigree::cli
