#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "features/replacement.h"
#include "filigree/error.h"
#include "filigree/evaluation.h"
#include "filigree/features.h"
#include "filigree/ops.h"
#include "filigree/runtime.h"

namespace filigree {
namespace {

constexpr int kDecades = 6;

// What the plain runs read and write, and what features make of it.
class Reconstruction {
 public:
  explicit Reconstruction(const FeatureDictionary& dictionary) : dictionary_(dictionary) {
    const TranscoderShape& shape = dictionary.shape();
    const auto layers = static_cast<std::size_t>(shape.layers);
    const auto width = static_cast<std::size_t>(shape.width);
    sums_.assign(layers, std::vector<double>(width, 0.0));
    squares_.assign(layers, 0.0);
    left_.assign(layers, 0.0);
    active_.assign(layers, std::vector<std::int64_t>(static_cast<std::size_t>(shape.features), 0));
  }

  void add_to(Taps& taps) const {
    for (std::int64_t l = 0; l < dictionary_.shape().layers; ++l) {
      taps.observe(dictionary_.hooks().input_of(l));
      taps.observe(dictionary_.hooks().output_of(l));
    }
  }

  void observe(const Taps& taps) {
    const TranscoderShape& shape = dictionary_.shape();
    std::vector<Tensor> written(static_cast<std::size_t>(shape.layers));
    for (std::int64_t l = 0; l < shape.layers; ++l) {
      const Tensor x = behind_the_first(taps.value(dictionary_.hooks().input_of(l)));
      if (x.size(0) == 0) return;  // a window of one token
      const SparseCode code = dictionary_.encode(l, x);
      const std::span features(code.feature.i32(), static_cast<std::size_t>(code.entries()));
      for (const std::int32_t f : features)
        ++active_[static_cast<std::size_t>(l)][static_cast<std::size_t>(f)];
      const Tensor all = dictionary_.written(l, code);
      for (std::int64_t j = 0; j < shape.reach(l); ++j) {
        Tensor& to = written[static_cast<std::size_t>(l + j)];
        const Variable part(layer_rows(all, j));
        to = to.defined() ? add(Variable(to), part).value() : part.value().clone();
      }
      Tensor& own = written[static_cast<std::size_t>(l)];
      if (const Tensor skip = dictionary_.skip(l); skip.defined())
        own = add(Variable(own),
                  linear(Variable(x), {.weight = Variable(skip), .bias = {}, .out_in = true}))
                  .value();
      count(l, behind_the_first(taps.value(dictionary_.hooks().output_of(l))), own);
      if (l == 0) tokens_ += x.size(0);
    }
  }

  std::int64_t tokens() const { return tokens_; }

  std::vector<Tensor> means() const {
    std::vector<Tensor> means;
    for (const std::vector<double>& sums : sums_) {
      Tensor mean = Tensor::empty({static_cast<std::int64_t>(sums.size())});
      for (std::size_t i = 0; i < sums.size(); ++i)
        mean.mutable_f32()[i] = static_cast<float>(sums[i] / static_cast<double>(tokens_));
      means.push_back(mean);
    }
    return means;
  }

  LayerQuality quality(std::size_t layer) const {
    const auto n = static_cast<double>(tokens_);
    double of_mean = 0.0;
    for (const double sum : sums_[layer]) of_mean += sum * sum / n;
    LayerQuality quality;
    quality.nmse = left_[layer] / std::max(squares_[layer] - of_mean, 1e-30);
    for (const std::int64_t count : active_[layer])
      quality.density.push_back(static_cast<double>(count) / n);
    quality.l0 = std::accumulate(quality.density.begin(), quality.density.end(), 0.0);
    return quality;
  }

 private:
  // [B, T, width] -> [B * (T - 1), width]
  static Tensor behind_the_first(const Tensor& value) {
    const std::int64_t batch = value.size(0), length = value.size(1), width = value.size(2);
    Tensor rows = Tensor::empty({batch * (length - 1), width});
    for (std::int64_t b = 0; b < batch; ++b)
      std::copy_n(value.f32() + (b * length + 1) * width, (length - 1) * width,
                  rows.mutable_f32() + b * (length - 1) * width);
    return rows;
  }

