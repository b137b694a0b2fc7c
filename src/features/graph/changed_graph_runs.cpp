#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "filigree/trace.h"

namespace filigree {
namespace {

bool holds(RunMode mode, const std::string& tap) {
  if (mode == RunMode::kFree) return false;
  return mode == RunMode::kConstrained || tap.ends_with("hook_pattern");
}

}  // namespace

ChangedRuns::ChangedRuns(const Model& model, const FrozenModel& frozen,
                         const FeatureDictionary& features)
    : model_(model), frozen_(frozen), features_(features) {
  Taps taps;
  const BranchNorms norms = model.config().branch_norms;
  taps.observe("blocks.*.attn.hook_pattern");
  if (norms != BranchNorms::kAfter)
    for (const char* name : {"blocks.*.ln1.hook_scale", "blocks.*.ln2.hook_scale"})
      taps.observe(name);
  if (norms != BranchNorms::kBefore) taps.observe("blocks.*.ln1_post.hook_scale");
  taps.observe("ln_final.hook_scale");
  taps.observe("blocks.*." + features.hooks().output);
  model.forward(Tensor::from_ids({1, frozen.positions}, frozen.ids), {.taps = &taps});
  for (const std::string& name : taps.passed()) clean_.emplace_back(name, taps.value(name));
}

Tensor ChangedRuns::logits(const RunChanges& changes, RunMode mode) const {
  const std::int64_t L = frozen_.depth(), n = frozen_.positions, width = frozen_.width;
  std::vector<Tensor> added(static_cast<std::size_t>(L));
  for (const FeatureChange& change : changes.features) {
    require(change.position >= 0 && change.position < n, "trace: there is no position {}",
            change.position);
    require(change.feature.layer >= 0 && change.feature.layer < L, "trace: there is no layer {}",
            change.feature.layer);
    const auto feature = static_cast<std::int32_t>(change.feature.feature);
    const FeatureRows rows = features_.rows(change.feature.layer, std::span(&feature, 1));
    for (std::int64_t r = 0; r < features_.shape().reach(change.feature.layer); ++r) {
      Tensor& to = added[static_cast<std::size_t>(change.feature.layer + r)];
      if (!to.defined()) to = Tensor::zeros({1, n, width});
      for (std::int64_t c = 0; c < width; ++c)
        to.mutable_f32()[change.position * width + c] +=
            static_cast<float>((change.value - change.activation) *
                               static_cast<double>(rows.decoder.f32()[r * width + c]));
    }
  }
  Taps taps;
  for (const auto& [name, value] : clean_)
    if (holds(mode, name)) {
      const Tensor clean = value;
      taps.intervene(name, [clean](const Variable&) { return Variable(clean); });
    }
  for (const HeadChange& change : changes.heads) {
    require(change.head.layer >= 0 && change.head.layer < L && change.head.head >= 0 &&
                change.head.head < frozen_.heads,
            "trace: there is no head {}", head_name(change.head));
    Tensor factors = Tensor::full({1, frozen_.heads, n, n}, 1.0f);
    std::fill_n(factors.mutable_f32() + change.head.head * n * n, n * n,
                static_cast<float>(change.factor));
    taps.intervene(fmt::format("blocks.{}.attn.hook_pattern", change.head.layer),
                   [factors](const Variable& x) { return mul(x, Variable(factors)); });
  }
  for (std::int64_t l = 0; l < L; ++l) {
    const Tensor write = added[static_cast<std::size_t>(l)];
    if (write.defined())
      taps.intervene(features_.hooks().output_of(l),
                     [write](const Variable& x) { return add(x, Variable(write)); });
  }
  const Variable all =
      model_.forward(Tensor::from_ids({1, n}, frozen_.ids),
                     {.taps = &taps, .precise_logits = true, .uncapped_logits = true});
  const std::int64_t vocabulary = all.size(2);
  return all.value().reshape({n, vocabulary}).rows(n - 1, n).clone().reshape({vocabulary});
}

double ChangedRuns::value(const GraphTarget& target, const Tensor& logits) const {
  require(target.of_layer < 0, "trace: the effect on a feature is not measured, only on logits");
  const auto values = logits.values();
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  const auto at = [&](std::int64_t token) {
    return static_cast<double>(values[static_cast<std::size_t>(token)]);
  };
  return at(target.node.feature) - (target.against < 0 ? mean : at(target.against));
}

PredictedEffects predicted_ablations(const AttributionGraph& graph, std::int64_t target) {
  PredictedEffects effects;
  const float* row = graph.row(graph.features + target);
  effects.direct.assign(row, row + graph.features);
  effects.total = effects.direct;
  // From the last layer down, what each feature brings is known before it is passed on: a feature
  // that loses a share of its activation loses that share of its effect.
  for (std::int64_t f = graph.features - 1; f >= 0; --f) {
    const double activation = graph.nodes[static_cast<std::size_t>(f)].activation;
    if (activation == 0.0) continue;
    const double each = effects.total[static_cast<std::size_t>(f)] / activation;
    for (std::int64_t s = 0; s < f; ++s)
      effects.total[static_cast<std::size_t>(s)] += each * static_cast<double>(graph.row(f)[s]);
  }
  for (double& x : effects.direct) x = -x;
  for (double& x : effects.total) x = -x;
  return effects;
}

}  // namespace filigree
