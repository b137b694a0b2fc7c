#include "filigree/train/language_modelling.h"

#include "filigree/ops/elementwise/elementwise.h"
#include "filigree/ops/output_loss/output_loss.h"

namespace filigree {

Variable LanguageModelling::loss(const Batch& batch, std::int64_t /*micro_step*/,
                                 Communicator& ranks, Metrics& metrics) {
  const Variable mean =
      output_loss(model_.final_hidden(batch.ids), model_.output_layer(), batch.targets).loss;
  const auto targets = static_cast<double>(counted_targets(batch));
  double sums[] = {targets, targets * static_cast<double>(mean.value().item())};
  ranks.sum(sums);
  metrics = {{"loss", sums[1] / sums[0]}};
  return scale(mean, static_cast<float>(targets / sums[0]));
}

Settings LanguageModelling::settings() const { return {{"task", "language-modelling"}}; }

}  // namespace filigree