  void count(std::int64_t layer, const Tensor& y, const Tensor& written) {
    const auto l = static_cast<std::size_t>(layer);
    const Tensor bias = dictionary_.decoder_bias(layer);
    const std::int64_t width = y.size(1), rows = y.size(0);
    const float *values = y.f32(), *parts = written.f32(), *shift = bias.f32();
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < width; ++i) {
        const auto value = static_cast<double>(values[r * width + i]);
        const double error = value - static_cast<double>(parts[r * width + i] + shift[i]);
        sums_[l][static_cast<std::size_t>(i)] += value;
        squares_[l] += value * value;
        left_[l] += error * error;
      }
  }

  const FeatureDictionary& dictionary_;
  std::int64_t tokens_ = 0;
  std::vector<std::vector<double>> sums_;
  std::vector<double> squares_, left_;
  std::vector<std::vector<std::int64_t>> active_;
};

// Sums over the targets that count.
struct LogitSums {
  double loss = 0.0, kl = 0.0;
  std::int64_t agreed = 0;

  LogitSums& operator+=(const LogitSums& other) {
    loss += other.loss, kl += other.kl, agreed += other.agreed;
    return *this;
  }
};

double log_sum_exp(const float* row, std::int64_t count) {
  const float most = *std::max_element(row, row + count);
  double sum = 0.0;
  for (std::int64_t i = 0; i < count; ++i) sum += std::exp(static_cast<double>(row[i] - most));
  return static_cast<double>(most) + std::log(sum);
}

// Of changed logits beside the plain ones, [B, T, V] each.
LogitSums compare_logits(const Tensor& plain, const Tensor& changed, const Tensor& targets) {
  const std::int64_t vocabulary = plain.size(2), rows = plain.size(0) * plain.size(1);
  std::vector<LogitSums> of_row(static_cast<std::size_t>(rows));
  const float *of_plain = plain.f32(), *of_changed = changed.f32();
  parallel_for(rows, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int32_t target = targets.i32()[r];
      if (target < 0) continue;
      const float *p = of_plain + r * vocabulary, *q = of_changed + r * vocabulary;
      const double log_p = log_sum_exp(p, vocabulary), log_q = log_sum_exp(q, vocabulary);
      LogitSums& sums = of_row[static_cast<std::size_t>(r)];
      for (std::int64_t i = 0; i < vocabulary; ++i) {
        const double log_share = static_cast<double>(p[i]) - log_p;
        sums.kl += std::exp(log_share) * (log_share - (static_cast<double>(q[i]) - log_q));
      }
      sums.loss = log_q - static_cast<double>(q[target]);
      sums.agreed =
          std::max_element(p, p + vocabulary) - p == std::max_element(q, q + vocabulary) - q;
    }
  });
  LogitSums total;
  for (const LogitSums& sums : of_row) total += sums;
  return total;
}

// A change of the runs and what it does, over all windows.
struct Change {
  std::unique_ptr<FeatureReplacement> replacement;  // that the taps call
  std::unique_ptr<Taps> taps;
  LogitSums sums;
};

Change replacing(const FeatureDictionary& dictionary, std::optional<std::int64_t> only) {
  Change change{
      std::make_unique<FeatureReplacement>(dictionary, only), std::make_unique<Taps>(), {}};
  change.replacement->add_to(*change.taps);
  return change;
}

Change ablating(const FeatureHooks& hooks, const std::vector<Tensor>& means,
                std::optional<std::int64_t> only) {
  Change change{nullptr, std::make_unique<Taps>(), {}};
  ablate_mlps(*change.taps, hooks, means, only);
  return change;
}

Replaced result_of(const LogitSums& replaced, const LogitSums& ablated, std::int64_t targets) {
  const auto n = static_cast<double>(targets);
  return {replaced.loss / n, ablated.loss / n, replaced.kl / n,
          static_cast<double>(replaced.agreed) / n};
}

double share_of(const std::vector<double>& density, const std::function<bool(double)>& counts) {
  return static_cast<double>(std::count_if(density.begin(), density.end(), counts)) /
         static_cast<double>(density.size());
}

double mean_of(const FeatureQuality& quality,
               const std::function<double(const LayerQuality&)>& number) {
  double sum = 0.0;
  for (const LayerQuality& layer : quality.layers) sum += number(layer);
  return sum / static_cast<double>(quality.layers.size());
}

}  // namespace

