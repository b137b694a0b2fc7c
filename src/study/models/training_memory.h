// Memory of a training run, told from its settings alone: nothing is loaded and nothing allocated.
//
// The numbers are those of tensors (pool_statistics). Tests hold the total to within 15 % of what
// small runs take at their peak; what the driver, the libraries and the pool's blocks of odd sizes
// take comes on top.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/placement.h"
#include "study/json.h"

namespace filigree::study {

// Bytes that a parameter takes. This is the one place that knows how weights are kept.
struct WeightBytes {
  std::uint64_t trained = 0;
  std::uint64_t frozen = 0;          // of teachers
  std::uint64_t under_adapters = 0;  // of all models of a run that trains adapters
};
WeightBytes weight_bytes(const Placement& placement);

// What decides the memory of a run, for one of its processes.
struct TrainingSetup {
  ModelConfig config;
  std::optional<ModelConfig> teacher = {};  // a frozen model that runs along
  // The teacher is the model as it was: under adapters they have one set of weights.
  bool own_teacher = false;
  std::int64_t idle_models = 0;  // frozen ones of the same size that stay in memory meanwhile
  std::int64_t batch = 1;        // windows at a time, of this process
  std::int64_t length = 1;       // tokens a window
  bool accumulates = false;      // several batches a step
  std::int64_t lora_rank = 0;    // 0: all weights are trained
  bool adapters_possible = false;
  bool recompute = false;
  int processes = 1;
  bool shard_optimizer = false;
  Placement placement = {};
};

struct TrainingMemory {
  std::uint64_t weights = 0;      // of the model that is trained, with its adapters
  std::uint64_t gradients = 0;    // of what is trained
  std::uint64_t optimizer = 0;    // AdamW's moments, this process's share
  std::uint64_t activations = 0;  // kept for the backward pass
  std::uint64_t workspace = 0;    // logits at a time, and gradients of activations on their way
  std::uint64_t teacher = 0;      // weights of the teacher and of idle models
  // At the peak of a step. Without accumulation gradients come as activations go, so that this is
  // less than the sum.
  std::uint64_t total = 0;
};

TrainingMemory training_memory(const TrainingSetup& setup);

Json to_json(const TrainingMemory& memory);
// "about 3.1 GiB: 0.5 GiB weights, ..."
std::string memory_text(const TrainingMemory& memory);

// Something to change, and what the run then needs.
struct MemorySaving {
  std::string option;  // "--recompute"
  std::uint64_t total = 0;
};
// What would save memory in this run; the last is all of them together, where there are several.
std::vector<MemorySaving> memory_savings(const TrainingSetup& setup);

// Of the device that each process has for itself; 0: unknown. Processes of a machine share its
// CPU's.
std::uint64_t memory_of_process(DeviceKind device, int processes_on_machine);

// Throws Error, naming what would help, when the run needs more than there is (0: unknown).
void require_memory(const TrainingSetup& setup, std::uint64_t there);

}  // namespace filigree::study
