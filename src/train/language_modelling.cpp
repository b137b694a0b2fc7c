#include "filigree/ops.h"
#include "filigree/train.h"
#include "ops/output_loss/output_loss.h"

namespace filigree {

LanguageModelling::LanguageModelling(Model& model, const HeadDropout& silent)
    : model_(model), silent_(silent) {
  silent.check();
}

Variable LanguageModelling::loss(const Batch& batch, std::int64_t micro_step, Communicator& ranks,
                                 Metrics& metrics) {
  Taps taps;
  const bool silence = silent_.share_at(micro_step) > 0.0;
  if (silence) silent_.apply(taps, batch, micro_step);
  const Variable hidden = model_.final_hidden(batch.ids, {.taps = silence ? &taps : nullptr});
  const Variable mean = output_loss(hidden, model_.output_layer(), batch.targets,
                                    {.soft_cap = model_.config().logit_soft_cap})
                            .loss;
  const auto targets = static_cast<double>(counted_targets(batch));
  double sums[] = {targets, targets * static_cast<double>(mean.value().item())};
  ranks.sum(sums);
  metrics = {{"loss", sums[1] / sums[0]}};
  return scale(mean, static_cast<float>(targets / sums[0]));
}

Settings LanguageModelling::settings() const {
  Settings settings = {{"task", "language-modelling"}};
  if (silent_.on()) {
    settings.add({"drop_heads", silent_.share});
    settings.add({"drop_heads_seed", silent_.seed});
    settings.add({"drop_heads_fade_from", silent_.fade_from});
    settings.add({"drop_heads_fade_to", silent_.fade_to});
  }
  return settings;
}

}  // namespace filigree
