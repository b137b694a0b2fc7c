#include <algorithm>

#include "filigree/error.h"
#include "filigree/maps.h"
#include "filigree/runtime.h"

namespace filigree {
namespace {

constexpr std::int64_t kAveragedAtOnce = 512;

// As many heads from `first` on as fit; at least one.
std::size_t group_size(const AverageOptions& options, std::size_t first, std::size_t map_bytes) {
  const std::size_t fit = std::max<std::size_t>(1, options.budget_bytes / map_bytes);
  return std::min(fit, options.heads.size() - first);
}

}  // namespace

std::int64_t common_length(std::span<const Prompt> prompts) {
  require(!prompts.empty(), "average: there are no prompts");
  for (std::size_t p = 1; p < prompts.size(); ++p)
    require(prompts[p].ids.size() == prompts[0].ids.size(),
            "average: prompt 1 has {} tokens and prompt {} has {}; maps can be averaged only over "
            "prompts of one length",
            prompts[0].ids.size(), p + 1, prompts[p].ids.size());
  return static_cast<std::int64_t>(prompts[0].ids.size());
}

bool MeanMaps::fit(std::size_t heads, std::int64_t length, std::size_t budget_bytes) {
  const auto T = static_cast<std::size_t>(length);
  return heads * T * T * sizeof(float) <= budget_bytes;
}

MeanMaps::MeanMaps(std::size_t heads, std::size_t prompts, std::int64_t length, MapKind kind)
    : cells_(static_cast<std::size_t>(length * length)),
      share_(1.0f / static_cast<float>(prompts)),
      kind_(kind),
      sums_(Tensor::zeros({static_cast<std::int64_t>(heads), length * length})) {}

void MeanMaps::add(std::span<const HeadMap> maps) {
  float* sums = sums_.mutable_f32();
  parallel_for(static_cast<std::int64_t>(maps.size()), 1,
               [&](std::int64_t begin, std::int64_t end) {
                 std::vector<float> map(cells_);
                 for (std::int64_t m = begin; m < end; ++m) {
                   const HeadMap& head = maps[static_cast<std::size_t>(m)];
                   fill_map(head, kind_, map);
                   float* to = sums + head.slot * cells_;
                   for (std::size_t c = 0; c < cells_; ++c) to[c] += share_ * map[c];
                 }
               });
}

std::span<const float> MeanMaps::mean(std::size_t slot) const {
  return sums_.values().subspan(slot * cells_, cells_);
}

void average_maps(const Model& model, std::span<const Prompt> prompts,
                  const AverageOptions& options, const MeanMapConsumer& consumer) {
  const auto T = static_cast<std::size_t>(common_length(prompts));
  const std::size_t map_bytes = T * T * sizeof(float);
  for (std::size_t first = 0; first < options.heads.size();) {
    const std::size_t count = group_size(options, first, map_bytes);
    CaptureOptions capture =
        CaptureOptions::of({options.heads.begin() + static_cast<std::ptrdiff_t>(first),
                            options.heads.begin() + static_cast<std::ptrdiff_t>(first + count)},
                           options.kind);
    capture.batch_tokens = kAveragedAtOnce;
    capture.interventions = options.interventions;
    MeanMaps means(count, prompts.size(), static_cast<std::int64_t>(T), options.kind);
    capture_maps(model, prompts, capture,
                 [&](std::span<const HeadMap> heads) { means.add(heads); });
    for (std::size_t s = 0; s < count; ++s) consumer(first + s, means.mean(s));
    first += count;
  }
}

}  // namespace filigree
