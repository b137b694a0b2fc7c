#include "analyze/roles/name_copying.h"

#include <algorithm>

#include "filigree/lens.h"

namespace filigree {
namespace {

// The names of all probes, each once.
std::vector<TokenId> names_of(const std::vector<NameProbe>& probes) {
  std::vector<TokenId> names;
  for (const NameProbe& probe : probes)
    for (const std::int64_t place : {probe.receiver, probe.second})
      names.push_back(probe.prompt.ids[static_cast<std::size_t>(place)]);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

double median_rank(const std::vector<WrittenForToken>& written) {
  std::vector<double> ranks;
  for (const WrittenForToken& one : written) ranks.push_back(static_cast<double>(one.own_rank + 1));
  std::sort(ranks.begin(), ranks.end());
  const std::size_t middle = ranks.size() / 2;
  return ranks.size() % 2 == 1 ? ranks[middle] : 0.5 * (ranks[middle - 1] + ranks[middle]);
}

}  // namespace

void find_name_copying(const Model& model, const std::vector<NameProbe>& probes,
                       const std::vector<HeadId>& heads, std::vector<RoleScores>& scores,
                       const RoleThresholds& thresholds) {
  if (probes.empty()) return;
  const std::vector<TokenId> names = names_of(probes);
  std::optional<TokenInputs> inputs;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    if (scores[h][Pattern::kNameReader] < thresholds.names) continue;
    if (!inputs) inputs.emplace(model, TokenInput::kFirstMlp, names);
    const LayerWeights layer = model.weights().layers[static_cast<std::size_t>(heads[h].layer)];
    const HeadMatrices matrices =
        head_matrices(layer.norm, *layer.attention, heads[h].head, layer.attention_post_norm);
    const std::vector<WrittenForToken> written =
        written_for(model, inputs->of_layer(heads[h].layer), matrices, names);
    scores[h].set_copying(
        {median_rank(written), model.config().vocabulary, static_cast<std::int64_t>(names.size())},
        thresholds);
  }
}

}  // namespace filigree