double LayerQuality::dead() const {
  return share_of(density, [](double share) { return share == 0.0; });
}
double LayerQuality::dense(double above) const {
  return share_of(density, [above](double share) { return share > above; });
}
double FeatureQuality::nmse() const {
  return mean_of(*this, [](const LayerQuality& layer) { return layer.nmse; });
}
double FeatureQuality::l0() const {
  return mean_of(*this, [](const LayerQuality& layer) { return layer.l0; });
}
double FeatureQuality::dead() const {
  return mean_of(*this, [](const LayerQuality& layer) { return layer.dead(); });
}
double FeatureQuality::dense(double above) const {
  return mean_of(*this, [above](const LayerQuality& layer) { return layer.dense(above); });
}

std::vector<std::int64_t> density_histogram(const FeatureQuality& quality, int steps) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(kDecades * steps), 0);
  for (const LayerQuality& layer : quality.layers)
    for (const double density : layer.density) {
      if (density == 0.0) continue;
      const double place = (std::log10(density) + kDecades) * steps;
      const auto bin = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(place)), 0,
                                                kDecades * steps - 1);
      ++counts[static_cast<std::size_t>(bin)];
    }
  return counts;
}

void check_fits(const FeatureDictionary& dictionary, const Model& model) {
  const TranscoderShape& shape = dictionary.shape();
  require(shape.layers == model.config().layers && shape.width == model.config().width,
          "features: these are of {} layers of width {}, and the model has {} of width {}; give "
          "the model that they were trained on",
          shape.layers, shape.width, model.config().layers, model.config().width);
  for (const std::string& tap : {dictionary.hooks().input_of(0), dictionary.hooks().output_of(0)})
    require(std::find(model.tap_names().begin(), model.tap_names().end(), tap) !=
                model.tap_names().end(),
            "features: they read or write '{}', which the model does not have", tap);
}

FeatureQuality measure_features(const Model& model, const FeatureDictionary& dictionary,
                                const std::function<EvaluationWindows()>& windows,
                                bool layers_alone, const std::function<void(double)>& progress) {
  check_fits(dictionary, model);
  const std::int64_t layers = dictionary.shape().layers;
  const double passes = 4.0 + (layers_alone ? 2.0 * static_cast<double>(layers) : 0.0);
  double done = 0.0;
  const auto advance = [&](const Batch& batch, std::int64_t all) {
    done += static_cast<double>(batch.ids.elements()) / (passes * static_cast<double>(all));
    if (progress) progress(std::min(done, 1.0));
  };
  FeatureQuality quality;
  Reconstruction reconstruction(dictionary);
  {
    const EvaluationWindows first = windows();
    while (const std::optional<Batch> batch = first.next()) {
      Taps taps;
      reconstruction.add_to(taps);
      model.final_hidden(batch->ids, {.taps = &taps});
      reconstruction.observe(taps);
      advance(*batch, first.targets);
    }
  }
  require(reconstruction.tokens() > 0, "features: the windows have no token behind their first");
  quality.tokens = reconstruction.tokens();
  for (std::int64_t l = 0; l < layers; ++l)
    quality.layers.push_back(reconstruction.quality(static_cast<std::size_t>(l)));

  const std::vector<Tensor> means = reconstruction.means();
  std::vector<Change> changes;  // in pairs
  changes.push_back(replacing(dictionary, std::nullopt));
  changes.push_back(ablating(dictionary.hooks(), means, std::nullopt));
  for (std::int64_t l = 0; layers_alone && l < layers; ++l) {
    changes.push_back(replacing(dictionary, l));
    changes.push_back(ablating(dictionary.hooks(), means, l));
  }
  const EvaluationWindows second = windows();
  double plain_loss = 0.0;
  while (const std::optional<Batch> batch = second.next()) {
    const Tensor plain = model.forward(batch->ids).value();
    advance(*batch, second.targets);
    plain_loss += compare_logits(plain, plain, batch->targets).loss;
    for (std::int64_t t = 0; t < batch->targets.elements(); ++t)
      quality.targets += batch->targets.i32()[t] >= 0;
    for (Change& change : changes) {
      const Tensor changed = model.forward(batch->ids, {.taps = change.taps.get()}).value();
      change.sums += compare_logits(plain, changed, batch->targets);
      advance(*batch, second.targets);
    }
  }
  quality.loss = plain_loss / static_cast<double>(quality.targets);
  quality.all = result_of(changes[0].sums, changes[1].sums, quality.targets);
  quality.layers_alone = layers_alone;
  for (std::size_t l = 0; layers_alone && l < quality.layers.size(); ++l)
    quality.layers[l].alone =
        result_of(changes[2 * l + 2].sums, changes[2 * l + 3].sums, quality.targets);
  return quality;
}

}  // namespace filigree
