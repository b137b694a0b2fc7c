// filigree bench: how fast this machine does the work, against its own limits.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "apps/cli/commands.h"
#include "apps/cli/models/shape_options.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/program.h"
#include "base/table.h"
#include "filigree/names.h"
#include "filigree/runtime.h"
#include "filigree/version.h"
#include "study/bench/benchmark.h"

namespace filigree::cli {
namespace {

std::string machine_text(const study::Benchmark& result) {
  if (const std::optional<DeviceInfo>& gpu = result.gpu)
    return fmt::format("{}, {} multiprocessors, {}, {}, {} activations", gpu->name, gpu->cores,
                       gpu->instructions, human_bytes(gpu->memory_bytes),
                       name_of(result.placement.precision));
  const DeviceInfo& cpu = result.cpu;
  return fmt::format("{}, {} cores, {} threads, {}, {}", cpu.name, cpu.cores, num_threads(),
                     cpu.instructions, human_bytes(cpu.memory_bytes));
}

std::string bench_text(const study::Benchmark& result) {
  const study::Ceiling& ceiling = result.ceiling;
  Table facts({{""}, {""}});
  facts.add({"build", build_description()});
  facts.add({"machine", machine_text(result)});
  const ModelConfig& config = result.config;
  facts.add({"model", fmt::format("{} with {} layers, {} heads, width {}, {} tokens", config.family,
                                  config.layers, config.heads, config.width,
                                  with_thousands(static_cast<std::uint64_t>(config.vocabulary)))});
  facts.add({"", fmt::format("{} parameters, random",
                             with_thousands(static_cast<std::uint64_t>(result.parameters)))});
  facts.add(
      {"ceiling", fmt::format("{:.1f} GFLOP/s matrix product of {} x {}", ceiling.matrix_gflops,
                              ceiling.matrix_size, ceiling.matrix_size)});
  if (ceiling.multiply_add_gflops > 0.0)
    facts.add(
        {"", fmt::format("{:.1f} GFLOP/s multiply-add on registers", ceiling.multiply_add_gflops)});
  facts.add({"", fmt::format("{:.1f} GB/s memory read", ceiling.read_gbs)});

  Table table({{"case"},
               {"seconds", Align::kRight},
               {"tokens/s", Align::kRight},
               {"GFLOP/s", Align::kRight},
               {"of ceiling", Align::kRight},
               {"memory", Align::kRight}});
  for (const study::TimedCase& timed : result.cases) {
    const bool counted = timed.operations > 0.0;
    table.add(
        {timed.one.name, fmt::format("{:.4f}", timed.timing.seconds),
         counted ? fmt::format("{:.1f}", timed.tokens_per_second()) : "",
         counted ? fmt::format("{:.1f}", timed.gflops()) : "",
         counted ? fmt::format("{:.0f} %", 100.0 * timed.gflops() / ceiling.matrix_gflops) : "",
         human_bytes(timed.timing.memory)});
  }
  return facts.text() + "\n" + table.text();
}

void run_bench(const study::BenchRequest& request, Session& session) {
  const study::Benchmark result = study::run(request, {}, session.context());
  if (session.json())
    session.print_json(to_json(result));
  else
    session.print(bench_text(result));
}

}  // namespace

void add_bench(Program& program) {
  const auto request = std::make_shared<study::BenchRequest>();
  CLI::App& app = program.add(
      {"bench",
       "Time this machine on GPT-2 or another shape, against its own limits.",
       {"filigree bench", "filigree bench --cases forward-maps-b1-t128,train-dense-b4-t256",
        "filigree bench --threads 1 --json > bench.json",
        "filigree bench --device cuda --precision bf16",
        "filigree bench --config bench/llama-7b.json --device cuda --precision bf16"},
       Computes::kOnDevice},
      [request](Session& session) { run_bench(*request, session); });
  add_choices(app, "--cases", request->cases, study::bench_case_names(),
              "only these; some are of the CPU, some of a GPU");
  add_shape_options(app, request->shape);
  CLI::Option* config =
      app.add_option("--config", request->config,
                     "config.json of the model to time, or a model that has one, instead of the "
                     "numbers above; its weights are random")
          ->type_name("FILE")
          ->group("Model");
  for (const char* name : {"--layers", "--layer-heads", "--width", "--vocab"})
    config->excludes(app.get_option(name));
  Knobs knobs;
  knobs.section("Timing");
  knobs.count({.name = "runs",
               .what = "timed runs of each case, after one that is not; the median counts",
               .otherwise = "3 to 10"},
              request->runs, {.min = 1, .max = 1000});
  knobs.count({.name = "ceiling-size",
               .what = "side of the square matrices that the ceiling is measured with",
               .otherwise = "2048, on a GPU 8192"},
              request->ceiling_size, {.min = 16, .max = 1 << 15});
  knobs.text({.name = "scratch",
              .what = "folder for the saved model of load-warm",
              .otherwise = "the system's temporary one"},
             request->scratch);
  program.add_knobs(app, std::move(knobs));
}

}  // namespace filigree::cli
