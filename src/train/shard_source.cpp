#include "train/shard_source.h"

#include <utility>

#include "base/checksum.h"
#include "filigree/error.h"

namespace filigree {

ShardSource::ShardSource(TokenSplit split, const LoaderOptions& options)
    : split_(std::move(split)), options_(options), loader_(split_, options) {}

Batch ShardSource::next() {
  TokenBatch batch = loader_.next();
  return {std::move(batch.ids), std::move(batch.targets), options_.rank * options_.batch};
}

Settings ShardSource::settings() const {
  return {{"data", checksum_text(split_.fingerprint())},
          {"batch", options_.batch * options_.world_size},
          {"context", options_.length},
          {"seed", options_.seed}};
}

nlohmann::json ShardSource::state() const {
  return {{"epoch", loader_.state().epoch}, {"position", loader_.state().position}};
}

void ShardSource::restore(const nlohmann::json& state) {
  const auto number = [&](const char* key) {
    require(state.is_object() && state.contains(key) && state[key].is_number_unsigned(),
            "resume: the checkpoint's place in the data has no '{}'", key);
    return state[key].get<std::uint64_t>();
  };
  loader_ = ShardLoader(split_, options_, {number("epoch"), number("position")});
}

}  // namespace filigree
