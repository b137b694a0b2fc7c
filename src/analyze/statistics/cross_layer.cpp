#include "analyze/statistics/cross_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "filigree/autograd.h"
#include "filigree/lens.h"
#include "filigree/ops.h"

namespace filigree {
namespace {

constexpr std::size_t kMostPositions = 32;

std::vector<std::int64_t> positions_of(std::size_t length) {
  const std::size_t count = std::min(length, kMostPositions);
  std::vector<std::int64_t> positions;
  for (std::size_t i = 0; i < count; ++i)
    positions.push_back(static_cast<std::int64_t>(count == 1 ? 0 : i * (length - 1) / (count - 1)));
  return positions;
}

// What a run shows of one layer at the chosen positions.
struct LayerRun {
  std::vector<float> stream = {};      // [positions, d], before the layer
  std::vector<float> scale = {};       // of the norm before the attention; empty: there is none
  std::vector<float> post_scale = {};  // of the norm behind it; empty: there is none
};

// Rows of some positions of a tap [1, T, ...], as they lie.
std::vector<float> rows_of(const Tensor& tap, const std::vector<std::int64_t>& positions) {
  const Tensor values = tap.on_host();
  const std::int64_t width = values.elements() / values.size(1);
  std::vector<float> rows;
  for (const std::int64_t t : positions)
    rows.insert(rows.end(), values.f32() + t * width, values.f32() + (t + 1) * width);
  return rows;
}

class Reader {
 public:
  Reader(const Model& model, const Prompt& prompt, AppliedInterventions* interventions)
      : d_(model.config().width),
        H_(model.config().heads),
        positions_(positions_of(prompt.ids.size())),
        layers_(static_cast<std::size_t>(model.config().layers)),
        written_(Tensor::zeros({model.config().layers * H_, positions() * d_})) {
    Taps taps;
    if (interventions != nullptr) interventions->put_on(taps);
    for (std::size_t l = 0; l < layers_.size(); ++l) watch(model, l, taps);
    const NoGrad no_grad;
    model.forward(Tensor::from_ids({1, static_cast<std::int64_t>(prompt.ids.size())}, prompt.ids),
                  {.taps = &taps});
    for (std::size_t l = 0; l < layers_.size(); ++l) put_norm_behind(model, l);
  }

  // Of some heads of one layer.
  std::vector<ReadsOfHeads> reads(std::int64_t layer,
                                  const std::vector<const HeadMatrices*>& heads) const {
    std::vector<ReadsOfHeads> found(heads.size());
    if (layer == 0) return found;
    const LayerRun& here = layers_[static_cast<std::size_t>(layer)];
    const std::int64_t P = positions(), earlier = layer * H_;
    const Tensor stream = Tensor::from({P, d_}, here.stream);
    // r W . x W is r . (x W W^T): one product of vectors a writer, of all of them together here.
    Tensor back = Tensor::empty({static_cast<std::int64_t>(3 * heads.size()), P * d_});
    std::vector<double> whole;
    for (std::size_t h = 0; h < heads.size(); ++h)
      for (const Tensor* w : {&heads[h]->q, &heads[h]->k, &heads[h]->v}) {
        const Tensor read = matmul(stream, *w).value();
        const Tensor through = matmul(read, *w, {.transpose_b = true}).value();
        float* row = back.mutable_f32() + static_cast<std::int64_t>(whole.size()) * P * d_;
        double sum = 0;
        for (std::int64_t p = 0; p < P; ++p) {
          const double scale = here.scale.empty()
                                   ? 1.0
                                   : static_cast<double>(here.scale[static_cast<std::size_t>(p)]);
          const std::int64_t D = w->size(1);
          for (std::int64_t i = 0; i < D; ++i) {
            const auto value = static_cast<double>(read.f32()[p * D + i]) / scale;
            sum += value * value;
          }
          const auto factor = static_cast<float>(1.0 / (scale * scale));
          for (std::int64_t i = 0; i < d_; ++i)
            row[p * d_ + i] = factor * through.f32()[p * d_ + i];
        }
        whole.push_back(sum);
      }
    const Tensor parts = matmul(back, written_.rows(0, earlier), {.transpose_b = true}).value();
    for (std::size_t h = 0; h < heads.size(); ++h)
      for (std::size_t kind = 0; kind < 3; ++kind) {
        const std::size_t row = 3 * h + kind;
        for (std::int64_t a = 0; a < earlier; ++a)
          found[h].shares[kind].push_back(
              whole[row] > 0
                  ? static_cast<double>(parts.f32()[static_cast<std::int64_t>(row) * earlier + a]) /
                        whole[row]
                  : 0.0);
      }
    return found;
  }

