// Text files of any size to a folder of token shards for training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "study/context.h"
#include "study/json.h"
#include "text/token_shards.h"

namespace filigree::study {

struct PreparationRequest {
  std::vector<std::filesystem::path> texts = {};  // UTF-8, plain, .xz or .zst
  // The split "held-out": these texts, or a share of the documents of `texts`, 0.01 unless given.
  std::vector<std::filesystem::path> held_out_texts = {};
  std::optional<double> held_out_share = {};
  std::filesystem::path out = {};
  // Either the tokenizer of a folder or of a model by name, or one of so many tokens that is
  // trained on the texts.
  std::string tokenizer = {};
  std::int64_t vocabulary = 0;
  std::int64_t max_digits = 0;  // in a token of a trained tokenizer; 0: any number
  std::int64_t shard_tokens = std::int64_t{1} << 24;
  bool replace_invalid = false;  // reads invalid UTF-8 as U+FFFD
  bool force = false;            // replaces shards that are there
};

struct Preparation {
  std::filesystem::path out = {};
  ShardIndex index;
  double seconds = 0.0;  // of the encoding

  double megabytes_per_second() const;  // of text
};

Preparation prepare(const PreparationRequest& request, const Context& context);

Json to_json(const Preparation& preparation);

}  // namespace filigree::study
