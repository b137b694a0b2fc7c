// filigree convert: a model or a transcoder written anew.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/models/conversion_text.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/program.h"
#include "filigree/feature_study.h"
#include "filigree/model_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

struct ConvertCommand {
  study::ConversionRequest request;
  std::string model_name;  // of transcoders
};

void convert_features(const ConvertCommand& command, const Session& session) {
  const study::ConversionRequest& given = command.request;
  if (!given.config.empty() || given.gate_bias || !session.options().adapter.empty())
    throw UsageError("--config, --gate-bias and --adapter go with models; this is a transcoder");
  const study::FeatureConversion result =
      study::run(study::FeatureConversionRequest{.features = given.model,
                                                 .out = given.out,
                                                 .dtype = given.dtype,
                                                 .not_finite = given.not_finite,
                                                 .model_name = command.model_name},
                 {}, session.context());
  if (session.json()) return session.print_json(to_json(result));
  const TranscoderShape& shape = result.written.shape;
  session.print(fmt::format("{}: {}, {} layers of {} features, matrices as {}, {}\n",
                            printable(given.out.string()), name_of(shape.kind), shape.layers,
                            with_thousands(static_cast<std::uint64_t>(shape.features)),
                            name_of(given.dtype), human_bytes(result.written.bytes)));
}

void run_convert(const ConvertCommand& command, const Session& session) {
  if (study::is_transcoder(command.request.model)) return convert_features(command, session);
  if (!command.model_name.empty())
    throw UsageError("--model-name goes with transcoders; this is a model");
  print_conversion(study::run(command.request, {}, session.context()), session);
}

}  // namespace

void print_conversion(const study::Conversion& result, const Session& session) {
  if (session.json()) return session.print_json(to_json(result));
  session.print(fmt::format(
      "{}: {} parameters as {}, {}{}\n", printable(result.request.out.string()),
      with_thousands(static_cast<std::uint64_t>(result.parameters)), name_of(result.request.dtype),
      human_bytes(result.bytes), result.tokenizer ? "" : ", no tokenizer"));
}

void add_convert(Program& program) {
  const auto command = std::make_shared<ConvertCommand>();
  study::ConversionRequest& request = command->request;
  CLI::App& app = program.add(
      {"convert",
       "Write a model, a GGUF file, a PyTorch state dict or a transcoder as one folder.",
       {"filigree convert run --out small --dtype bf16", "filigree convert sharded-gpt2 --out gpt2",
        "filigree convert SmolLM2-135M-Instruct.Q4_1.gguf --out smollm2",
        "filigree convert gpt2 --out gpt2-f16.gguf --dtype f16",
        "filigree convert final.pth --out sparse-gpt2 --config gpt2 --gate-bias 0",
        "filigree convert sparse-12x12-features --out clt --dtype bf16",
        "filigree convert clt-forge/clt.safetensors --out clt --model-name gpt2",
        "filigree convert gpt2 --adapter sparse/adapter --out sparse-gpt2"},
       Computes::kNothing,
       true},
      [command](Session& session) { run_convert(*command, session); });
  app.add_option("MODEL", request.model,
                 "model folder or name, GGUF file, PyTorch state dict, or transcoder of any layout")
      ->required();
  app.add_option("--out", request.out,
                 "folder of the new model or transcoder; of a model also a GGUF file (.gguf)")
      ->required()
      ->type_name("DIR");
  add_choice(app, "--dtype", request.dtype, "of the weights; other programs do not read i8");
  app.add_option(
         "--config", request.config,
         "config.json that says what the weights are, a model that has one, or gpt2 for the "
         "smallest of these (default what lies beside them)")
      ->type_name("FILE");
  app.add_option("--gate-bias", request.gate_bias,
                 "put a gate of this bias on every head; 0 keeps an edge where its score is above "
                 "zero")
      ->check(number(-1000.0, 1000.0))
      ->type_name("X");
  app.add_option("--model-name", command->model_name,
                 "model that a transcoder is said to be of (default the one that it names)")
      ->type_name("NAME");
  program.add_knobs(app, knobs_of(request));
}

}  // namespace filigree::cli
