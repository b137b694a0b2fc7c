// What can be said about a model folder from its headers alone: no weights are read, so this is
// instant for a model of any size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/config.h"
#include "study/evaluation/heads_alive.h"
#include "study/json.h"
#include "study/models/memory_estimate.h"
#include "study/models/training_memory.h"
#include "text/added_tokens.h"

namespace filigree::study {

// Parameters of the same role, of all blocks together.
struct ModelPart {
  std::string name;          // as the checkpoint calls it: "wte", "attn", "mlp"
  std::int64_t repeats = 1;  // blocks that have it
  std::int64_t parameters = 0;
};

struct TokenizerSummary {
  bool present = false;
  std::string problem;  // why it could not be read
  std::string kind;
  std::int64_t tokens = 0;
  std::vector<AddedToken> special;
};

struct SummaryRequest {
  std::string model = {};  // folder or name
  // Of the texts whose memory is estimated.
  std::int64_t batch = 1;
  std::int64_t length = 0;  // 0: the model's context
};

// A run that the model could be trained in, with its memory on one kind of device.
struct TrainingVariant {
  std::string command;  // with its options: "sparsify --recompute"
  Placement placement;
  std::uint64_t there = 0;  // memory of the device; 0: unknown
  TrainingMemory memory;

  bool fits() const { return there == 0 || memory.total <= there; }
};

struct ModelSummary {
  std::string folder;
  ModelConfig config;
  std::vector<ModelPart> parts;
  std::int64_t parameters = 0;
  std::string stored_as;  // "f32", or several types, the one with most bytes first
  std::vector<std::filesystem::path> files;
  std::uint64_t file_bytes = 0;
  TokenizerSummary tokenizer;
  MemoryEstimate memory;
  std::vector<TrainingVariant> training;  // on each kind of device of this machine
};

// Throws Error when the configuration or the weights' headers are such that the model cannot be
// loaded.
ModelSummary summarize_model(const SummaryRequest& request);

// With the heads that ever open, where they were looked for (find_living_heads): null otherwise.
Json to_json(const ModelSummary& summary, const std::optional<HeadsAlive>& alive = {});

// Whether reading and running the model for that takes moments: a gated one of at most 200 million
// parameters with a tokenizer.
bool living_heads_are_cheap(const ModelSummary& summary);

// The tokenizer of a folder, whatever else is there.
TokenizerSummary summarize_tokenizer(const std::filesystem::path& folder);

}  // namespace filigree::study
