#include "train/language_modelling.h"

#include "ops/output_loss/output_loss.h"

namespace filigree {

Variable LanguageModelling::loss(const Batch& batch, std::int64_t /*micro_step*/,
                                 Metrics& metrics) {
  Variable loss =
      output_loss(model_.final_hidden(batch.ids), model_.output_layer(), batch.targets).loss;
  metrics = {{"loss", static_cast<double>(loss.value().item())}};
  return loss;
}

}  // namespace filigree
