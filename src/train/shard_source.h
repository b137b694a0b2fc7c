// Batches for training from a split of token shards, shuffled reproducibly.
#pragma once

#include "filigree/data.h"
#include "filigree/train.h"

namespace filigree {

class ShardSource : public BatchSource {
 public:
  // Throws Error when the split has no window of this length.
  ShardSource(TokenSplit split, const LoaderOptions& options);

  Batch next() override;
  Settings settings() const override;
  nlohmann::json state() const override;
  // Throws Error for a state that cannot be one of this split.
  void restore(const nlohmann::json& state) override;

 private:
  TokenSplit split_;
  LoaderOptions options_;
  ShardLoader loader_;
};

}  // namespace filigree
