#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "filigree/error.h"
#include "filigree/features.h"
#include "filigree/names.h"
#include "filigree/ops.h"

namespace filigree {
namespace {

template <typename Number>
std::optional<Number> whole_text(std::string_view text) {
  Number value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failure != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

SteeringChange parse_one_steering(std::string_view text) {
  const auto wrong = [&] [[noreturn]] {
    fail("'{}' is no change of a feature; write L5F123=8, L5F123=+8, L5F123*=-2 or L5F123@-1=8",
         printable(text));
  };
  SteeringChange change;
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) wrong();
  std::string_view place = text.substr(0, equals), value = text.substr(equals + 1);
  if (place.ends_with('+') || place.ends_with('*')) {
    change.kind = place.ends_with('+') ? SteeringKind::kAdd : SteeringKind::kMultiply;
    place.remove_suffix(1);
  } else if (value.starts_with('+')) {
    change.kind = SteeringKind::kAdd;
    value.remove_prefix(1);
  }
  if (const std::size_t at = place.find('@'); at != std::string_view::npos) {
    change.position = whole_text<std::int64_t>(place.substr(at + 1));
    if (!change.position) wrong();
    place = place.substr(0, at);
  }
  const std::optional<FeatureId> feature = find_feature(place);
  const std::optional<double> number = whole_text<double>(value);
  if (!feature || !number || !std::isfinite(*number) || std::abs(*number) > 1e30) wrong();
  change.feature = *feature;
  change.value = *number;
  return change;
}

}  // namespace

std::vector<SteeringChange> parse_steering(std::string_view text) {
  std::vector<SteeringChange> changes;
  while (true) {
    const std::size_t comma = text.find(',');
    changes.push_back(parse_one_steering(text.substr(0, comma)));
    if (comma == std::string_view::npos) return changes;
    text.remove_prefix(comma + 1);
  }
}

std::string text_of(const SteeringChange& change) {
  const char* sign = change.kind == SteeringKind::kSet   ? "="
                     : change.kind == SteeringKind::kAdd ? "+"
                                                         : "x";
  const std::string position = change.position ? fmt::format("@{}", *change.position) : "";
  return fmt::format("{}{} {} {:g}", feature_name(change.feature), position, sign, change.value);
}

std::string text_of(const std::vector<SteeringChange>& changes) {
  std::vector<std::string> texts;
  for (const SteeringChange& change : changes) texts.push_back(text_of(change));
  return join(texts, ", ");
}

SteeredFeatures::SteeredFeatures(const FeatureDictionary& dictionary,
                                 std::vector<SteeringChange> changes)
    : dictionary_(dictionary), changes_(std::move(changes)), activations_(changes_.size()) {
  const TranscoderShape& shape = dictionary.shape();
  for (const SteeringChange& change : changes_) {
    require(change.feature.layer < shape.layers && change.feature.feature < shape.features,
            "there is no feature {}; the transcoder has {} layers of {}",
            feature_name(change.feature), shape.layers, shape.features);
    const auto number = static_cast<std::int32_t>(change.feature.feature);
    rows_.push_back(dictionary.rows(change.feature.layer, std::span(&number, 1)));
  }
}

void SteeredFeatures::set_pass(std::int64_t first, std::int64_t length) {
  first_ = first;
  length_ = length;
}

void SteeredFeatures::put_on(Taps& taps) {
  if (changes_.empty()) return;
  taps.intervene("hook_embed", [this](const Variable& value) {
    total_ = first_ + value.size(1);
    return value;
  });
  const TranscoderShape& shape = dictionary_.shape();
  std::vector<bool> reads(static_cast<std::size_t>(shape.layers)), writes(reads.size());
  for (const SteeringChange& change : changes_) {
    const std::int64_t layer = change.feature.layer;
    reads[static_cast<std::size_t>(layer)] = true;
    for (std::int64_t m = layer; m < layer + shape.reach(layer); ++m)
      writes[static_cast<std::size_t>(m)] = true;
  }
  for (std::int64_t l = 0; l < shape.layers; ++l) {
    if (reads[static_cast<std::size_t>(l)])
      taps.intervene(dictionary_.hooks().input_of(l), [this, l](const Variable& value) {
        read(l, value.value());
        return value;
      });
    if (writes[static_cast<std::size_t>(l)])
      taps.intervene(dictionary_.hooks().output_of(l),
                     [this, l](const Variable& value) { return written(l, value); });
  }
}

void SteeredFeatures::read(std::int64_t layer, const Tensor& inputs) {
  require(inputs.shape().rank() == 3 && inputs.size(0) == 1,
          "features: runs of several texts at once cannot be steered");
  const std::int64_t tokens = inputs.size(1), width = inputs.size(2);
  const Tensor x = inputs.on_host();
  const bool chosen = dictionary_.activation() == FeatureActivation::kTopK ||
                      dictionary_.activation() == FeatureActivation::kBatchTopK;
  // Which of the features are the largest only all of them tell; else each stands for itself.
  const SparseCode code =
      chosen ? dictionary_.encode(layer, x.reshape({tokens, width})) : SparseCode();
  for (std::size_t c = 0; c < changes_.size(); ++c) {
    if (changes_[c].feature.layer != layer) continue;
    activations_[c].assign(static_cast<std::size_t>(tokens), 0.0f);
    for (std::int64_t t = 0; !chosen && t < tokens; ++t) {
      double h = rows_[c].encoder_bias.f32()[0];
      for (std::int64_t d = 0; d < width; ++d)
        h += static_cast<double>(x.f32()[t * width + d]) * rows_[c].encoder.f32()[d];
      if (h > rows_[c].threshold.f32()[0])
        activations_[c][static_cast<std::size_t>(t)] = static_cast<float>(h);
    }
    if (!chosen) continue;
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int32_t p = code.begin.i32()[t]; p < code.begin.i32()[t + 1]; ++p)
        if (code.feature.i32()[p] == changes_[c].feature.feature)
          activations_[c][static_cast<std::size_t>(t)] = code.value.value().f32()[p];
  }
}

Variable SteeredFeatures::written(std::int64_t layer, const Variable& output) const {
  const std::int64_t tokens = output.size(1), width = output.size(2);
  // The positions of a value are the last ones of the pass.
  const std::int64_t first = total_ - tokens, whole = length_.value_or(total_);
  Tensor added = Tensor::zeros({1, tokens, width});
  for (std::size_t c = 0; c < changes_.size(); ++c) {
    const SteeringChange& change = changes_[c];
    const std::int64_t target = layer - change.feature.layer;
    if (target < 0 || target >= rows_[c].decoder.size(1)) continue;
    const float* row = rows_[c].decoder.f32() + target * width;
    const std::vector<float>& active = activations_[c];
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::int64_t position = first + t;
      if (change.position) {
        const std::int64_t wanted =
            *change.position < 0 ? *change.position + whole : *change.position;
        if (position != wanted) continue;
      } else if (position == 0) {
        continue;
      }
      // What was read may reach further back than what is written.
      const auto at =
          static_cast<std::size_t>(static_cast<std::int64_t>(active.size()) - tokens + t);
      const double now = active[at];
      const double wanted = change.kind == SteeringKind::kSet   ? change.value
                            : change.kind == SteeringKind::kAdd ? now + change.value
                                                                : now * change.value;
      const auto difference = static_cast<float>(wanted - now);
      for (std::int64_t d = 0; d < width; ++d)
        added.mutable_f32()[t * width + d] += difference * row[d];
    }
  }
  return add(output, Variable(added));
}

}  // namespace filigree