 private:
  std::int64_t positions() const { return static_cast<std::int64_t>(positions_.size()); }

  // What head h of a layer wrote at a position.
  float* written(std::size_t l, std::int64_t h, std::int64_t p) {
    return written_.mutable_f32() +
           ((static_cast<std::int64_t>(l) * H_ + h) * positions() + p) * d_;
  }

  void watch(const Model& model, std::size_t l, Taps& taps) {
    LayerRun& layer = layers_[l];
    const auto keep = [&](const char* tap, std::vector<float>& rows) {
      taps.watch(fmt::format("blocks.{}.{}", l, tap),
                 [this, &rows](std::string_view, const Tensor& value) {
                   rows = rows_of(value, positions_);
                 });
    };
    keep("hook_resid_pre", layer.stream);
    if (model.weights().layers[l].norm.on()) keep("ln1.hook_scale", layer.scale);
    if (model.weights().layers[l].attention_post_norm.on())
      keep("ln1_post.hook_scale", layer.post_scale);
    taps.watch(fmt::format("blocks.{}.attn.hook_result", l),
               [this, l](std::string_view, const Tensor& value) {
                 const std::vector<float> rows = rows_of(value, positions_);  // [positions, H, d]
                 for (std::int64_t p = 0; p < positions(); ++p)
                   for (std::int64_t h = 0; h < H_; ++h)
                     std::copy_n(rows.data() + (p * H_ + h) * d_, d_, written(l, h, p));
               });
  }

  // A norm behind the attention lets through each head's part by its gain over the scale.
  void put_norm_behind(const Model& model, std::size_t l) {
    if (layers_[l].post_scale.empty()) return;
    const Tensor gain = model.weights().layers[l].attention_post_norm.gain().value().on_host();
    for (std::int64_t h = 0; h < H_; ++h)
      for (std::int64_t p = 0; p < positions(); ++p)
        for (std::int64_t i = 0; i < d_; ++i)
          written(l, h, p)[i] *= gain.f32()[i] / layers_[l].post_scale[static_cast<std::size_t>(p)];
  }

  std::int64_t d_, H_;
  std::vector<std::int64_t> positions_;
  std::vector<LayerRun> layers_;
  Tensor written_;  // [layer and head, position and d], into the stream
};

}  // namespace

std::array<double, 3> ReadsOfHeads::whole() const {
  std::array<double, 3> sums = {};
  for (std::size_t kind = 0; kind < 3; ++kind)
    sums[kind] = std::accumulate(shares[kind].begin(), shares[kind].end(), 0.0);
  return sums;
}

std::array<double, 3> ReadsOfHeads::pairs() const {
  std::array<double, 3> counts = {};
  for (std::size_t kind = 0; kind < 3; ++kind)
    counts[kind] = static_cast<double>(
        std::count_if(shares[kind].begin(), shares[kind].end(),
                      [](double share) { return std::abs(share) >= kInteraction; }));
  return counts;
}

void find_cross_layer_reads(
    const Model& model, std::span<const Prompt> prompts, const std::vector<HeadId>& heads,
    AppliedInterventions* interventions,
    const std::function<void(std::size_t, std::size_t, const ReadsOfHeads&)>& found) {
  const std::vector<HeadMatrices> matrices = all_head_matrices(model);
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    const Reader run(model, prompts[p], interventions);
    for (std::size_t begin = 0, end = 0; begin < heads.size(); begin = end) {
      std::vector<const HeadMatrices*> of_layer;
      for (; end < heads.size() && heads[end].layer == heads[begin].layer; ++end)
        of_layer.push_back(&matrices[static_cast<std::size_t>(
            heads[end].layer * model.config().heads + heads[end].head)]);
      const std::vector<ReadsOfHeads> reads = run.reads(heads[begin].layer, of_layer);
      for (std::size_t h = begin; h < end; ++h) found(p, h, reads[h - begin]);
    }
  }
}

}  // namespace filigree
