// filigree bench: how fast this machine does the work, against its own limits.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "apps/cli/commands.h"
#include "apps/cli/models/bench_cases.h"
#include "apps/cli/models/ceiling.h"
#include "apps/cli/models/model_shape.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/scratch_folder.h"
#include "apps/cli/program/table.h"
#include "filigree/base/strings.h"
#include "filigree/base/version.h"
#include "filigree/runtime/device.h"
#include "filigree/runtime/threads.h"

namespace filigree::cli {
namespace {

struct BenchOptions {
  ModelShape shape;
  std::vector<std::string> cases;
  int runs = 0;
  std::int64_t ceiling_size = 0;  // 0: what the device needs to show what it can
  std::string scratch;
};

struct BenchResult {
  BenchCase one;
  BenchTiming timing;
  double operations = 0.0;  // 0 where none are counted

  double tokens_per_second() const {
    return static_cast<double>(one.batch * one.length) / timing.seconds;
  }
  double gflops() const { return operations / timing.seconds * 1e-9; }
};

std::vector<BenchCase> chosen_cases(DeviceKind device, const std::vector<std::string>& names) {
  if (names.empty()) return bench_cases(device);
  std::vector<BenchCase> chosen;
  for (const std::string& name : names) {
    std::vector<std::string> all;
    for (const BenchCase& one : bench_cases(device)) {
      all.push_back(one.name);
      if (one.name == name) chosen.push_back(one);
    }
    if (std::find(all.begin(), all.end(), name) == all.end())
      throw UsageError(fmt::format("there is no case '{}'; there are {}", printable(name),
                                   fmt::join(all, ", ")));
  }
  return chosen;
}

// The device that works.
DeviceInfo device_info(const Placement& placement) {
  for (const DeviceInfo& info : list_devices())
    if (info.kind == placement.device) return info;
  return list_devices().at(0);
}

std::string machine_text(const Placement& placement) {
  const DeviceInfo device = device_info(placement);
  if (device.kind == DeviceKind::kCuda)
    return fmt::format("{}, {} multiprocessors, {}, {}, {} activations", device.name, device.cores,
                       device.instructions, human_bytes(device.memory_bytes),
                       name_of(placement.precision));
  return fmt::format("{}, {} cores, {} threads, {}, {}", device.name, device.cores, num_threads(),
                     device.instructions, human_bytes(device.memory_bytes));
}

Json as_json(const BenchOptions& options, const Model& model, const Ceiling& ceiling,
             const std::vector<BenchResult>& results) {
  const DeviceInfo cpu = list_devices().at(0);
  Json list = Json::array();
  for (const BenchResult& result : results) {
    Json row = {{"case", result.one.name}, {"seconds", result.timing.seconds}};
    if (result.operations > 0.0) {
      row["tokens_per_s"] = result.tokens_per_second();
      row["gflops"] = result.gflops();
      row["share_of_ceiling"] = result.gflops() / ceiling.matrix_gflops;
    }
    row["memory_bytes"] = result.timing.memory;
    row["runs"] = result.one.runs;
    list.push_back(std::move(row));
  }
  Json machine = {{"cpu", cpu.name},
                  {"cores", cpu.cores},
                  {"instructions", cpu.instructions},
                  {"memory_bytes", cpu.memory_bytes}};
  if (model.placement().device == DeviceKind::kCuda) {
    const DeviceInfo gpu = device_info(model.placement());
    machine["gpu"] = gpu.name;
    machine["gpu_memory_bytes"] = gpu.memory_bytes;
  }
  return {{"build", build_description()},
          {"machine", machine},
          {"precision", name_of(model.placement().precision)},
          {"model",
           {{"layers", options.shape.layers},
            {"heads", options.shape.heads},
            {"width", options.shape.width},
            {"vocabulary", options.shape.vocabulary},
            {"parameters", model.parameter_count()}}},
          {"ceiling",
           {{"matrix_gflops", ceiling.matrix_gflops},
            {"matrix_size", ceiling.matrix_size},
            {"multiply_add_gflops", ceiling.multiply_add_gflops},
            {"read_gb_per_s", ceiling.read_gbs}}},
          {"cases", list}};
}

std::string as_text(const BenchOptions& options, const Model& model, const Ceiling& ceiling,
                    const std::vector<BenchResult>& results) {
  Table facts({{""}, {""}});
  facts.add({"build", build_description()});
  facts.add({"machine", machine_text(model.placement())});
  facts.add({"model", options.shape.text()});
  facts.add({"", fmt::format("{} parameters, random",
                             with_thousands(static_cast<std::uint64_t>(model.parameter_count())))});
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
  for (const BenchResult& result : results) {
    const bool counted = result.operations > 0.0;
    table.add(
        {result.one.name, fmt::format("{:.4f}", result.timing.seconds),
         counted ? fmt::format("{:.1f}", result.tokens_per_second()) : "",
         counted ? fmt::format("{:.1f}", result.gflops()) : "",
         counted ? fmt::format("{:.0f} %", 100.0 * result.gflops() / ceiling.matrix_gflops) : "",
         human_bytes(result.timing.memory)});
  }
  return facts.text() + "\n" + table.text();
}

void run_bench(const BenchOptions& options, Session& session) {
  const ModelConfig config = options.shape.config();
  const Placement placement = session.placement();
  const std::vector<BenchCase> cases = chosen_cases(placement.device, options.cases);
  // A GPU shows what it can on matrices that fill it.
  const std::int64_t size = options.ceiling_size > 0                ? options.ceiling_size
                            : placement.device == DeviceKind::kCuda ? 8192
                                                                    : 2048;
  session.note("measuring the machine's ceiling");
  Ceiling ceiling = measure_ceiling(placement, size);

  const std::unique_ptr<Model> model = make_model(config, session.options().seed, placement);
  std::optional<ScratchFolder> saved;
  std::vector<BenchResult> results;
  for (BenchCase one : cases) {
    if (options.runs > 0) one.runs = options.runs;
    session.note("timing " + one.name);
    if (one.kind == BenchKind::kLoad) {
      saved.emplace(options.scratch);
      save_model(*model, saved->path());
    }
    BenchResult result{
        one, time_case(one, *model, saved ? saved->path() : "", one.runs, session.options().seed)};
    result.operations = operations_of(one, config);
    results.push_back(result);
    // Again after every case: other work on the machine may have held the first measurement down.
    ceiling = highest(ceiling, measure_ceiling(placement, size));
  }
  if (session.json())
    session.print_json(as_json(options, *model, ceiling, results));
  else
    session.print(as_text(options, *model, ceiling, results));
}

}  // namespace

void add_bench(Program& program) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App& app = program.add(
      {"bench",
       "Time this machine on GPT-2, against its own limits.",
       {"filigree bench", "filigree bench --case forward_maps_B1_T128 --case train_dense_B4_T256",
        "filigree bench --threads 1 --json > bench.json",
        "filigree bench --device cuda --precision bf16"},
       Computes::kOnDevice},
      [options](Session& session) { run_bench(*options, session); });
  app.add_option("--case", options->cases, "only this case; may be given several times")
      ->allow_extra_args(false)
      ->expected(1)
      ->take_all()
      ->type_name("NAME");
  app.add_option("--runs", options->runs,
                 "timed runs of each case, after one that is not (default 3 to 10); the median "
                 "counts")
      ->check(whole_number(1, 1000))
      ->type_name("N");
  app.add_option(
         "--ceiling-size", options->ceiling_size,
         "side of the square matrices that the ceiling is measured with (default 2048, on a "
         "GPU 8192)")
      ->check(whole_number(16, 1 << 15))
      ->type_name("N");
  app.add_option("--scratch", options->scratch,
                 "folder for the saved model of load_warm (default the system's temporary one)")
      ->type_name("DIR");
  add_shape_options(app, options->shape);
}

}  // namespace filigree::cli
