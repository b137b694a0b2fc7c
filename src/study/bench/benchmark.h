// How fast this machine does the work, against its own limits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "filigree/device.h"
#include "filigree/study.h"
#include "filigree/training_study.h"
#include "study/bench/bench_cases.h"
#include "study/bench/ceiling.h"

namespace filigree::study {

struct BenchRequest {
  ModelShape shape;
  std::string config;  // a model or config.json in place of the shape (named_config); empty: none
  // Empty: all of the device but those of more tokens than the model's context.
  std::vector<std::string> cases;
  int runs = 0;                   // timed runs of each case; 0: as many as the case says
  std::int64_t ceiling_size = 0;  // 0: what the device needs to show what it can
  std::string scratch;            // where a model is saved; empty: the system's temporary folder
};

struct TimedCase {
  BenchCase one;
  BenchTiming timing;
  double operations = 0.0;  // 0 where none are counted

  double tokens_per_second() const;
  double gflops() const;
};

struct Benchmark {
  ModelConfig config;
  std::int64_t parameters = 0;
  Placement placement;
  DeviceInfo cpu;
  std::optional<DeviceInfo> gpu;  // when the work was done there
  Ceiling ceiling;
  std::vector<TimedCase> cases;
};

// The cases of every device.
std::vector<std::string> bench_case_names();

// Throws RequestError for a case that the device does not have.
Benchmark run(const BenchRequest& request, Models models, const Context& context);

Json to_json(const Benchmark& benchmark);

}  // namespace filigree::study
