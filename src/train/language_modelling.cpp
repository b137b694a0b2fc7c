#include "train/language_modelling.h"

#include "ops/cross_entropy/cross_entropy.h"
#include "ops/elementwise/elementwise.h"

namespace filigree {

Variable LanguageModelling::loss(const Batch& batch, std::int64_t /*micro_step*/,
                                 Communicator& ranks, Metrics& metrics) {
  const Variable mean =
      cross_entropy(model_.forward(batch.ids, {.logits_on_device = true}), batch.targets);
  const auto targets = static_cast<double>(counted_targets(batch));
  double sums[] = {targets, targets * static_cast<double>(mean.value().item())};
  ranks.sum(sums);
  metrics = {{"loss", sums[1] / sums[0]}};
  return scale(mean, static_cast<float>(targets / sums[0]));
}

}  // namespace filigree
