// What can be said about a model folder from its headers alone: no weights are read, so this is
// instant for a model of any size.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "filigree/model/config.h"
#include "filigree/text/added_tokens.h"

namespace filigree::cli {

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

struct ModelSummary {
  std::string folder;
  ModelConfig config;
  std::vector<ModelPart> parts;
  std::int64_t parameters = 0;
  std::string stored_as;  // "f32", or several types, the one with most bytes first
  std::vector<std::filesystem::path> files;
  std::uint64_t file_bytes = 0;
  TokenizerSummary tokenizer;
  nlohmann::json gate;  // the "gate" section of config.json, or null
};

// Throws Error when the configuration or the weights' headers are such that the model cannot be
// loaded.
ModelSummary summarize_model(const std::filesystem::path& folder);

}  // namespace filigree::cli
