#include "train/language_modelling.h"

#include "ops/cross_entropy/cross_entropy.h"

namespace filigree {

Variable LanguageModelling::loss(const Batch& batch, std::int64_t /*micro_step*/,
                                 Metrics& metrics) {
  Variable loss =
      cross_entropy(model_.forward(batch.ids, {.logits_on_device = true}), batch.targets);
  metrics = {{"loss", static_cast<double>(loss.value().item())}};
  return loss;
}

}  // namespace filigree
