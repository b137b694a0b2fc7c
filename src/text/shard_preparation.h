// From text files to a folder of token shards: reads documents in order, encodes a block of them on
// all threads, and appends them in that order, each followed by the end-of-text token. What is
// written depends on the texts and the options alone, not on the number of threads. Memory: a block
// of text, its tokens, and one shard of each split.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "filigree/data.h"
#include "filigree/tokenizer.h"
#include "text/bpe_trainer.h"

namespace filigree {

struct PreparationProgress {
  std::uint64_t file_bytes = 0;  // of all files, as they lie on the disk
  std::uint64_t text_bytes = 0;  // unpacked
  std::uint64_t tokens = 0;      // 0 while a tokenizer is trained
};

// Called between blocks, from the calling thread; may throw to stop.
using PreparationReport = std::function<void(const PreparationProgress&)>;

struct PreparationOptions {
  std::vector<std::filesystem::path> texts;
  // Their documents make the split "held-out". Without them it gets the share `held_out_share` of
  // the documents of `texts`, chosen by their contents: equal documents are never on both sides.
  std::vector<std::filesystem::path> held_out_texts;
  double held_out_share = 0.01;
  std::uint64_t shard_tokens = std::uint64_t{1} << 24;
  std::uint64_t seed = 0;  // of the choice
  bool replace_invalid_utf8 = false;
};

// Throws Error for a tokenizer without an end-of-text token, for texts that are empty or broken,
// and when the folder cannot be written; it then has no index. The tokenizer is saved beside the
// shards.
ShardIndex prepare_shards(const PreparationOptions& options, const Tokenizer& tokenizer,
                          const std::filesystem::path& folder,
                          const PreparationReport& report = {});

// Trains on all of `options.texts`; the held-out texts are left out.
Tokenizer train_tokenizer_for(const PreparationOptions& options, BpeTrainingOptions training,
                              const PreparationReport& report = {});

}  // namespace filigree
