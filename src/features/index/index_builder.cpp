#include <algorithm>

#include "filigree/device.h"
#include "filigree/error.h"
#include "filigree/features.h"
#include "filigree/random.h"
#include "filigree/runtime.h"

namespace filigree {

IndexBuilder::IndexBuilder(std::int64_t layers, std::int64_t features, const IndexOptions& options)
    : features_(features), options_(options), states_(static_cast<std::size_t>(layers * features)) {
  require(options.top >= 0 && options.sampled >= 0 && options.before >= 0 && options.after >= 0 &&
              options.before + options.after < 4096,
          "features: an index of {} and {} examples of {} + {} tokens", options.top,
          options.sampled, options.before, options.after);
}

IndexBuilder::Slot IndexBuilder::slot_of(const Entries& entries, std::int64_t which) const {
  const std::int64_t place = entries.row[which] % entries.length;
  const std::int64_t first = std::max<std::int64_t>(0, place - options_.before);
  const std::int64_t last = std::min(entries.length - 1, place + options_.after);
  std::vector<float> around(static_cast<std::size_t>(last - first + 1), 0.0f);
  for (std::int64_t i = 0; i < entries.count; ++i) {
    const std::int64_t at = entries.row[i] % entries.length;
    if (at >= first && at <= last)
      around[static_cast<std::size_t>(at - first)] = entries.value[entries.entry[i]];
  }
  Slot slot{entries.window + static_cast<std::uint64_t>(first),
            static_cast<std::uint16_t>(place - first), entries.value[entries.entry[which]],
            std::vector<std::uint16_t>(around.size())};
  f32_to_f16(around.data(), slot.activations.data(), around.size());
  return slot;
}

void IndexBuilder::add_window(State& state, std::uint64_t stream, const Entries& entries) const {
  std::int64_t peak = 0;
  for (std::int64_t i = 0; i < entries.count; ++i) {
    const float value = entries.value[entries.entry[i]];
    state.histogram.add(value);
    state.min = state.count == 0 ? value : std::min(state.min, value);
    state.max = state.count == 0 ? value : std::max(state.max, value);
    ++state.count;
    if (value > entries.value[entries.entry[peak]]) peak = i;
  }
  // Falling; of equal ones the first stays.
  const float largest = entries.value[entries.entry[peak]];
  const auto room = static_cast<std::size_t>(options_.top);
  if (room > 0 && (state.top.size() < room || largest > state.top.back().value)) {
    if (state.top.size() == room) state.top.pop_back();
    const auto place = std::find_if(state.top.begin(), state.top.end(),
                                    [&](const Slot& slot) { return slot.value < largest; });
    state.top.insert(place, slot_of(entries, peak));
  }
  // The reservoir: the n-th window takes a place with probability `sampled` / n.
  Random random(options_.seed, stream);
  random.seek(3 * state.windows);
  ++state.windows;
  const std::uint64_t choice =
      static_cast<std::uint64_t>(random.uniform_double() * static_cast<double>(state.windows));
  const auto which = static_cast<std::int64_t>(static_cast<double>(random.uniform()) *
                                               static_cast<double>(entries.count));
  const auto sampled = static_cast<std::uint64_t>(options_.sampled);
  if (state.windows <= sampled)
    state.sampled.push_back(slot_of(entries, which));
  else if (choice < sampled)
    state.sampled[choice] = slot_of(entries, which);
}

void IndexBuilder::add(std::int64_t layer, const SparseCode& code, std::uint64_t begin,
                       std::int64_t length) {
  require(code.features == features_ && length > 0 && code.rows % length == 0,
          "features: {} rows of {} features for an index of {}", code.rows, code.features,
          features_);
  const CodeByFeature by = entries_by_feature(code);
  const std::int32_t *feature_begin = by.begin.i32(), *row = by.row.i32(), *entry = by.entry.i32();
  const float* value = code.value.value().f32();
  parallel_for(features_, 64, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t f = first; f < last; ++f) {
      std::unique_ptr<State>& state = states_[static_cast<std::size_t>(layer * features_ + f)];
      for (std::int32_t p = feature_begin[f]; p < feature_begin[f + 1];) {
        const std::int64_t window = row[p] / length;
        // The first token of a window, which features are not trained on.
        if (row[p] % length == 0) {
          ++p;
          continue;
        }
        std::int32_t end = p;
        while (end < feature_begin[f + 1] && row[end] / length == window) ++end;
        if (!state) state = std::make_unique<State>();
        add_window(*state, static_cast<std::uint64_t>(layer * features_ + f),
                   {row + p, entry + p, end - p, value, length,
                    begin + static_cast<std::uint64_t>(window * length)});
        p = end;
      }
    }
  });
}

FeatureRecord IndexBuilder::record(const FeatureId& feature, const ReadTokens& read) const {
  const auto& state =
      states_.at(static_cast<std::size_t>(feature.layer * features_ + feature.feature));
  FeatureRecord record;
  if (!state) return record;
  record.count = state->count;
  record.min = state->min, record.max = state->max;
  record.histogram = state->histogram;
  const auto examples = [&](const std::vector<Slot>& slots) {
    std::vector<FeatureExample> list;
    for (const Slot& slot : slots) {
      FeatureExample example{slot.first + slot.centre, slot.value, slot.centre, {}, {}};
      example.tokens.resize(slot.activations.size());
      read(slot.first, example.tokens);
      example.activations.resize(slot.activations.size());
      f16_to_f32(slot.activations.data(), example.activations.data(), slot.activations.size());
      list.push_back(std::move(example));
    }
    return list;
  };
  record.top = examples(state->top);
  record.sampled = examples(state->sampled);
  std::stable_sort(record.sampled.begin(), record.sampled.end(),
                   [](const auto& a, const auto& b) { return a.value > b.value; });
  return record;
}

std::int64_t IndexBuilder::active() const {
  return std::count_if(states_.begin(), states_.end(),
                       [](const auto& state) { return state != nullptr; });
}

std::uint64_t IndexBuilder::bytes_of_feature(const IndexOptions& options) {
  const std::int64_t slot =
      static_cast<std::int64_t>(sizeof(Slot)) + 16 + 2 * (options.before + options.after + 1);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(sizeof(State)) +
                                    (options.top + options.sampled) * slot);
}

}  // namespace filigree
