#include "study/comparison/changed_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "filigree/ops.h"

namespace filigree::study {
namespace {

constexpr std::int64_t kTokensInPass = 512;
constexpr std::int64_t kCellTop = 1;  // likeliest tokens of a cell of the lens
constexpr float kWeightSteps = 100.0f;

// Where a part's output is: of heads and experts a row of [B, T, parts, D], else all of it.
std::string output_tap(const Component& part) {
  const char* hook = part.kind == ComponentKind::kHead     ? "attn.hook_z"
                     : part.kind == ComponentKind::kExpert ? "mlp.hook_expert_out"
                                                           : "hook_mlp_out";
  return fmt::format("blocks.{}.{}", part.layer, hook);
}

// Sets what a part wrote in one run of [B, T, ...] to zero.
void silence(Tensor& value, std::int64_t run, const Component& part) {
  const std::int64_t T = value.size(1), inner = value.elements() / (value.size(0) * T);
  const bool whole = part.kind == ComponentKind::kMlp;
  const std::int64_t width = whole ? inner : value.size(3);
  const std::int64_t first =
      whole ? 0 : (part.kind == ComponentKind::kHead ? part.head : part.expert) * width;
  for (std::int64_t t = 0; t < T; ++t)
    std::fill_n(value.mutable_f32() + (run * T + t) * inner + first, width, 0.0f);
}

// The maps of a layer, [B, H, T, T], of a run beside those of the run as it is.
void append_maps(const Tensor& pattern, std::int64_t run, std::int64_t plain, std::string& maps) {
  const std::int64_t H = pattern.size(1), T = pattern.size(2);
  for (std::int64_t h = 0; h < H; ++h)
    for (std::int64_t i = 0; i < T; ++i) {
      const float* now = pattern.f32() + ((run * H + h) * T + i) * T;
      const float* before = pattern.f32() + ((plain * H + h) * T + i) * T;
      for (std::int64_t j = 0; j <= i; ++j)
        maps += static_cast<char>(changed_weight(now[j], before[j]));
    }
}

// One pass of several runs, each without its part, and of one that nothing changes.
class ChangedPass {
 public:
  ChangedPass(const LoadedModel& model, const std::vector<TokenId>& ids,
              std::span<const Component> parts)
      : model_(model), ids_(ids), parts_(parts), runs_(parts.size()) {}

  std::vector<ChangedRun> run() {
    Taps taps;
    switch_off(taps);
    watch(taps);
    const auto T = static_cast<std::int64_t>(ids_.size()), plain = unchanged();
    std::vector<TokenId> all;
    for (std::int64_t n = 0; n <= plain; ++n) all.insert(all.end(), ids_.begin(), ids_.end());
    const Tensor logits =
        model_.model().forward(Tensor::from_ids({plain + 1, T}, all), {.taps = &taps}).value();
    for (std::size_t n = 0; n < runs_.size(); ++n) {
      runs_[n].prediction = prediction_of(logits, model_, ids_, n);
      for (const LensPoint& point : runs_[n].points) {
        const auto row = static_cast<std::int64_t>(n);
        const Tensor stream = slice(taps.value(tap_name(point)), 0, row, row + 1).value();
        runs_[n].lens.push_back(read_stream(model_.model(), ids_, stream, {.top = kCellTop}));
      }
    }
    return std::move(runs_);
  }

 private:
  std::int64_t unchanged() const { return static_cast<std::int64_t>(parts_.size()); }

  void switch_off(Taps& taps) const {
    std::map<std::string, std::vector<std::size_t>> by_tap;
    for (std::size_t n = 0; n < parts_.size(); ++n) by_tap[output_tap(parts_[n])].push_back(n);
    for (const auto& [tap, runs] : by_tap)
      taps.intervene(tap, [this, runs = runs](const Variable& value) {
        Tensor changed = value.value().clone();
        for (const std::size_t n : runs) silence(changed, static_cast<std::int64_t>(n), parts_[n]);
        return Variable(changed);
      });
  }

  void watch(Taps& taps) {
    const std::int64_t layers = model_.config().layers;
    std::int64_t first = layers;
    for (std::size_t n = 0; n < parts_.size(); ++n) {
      first = std::min(first, parts_[n].layer);
      for (std::int64_t layer = parts_[n].layer; layer < layers; ++layer)
        runs_[n].points.push_back({LensPlace::kAfter, layer});
    }
    for (std::int64_t layer = first; layer < layers; ++layer) {
      taps.observe(tap_name({LensPlace::kAfter, layer}));
      if (layer == first) continue;
      taps.watch(fmt::format("blocks.{}.attn.hook_pattern", layer),
                 [this, layer](std::string_view, const Tensor& pattern) {
                   for (std::size_t n = 0; n < runs_.size(); ++n)
                     if (parts_[n].layer < layer)
                       append_maps(pattern, static_cast<std::int64_t>(n), unchanged(),
                                   runs_[n].maps);
                 });
    }
  }

  const LoadedModel& model_;
  const std::vector<TokenId>& ids_;
  std::span<const Component> parts_;
  std::vector<ChangedRun> runs_;
};

}  // namespace

std::uint8_t changed_weight(float now, float plain) {
  const bool open = now > 0.0f;
  if (open == (plain > 0.0f) && std::abs(now - plain) * kWeightSteps < 0.5f) return 0;
  if (!open) return 1;
  return static_cast<std::uint8_t>(1.0f +
                                   std::clamp(std::round(now * kWeightSteps), 1.0f, kWeightSteps));
}

std::vector<ChangedRun> runs_without(const LoadedModel& model, const std::vector<TokenId>& ids,
                                     std::span<const Component> parts) {
  const auto T = static_cast<std::int64_t>(ids.size());
  const auto at_once = static_cast<std::size_t>(std::max<std::int64_t>(1, kTokensInPass / T));
  std::vector<ChangedRun> found;
  for (std::size_t begin = 0; begin < parts.size(); begin += at_once) {
    const std::span<const Component> some =
        parts.subspan(begin, std::min(at_once, parts.size() - begin));
    for (ChangedRun& one : ChangedPass(model, ids, some).run()) found.push_back(std::move(one));
  }
  return found;
}

}  // namespace filigree::study
