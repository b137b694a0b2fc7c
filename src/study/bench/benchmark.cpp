#include "study/bench/benchmark.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "base/scratch_folder.h"
#include "filigree/names.h"
#include "filigree/version.h"
#include "study/bench/lora_step.h"

namespace filigree::study {
namespace {

std::vector<std::string> case_names(const std::vector<BenchCase>& cases) {
  std::vector<std::string> names;
  for (const BenchCase& one : cases) names.push_back(one.name);
  return names;
}

std::vector<BenchCase> chosen_cases(const BenchRequest& request, DeviceKind device,
                                    std::int64_t context) {
  const std::vector<BenchCase>& all = bench_cases(device);
  std::vector<BenchCase> chosen;
  if (request.cases.empty())
    std::copy_if(all.begin(), all.end(), std::back_inserter(chosen),
                 [&](const BenchCase& one) { return one.length <= context; });
  for (const std::string& name : request.cases) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const BenchCase& one) { return one.name == name; });
    if (found == all.end())
      throw RequestError(fmt::format("there is no case '{}' on {}; there are {}", printable(name),
                                     name_of(device), fmt::join(case_names(all), ", ")));
    if (found->length > context)
      throw RequestError(
          fmt::format("the case '{}' has {} tokens in a row and the model a context "
                      "of {}; name another case, or a model with --config",
                      found->name, found->length, context));
    chosen.push_back(*found);
  }
  return chosen;
}

// A GPU shows what it can on matrices that fill it.
std::int64_t ceiling_size(const BenchRequest& request, DeviceKind device) {
  if (request.ceiling_size > 0) return request.ceiling_size;
  return device == DeviceKind::kCuda ? 8192 : 2048;
}

}  // namespace

double TimedCase::tokens_per_second() const {
  return static_cast<double>(one.batch * one.length) / timing.seconds;
}

double TimedCase::gflops() const { return operations / timing.seconds * 1e-9; }

std::vector<std::string> bench_case_names() {
  std::vector<std::string> names;
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kCuda})
    for (const std::string& name : case_names(bench_cases(device)))
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

Benchmark run(const BenchRequest& request, Models, const Context& context) {
  Benchmark result;
  result.placement = context.placement;
  result.config = request.config.empty() ? request.shape.config() : named_config(request.config);
  const ModelConfig& config = result.config;
  const std::vector<BenchCase> cases =
      chosen_cases(request, context.placement.device, config.context);
  for (const DeviceInfo& device : list_devices()) {
    if (device.kind == DeviceKind::kCpu)
      result.cpu = device;
    else if (context.placement.device == device.kind && !result.gpu)
      result.gpu = device;
  }
  const std::int64_t size = ceiling_size(request, context.placement.device);
  context.say("measuring the machine's ceiling");
  result.ceiling = measure_ceiling(context, size);

  result.parameters = parameter_count(config);
  std::unique_ptr<Model> model;  // of all cases that do not make their own
  std::optional<ScratchFolder> saved;
  for (BenchCase one : cases) {
    if (request.runs > 0) one.runs = request.runs;
    context.say("timing " + one.name);
    const bool own = one.kind == BenchKind::kStepLora;
    if (own)
      model.reset();
    else if (!model)
      model = make_model(config, context.seed, context.placement);
    if (one.kind == BenchKind::kLoad) {
      saved.emplace(request.scratch);
      save_model(*model, saved->path());
    }
    const BenchTiming timing =
        own ? time_lora_step(one, config, one.runs, context)
            : time_case(one, *model, saved ? saved->path() : "", one.runs, context);
    result.cases.push_back({one, timing, operations_of(one, config)});
    // Again after every case: other work on the machine may have held the first measurement down.
    result.ceiling = highest(result.ceiling, measure_ceiling(context, size));
  }
  return result;
}

Json to_json(const Benchmark& benchmark) {
  const Ceiling& ceiling = benchmark.ceiling;
  Json cases = Json::array();
  for (const TimedCase& timed : benchmark.cases) {
    const bool counted = timed.operations > 0.0;
    const auto if_counted = [&](double value) { return counted ? Json(value) : Json(); };
    cases.push_back({{"case", timed.one.name},
                     {"seconds", timed.timing.seconds},
                     {"tokens_per_s", if_counted(timed.tokens_per_second())},
                     {"gflops", if_counted(timed.gflops())},
                     {"share_of_ceiling", if_counted(timed.gflops() / ceiling.matrix_gflops)},
                     {"memory_bytes", timed.timing.memory},
                     {"runs", timed.one.runs}});
  }
  const DeviceInfo& cpu = benchmark.cpu;
  const std::optional<DeviceInfo>& gpu = benchmark.gpu;
  return {{"build", build_description()},
          {"machine",
           {{"cpu", cpu.name},
            {"cores", cpu.cores},
            {"instructions", cpu.instructions},
            {"memory_bytes", cpu.memory_bytes},
            {"gpu", gpu ? Json(gpu->name) : Json()},
            {"gpu_memory_bytes", gpu ? Json(gpu->memory_bytes) : Json()}}},
          {"precision", name_of(benchmark.placement.precision)},
          {"model",
           {{"family", benchmark.config.family},
            {"layers", benchmark.config.layers},
            {"heads", benchmark.config.heads},
            {"width", benchmark.config.width},
            {"vocabulary", benchmark.config.vocabulary},
            {"parameters", benchmark.parameters}}},
          {"ceiling",
           {{"matrix_gflops", ceiling.matrix_gflops},
            {"matrix_size", ceiling.matrix_size},
            {"multiply_add_gflops", ceiling.multiply_add_gflops},
            {"read_gb_per_s", ceiling.read_gbs}}},
          {"cases", cases}};
}

}  // namespace filigree::study
