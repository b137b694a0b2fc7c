#include <fmt/format.h>

#include <algorithm>

#include "filigree/device.h"
#include "filigree/error.h"
#include "filigree/model.h"
#include "filigree/names.h"
#include "filigree/training_study.h"
#include "ops/output_loss/output_loss.h"

namespace filigree::study {
namespace {

constexpr std::uint64_t kF32 = 4, kBf16 = 2;
constexpr std::int64_t kUsualRank = 16;
constexpr int kUsualProcesses = 8;

std::uint64_t count(std::int64_t value) { return static_cast<std::uint64_t>(value); }

// The sizes that activations come in, in numbers a token.
struct Widths {
  std::uint64_t stream, queries, keys, hidden;
  explicit Widths(const ModelConfig& config)
      : stream(count(config.width)),
        queries(count(config.heads * config.head_width)),
        keys(count(config.key_heads * config.head_width)),
        hidden(count(config.hidden_width())) {}
};

// What the tape keeps of a block: the result of every operation.
std::uint64_t kept_by_block(const ModelConfig& config, std::int64_t lora_rank) {
  const Widths w(config);
  const bool before = config.branch_norms != BranchNorms::kAfter;
  const bool after = config.branch_norms != BranchNorms::kBefore;
  // What attention and MLP wrote, and the stream after each.
  std::uint64_t kept = 4 * w.stream;
  if (before) kept += 2 * w.stream;
  if (after) kept += 2 * w.stream;
  kept += 2 * w.queries + 2 * w.keys;  // q, k, v and what the heads mixed
  if (config.clip_qkv > 0.0f) kept += w.queries + 2 * w.keys;
  if (config.query_key_norm != QueryKeyNorm::kNone) kept += w.queries + w.keys;
  if (config.positions == PositionKind::kRotary) kept += w.queries + w.keys;
  kept += (config.gated_mlp() ? 3 : 2) * w.hidden;
  return kept + 4 * count(lora_rank);
}

// Gradients that a block's backward pass has at a time beyond what it has let go: those of the
// stream, and those inside the MLP or the attention. A plain MLP's take the place of its values.
std::uint64_t gradients_of_block(const ModelConfig& config) {
  const Widths w(config);
  const bool gated = config.gated_mlp();
  const std::uint64_t in_attention = 2 * w.queries + 2 * w.keys;
  const std::uint64_t let_go = (gated ? 3 : 2) * w.hidden;
  return 2 * w.stream +
         std::max(gated ? 2 * w.hidden : 0, in_attention > let_go ? in_attention - let_go : 0);
}

std::int64_t adapter_parameters(const ModelConfig& config, std::int64_t rank) {
  const std::int64_t queries = config.heads * config.head_width;
  const std::int64_t keys = config.key_heads * config.head_width;
  return config.layers * rank * (2 * (config.width + queries) + 2 * (config.width + keys));
}

}  // namespace

WeightBytes weight_bytes(const Placement& placement) {
  // A rounded copy lies beside the f32 values where activations are bf16.
  const std::uint64_t both = kF32 + (placement.precision == DType::kBf16 ? kBf16 : 0);
  // Nothing trains those under adapters, which are rounded for good (model/rounded_weights.h).
  const std::uint64_t one = placement.precision == DType::kBf16 ? kBf16 : kF32;
  return {.trained = both, .frozen = both, .under_adapters = one};
}

TrainingMemory training_memory(const TrainingSetup& setup) {
  const ModelConfig& config = setup.config;
  const WeightBytes bytes = weight_bytes(setup.placement);
  const std::uint64_t number = setup.placement.precision == DType::kBf16 ? kBf16 : kF32;
  const std::uint64_t tokens = count(setup.batch) * count(setup.length);
  const std::uint64_t all = count(parameter_count(config));
  const bool adapted = setup.lora_rank > 0;
  const std::uint64_t trained = adapted ? count(adapter_parameters(config, setup.lora_rank)) : all;

  TrainingMemory memory;
  const std::uint64_t frozen = adapted ? bytes.under_adapters : bytes.frozen;
  memory.weights = bytes.trained * trained + (adapted ? frozen * all : 0);
  memory.gradients = kF32 * trained;
  memory.optimizer = 2 * kF32 * trained;
  if (setup.shard_optimizer) memory.optimizer /= count(std::max(setup.processes, 1));

  const Widths w(config);
  const std::uint64_t block = kept_by_block(config, setup.lora_rank);
  const std::uint64_t layers = count(config.layers);
  // The embeddings and the final norm beside the blocks; recomputed, the stream before each block
  // and one block.
  const std::uint64_t streams =
      2 * w.stream + (setup.recompute ? layers * w.stream : layers * block);
  const std::uint64_t again = setup.recompute ? number * tokens * block : 0;
  memory.activations = number * tokens * streams + again;
  const std::uint64_t logits = count(output_loss_bytes(
      setup.batch * setup.length, config.vocabulary, setup.placement.precision,
      setup.placement.device, setup.teacher.has_value(), config.logit_soft_cap > 0.0f));
  // The loss leaves the gradients of its input and of the output layer's weight.
  const std::uint64_t of_loss =
      number * tokens * w.stream + (adapted ? 0 : kF32 * w.stream * count(config.vocabulary));
  const std::uint64_t in_blocks = number * tokens * gradients_of_block(config);
  // No block is recomputed while there are logits.
  memory.workspace = std::max(logits, in_blocks + again) - again + of_loss;

  if (setup.teacher) {
    if (!(adapted && setup.own_teacher))
      memory.teacher += frozen * count(parameter_count(*setup.teacher));
    memory.activations += number * tokens * count(setup.teacher->width);  // what its output reads
  }
  memory.teacher += frozen * all * count(setup.idle_models);

  const std::uint64_t at_loss = memory.activations + memory.workspace;
  const std::uint64_t at_end = memory.gradients + number * tokens * (block + 2 * w.stream);
  const std::uint64_t step =
      setup.accumulates ? memory.gradients + at_loss : std::max(at_loss, at_end);
  memory.total = memory.weights + memory.optimizer + memory.teacher + step;
  return memory;
}

Json to_json(const TrainingMemory& memory) {
  return {{"weights", memory.weights},
          {"gradients", memory.gradients},
          {"optimizer", memory.optimizer},
          {"activations", memory.activations},
          {"workspace", memory.workspace},
          {"teacher", memory.teacher > 0 ? Json(memory.teacher) : Json()},
          {"total", memory.total}};
}

std::string memory_text(const TrainingMemory& memory) {
  std::string text =
      fmt::format("about {}: {} weights, {} gradients, {} optimiser, {} activations, {} workspace",
                  human_bytes(memory.total), human_bytes(memory.weights),
                  human_bytes(memory.gradients), human_bytes(memory.optimizer),
                  human_bytes(memory.activations), human_bytes(memory.workspace));
  if (memory.teacher > 0) text += fmt::format(", {} teacher", human_bytes(memory.teacher));
  return text;
}

std::vector<MemorySaving> memory_savings(const TrainingSetup& setup) {
  const std::uint64_t now = training_memory(setup).total;
  std::vector<MemorySaving> savings;
  TrainingSetup together = setup;
  const auto consider = [&](const std::string& option, const auto& change) {
    TrainingSetup changed = setup;
    change(changed);
    const std::uint64_t total = training_memory(changed).total;
    if (total >= now) return;
    change(together);
    savings.push_back({option, total});
  };
  if (setup.placement.device == DeviceKind::kCuda && setup.placement.precision == DType::kF32)
    consider("--precision bf16", [](TrainingSetup& to) { to.placement.precision = DType::kBf16; });
  if (!setup.recompute) consider("--recompute", [](TrainingSetup& to) { to.recompute = true; });
  if (setup.batch > 1)
    consider(fmt::format("--batch {}", setup.processes), [](TrainingSetup& to) { to.batch = 1; });
  if (!setup.shard_optimizer)
    consider(setup.processes > 1
                 ? std::string("--set shard-optimizer=true")
                 : fmt::format("--set shard-optimizer=true on {} devices with mpirun -n {}",
                               kUsualProcesses, kUsualProcesses),
             [](TrainingSetup& to) {
               if (to.processes == 1) to.processes = kUsualProcesses;
               to.shard_optimizer = true;
             });
  if (setup.adapters_possible && setup.lora_rank == 0)
    consider(fmt::format("--lora-rank {}", kUsualRank),
             [](TrainingSetup& to) { to.lora_rank = kUsualRank; });
  if (savings.size() > 1)
    savings.push_back({"all of these together", training_memory(together).total});
  return savings;
}

std::uint64_t memory_of_process(DeviceKind device, int processes_on_machine) {
  for (const DeviceInfo& info : list_devices())
    if (info.kind == device)
      return device == DeviceKind::kCpu
                 ? info.memory_bytes / count(std::max(processes_on_machine, 1))
                 : info.memory_bytes;
  return 0;
}

void require_memory(const TrainingSetup& setup, std::uint64_t there) {
  const TrainingMemory memory = training_memory(setup);
  if (there == 0 || memory.total <= there) return;
  std::string help;
  for (const MemorySaving& saving : memory_savings(setup))
    help += fmt::format("{}{} ({}{})", help.empty() ? "" : ", ", saving.option,
                        human_bytes(saving.total), saving.total <= there ? ", which fits" : "");
  fail("the run needs {}; {} has {}. What would help, and what is needed then: {}",
       memory_text(memory), setup.placement.device == DeviceKind::kCpu ? "this process" : "the GPU",
       human_bytes(there), help.empty() ? std::string("a smaller model or shorter windows") : help);
}

}  // namespace filigree::study
