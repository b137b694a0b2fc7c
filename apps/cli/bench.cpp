// filigree bench: how fast this machine does the work, against its own limits.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "apps/cli/bench_cases.h"
#include "apps/cli/ceiling.h"
#include "apps/cli/commands.h"
#include "apps/cli/model_shape.h"
#include "apps/cli/program.h"
#include "apps/cli/scratch_folder.h"
#include "apps/cli/table.h"
#include "base/strings.h"
#include "base/version.h"
#include "runtime/device.h"
#include "runtime/threads.h"

namespace filigree::cli {
namespace {

struct BenchOptions {
  ModelShape shape;
  std::vector<std::string> cases;
  int runs = 0;
  std::int64_t ceiling_size = 2048;
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

std::vector<BenchCase> chosen_cases(const std::vector<std::string>& names) {
  if (names.empty()) return bench_cases();
  std::vector<BenchCase> chosen;
  for (const BenchCase& one : bench_cases())
    if (std::find(names.begin(), names.end(), one.name) != names.end()) chosen.push_back(one);
  return chosen;
}

std::string case_problem(const std::string& name) {
  std::vector<std::string> names;
  for (const BenchCase& one : bench_cases()) names.push_back(one.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return "";
  return fmt::format("there is no case '{}'; there are {}", printable(name),
                     fmt::join(names, ", "));
}

std::string machine_text() {
  const DeviceInfo cpu = list_devices().at(0);
  return fmt::format("{}, {} cores, {} threads, {}, {}", cpu.name, cpu.cores, num_threads(),
                     cpu.instructions, human_bytes(cpu.memory_bytes));
}

Json as_json(const BenchOptions& options, std::int64_t parameters, const Ceiling& ceiling,
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
  return {{"build", build_description()},
          {"machine",
           {{"cpu", cpu.name},
            {"cores", cpu.cores},
            {"instructions", cpu.instructions},
            {"memory_bytes", cpu.memory_bytes}}},
          {"model",
           {{"layers", options.shape.layers},
            {"heads", options.shape.heads},
            {"width", options.shape.width},
            {"vocabulary", options.shape.vocabulary},
            {"parameters", parameters}}},
          {"ceiling",
           {{"matrix_gflops", ceiling.matrix_gflops},
            {"matrix_size", ceiling.matrix_size},
            {"multiply_add_gflops", ceiling.multiply_add_gflops},
            {"read_gb_per_s", ceiling.read_gbs}}},
          {"cases", list}};
}

std::string as_text(const BenchOptions& options, std::int64_t parameters, const Ceiling& ceiling,
                    const std::vector<BenchResult>& results) {
  Table facts({{""}, {""}});
  facts.add({"build", build_description()});
  facts.add({"machine", machine_text()});
  facts.add({"model", options.shape.text()});
  facts.add({"", fmt::format("{} parameters, random",
                             with_thousands(static_cast<std::uint64_t>(parameters)))});
  facts.add(
      {"ceiling", fmt::format("{:.1f} GFLOP/s matrix product of {} x {}", ceiling.matrix_gflops,
                              ceiling.matrix_size, ceiling.matrix_size)});
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
  // Its ceiling is the CPU's, and its clock does not wait for the GPU.
  if (session.options().device != "cpu")
    throw UsageError("bench measures the CPU; leave out --device");
  const ModelConfig config = options.shape.config();
  const std::vector<BenchCase> cases = chosen_cases(options.cases);
  session.note("measuring the machine's ceiling");
  Ceiling ceiling = measure_ceiling(options.ceiling_size);

  const std::unique_ptr<Model> model = make_model(config, session.options().seed);
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
    if (one.kind == BenchKind::kForwardMaps)
      result.operations = forward_operations(config, one.batch, one.length);
    if (one.kind == BenchKind::kTrain || one.kind == BenchKind::kTrainGated)
      result.operations = train_operations(config, one.batch, one.length);
    results.push_back(result);
    // Again after every case: other work on the machine may have held the first measurement down.
    ceiling = highest(ceiling, measure_ceiling(options.ceiling_size));
  }
  if (session.json())
    session.print_json(as_json(options, model->parameter_count(), ceiling, results));
  else
    session.print(as_text(options, model->parameter_count(), ceiling, results));
}

}  // namespace

void add_bench(Program& program) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App& app = program.add(
      {"bench",
       "Time this machine on GPT-2, against its own limits.",
       {"filigree bench", "filigree bench --case forward_maps_B1_T128 --case train_dense_B4_T256",
        "filigree bench --threads 1 --json > bench.json"}},
      [options](Session& session) { run_bench(*options, session); });
  app.add_option("--case", options->cases, "only this case; may be given several times")
      ->allow_extra_args(false)
      ->expected(1)
      ->take_all()
      ->check(CLI::Validator([](std::string& name) { return case_problem(name); }, ""))
      ->type_name("NAME");
  app.add_option("--runs", options->runs,
                 "timed runs of each case, after one that is not (default 3 to 10); the median "
                 "counts")
      ->check(whole_number(1, 1000))
      ->type_name("N");
  app.add_option("--ceiling-size", options->ceiling_size,
                 "side of the square matrices that the ceiling is measured with")
      ->check(whole_number(16, 1 << 15))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--scratch", options->scratch,
                 "folder for the saved model of load_warm (default the system's temporary one)")
      ->type_name("DIR");
  add_shape_options(app, options->shape);
}

}  // namespace filigree::cli
