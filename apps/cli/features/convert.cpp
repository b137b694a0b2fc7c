// filigree features convert: a transcoder written anew.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/features/feature_commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/program.h"
#include "filigree/feature_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

void run_convert(const study::FeatureConversionRequest& request, const Session& session) {
  const study::FeatureConversion result = study::run(request, {}, session.context());
  if (session.json()) return session.print_json(to_json(result));
  const TranscoderShape& shape = result.written.shape;
  session.print(fmt::format("{}: {}, {} layers of {} features, matrices as {}, {}\n",
                            printable(request.out.string()), name_of(shape.kind), shape.layers,
                            with_thousands(static_cast<std::uint64_t>(shape.features)),
                            name_of(request.dtype), human_bytes(result.written.bytes)));
}

}  // namespace

void add_features_convert(Program& program) {
  const auto request = std::make_shared<study::FeatureConversionRequest>();
  CLI::App& app =
      program.add({"features convert",
                   "Write a transcoder of any layout as circuit-tracer loads it, or in 8 bits.",
                   {"filigree features convert sparse-12x12-features --out clt --dtype bf16",
                    "filigree features convert clt-forge/clt.safetensors --out clt --model gpt2",
                    "filigree features convert clt --out small --dtype i8"}},
                  [request](Session& session) { run_convert(*request, session); });
  app.add_option("FEATURES", request->features, "transcoder: folder, file or name")->required();
  app.add_option("--out", request->out, "folder of the new transcoder")
      ->required()
      ->type_name("DIR");
  add_choice(app, "--dtype", request->dtype,
             "type of the matrices; circuit-tracer does not read i8",
             {MatrixType::kF32, MatrixType::kBf16, MatrixType::kI8});
  add_choice(app, "--not-finite", request->not_finite,
             "numbers that are NaN or infinite, or too large for --dtype");
  app.add_option("--model", request->model_name,
                 "model that it is said to be of (default the one that FEATURES names)")
      ->type_name("NAME");
}

}  // namespace filigree::cli
