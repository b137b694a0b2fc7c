// Token shards as runs are given them: opened, checked in full, and checked against a model.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "model/config.h"
#include "text/token_shards.h"

namespace filigree::study {

struct TrainingData {
  std::filesystem::path folder;  // holds the tokenizer too
  ShardIndex index;
  TokenSplit train;
  std::optional<TokenSplit> held_out;
};

// The split "train" of `shards`, and the split "held-out" of `held_out` or, when that is empty, of
// `shards` if it has tokens there. Throws Error for damaged shards and for two folders that were
// made with different tokenizers.
TrainingData open_training_data(const std::string& shards, const std::string& held_out);

// Throws Error unless the tokens mean the same to the model in `folder`: its tokenizer, where it
// has one, must be the one that made the shards, and its vocabulary must hold every id.
void check_shards_fit(const ShardIndex& index, const std::string& shards,
                      const std::filesystem::path& folder, const ModelConfig& config);

// Copies the files of a tokenizer.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace filigree::study
