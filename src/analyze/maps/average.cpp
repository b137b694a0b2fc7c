#include "filigree/analyze/maps/average.h"

#include <algorithm>

#include "filigree/base/error.h"
#include "filigree/runtime/threads.h"

namespace filigree {
namespace {

constexpr std::int64_t kBatchTokens = 512;

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

void average_maps(const Model& model, std::span<const Prompt> prompts,
                  const AverageOptions& options, const MeanMapConsumer& consumer) {
  const auto T = static_cast<std::size_t>(common_length(prompts));
  const std::size_t cells = T * T;
  for (std::size_t first = 0; first < options.heads.size();) {
    const std::size_t count = group_size(options, first, cells * sizeof(float));
    CaptureOptions capture =
        CaptureOptions::of({options.heads.begin() + static_cast<std::ptrdiff_t>(first),
                            options.heads.begin() + static_cast<std::ptrdiff_t>(first + count)},
                           options.kind);
    capture.batch_tokens = kBatchTokens;
    Tensor sums =
        Tensor::zeros({static_cast<std::int64_t>(count), static_cast<std::int64_t>(cells)});
    float* sum = sums.mutable_f32();
    const float share = 1.0f / static_cast<float>(prompts.size());
    capture_maps(model, prompts, capture, [&](std::span<const HeadMap> heads) {
      parallel_for(static_cast<std::int64_t>(heads.size()), 1,
                   [&](std::int64_t begin, std::int64_t end) {
                     std::vector<float> map(cells);
                     for (std::int64_t h = begin; h < end; ++h) {
                       const HeadMap& head = heads[static_cast<std::size_t>(h)];
                       fill_map(head, options.kind, map);
                       float* to = sum + head.slot * cells;
                       for (std::size_t c = 0; c < cells; ++c) to[c] += share * map[c];
                     }
                   });
    });
    for (std::size_t s = 0; s < count; ++s)
      consumer(first + s, sums.values().subspan(s * cells, cells));
    first += count;
  }
}

}  // namespace filigree
