// A byte-level BPE tokenizer from text files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "study/context.h"
#include "study/json.h"

namespace filigree::study {

struct TokenizerTrainingRequest {
  std::vector<std::filesystem::path> texts = {};  // UTF-8
  std::int64_t vocabulary = 8192;
  std::int64_t min_frequency = 2;  // pairs that occur less often are not joined
  std::int64_t max_digits = 0;     // in a token; 0: any number
  std::filesystem::path out = {};
  bool force = false;  // replaces a tokenizer that is there
};

struct TrainedTokenizer {
  std::filesystem::path out = {};
  std::size_t vocabulary = 0;  // smaller than asked for when the texts gave no more
  std::uint64_t bytes = 0;     // of text
  double seconds = 0.0;
};

// Throws Error when the folder has a tokenizer already, unless forced.
TrainedTokenizer train_tokenizer(const TokenizerTrainingRequest& request, const Context& context);

Json to_json(const TrainedTokenizer& trained);

}  // namespace filigree::study
