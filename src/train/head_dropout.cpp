#include <memory>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "filigree/random.h"
#include "filigree/train.h"

namespace filigree {
namespace {

// Apart from the streams of weights, gates and data, which count from 0.
constexpr std::uint64_t kStreams = std::uint64_t{0x64726f70} << 32;

}  // namespace

void HeadDropout::check() const {
  require(share >= 0.0 && share < 1.0, "the share {} of silent heads is not in [0, 1)", share);
}

double HeadDropout::share_at(std::int64_t micro_step) const {
  if (fade_to > 0 && micro_step >= fade_to) return 0.0;
  if (fade_to <= fade_from || micro_step <= fade_from) return share;
  return share * static_cast<double>(fade_to - micro_step) /
         static_cast<double>(fade_to - fade_from);
}

void HeadDropout::apply(Taps& taps, const Batch& batch, std::int64_t micro_step) const {
  const std::uint64_t stream = kStreams + static_cast<std::uint64_t>(micro_step);
  const auto first_row = static_cast<std::uint64_t>(batch.first_row);
  const double now = share_at(micro_step);
  const auto threshold = static_cast<float>(now);
  const auto louder = static_cast<float>(1.0 / (1.0 - now));
  // Taps are passed layer by layer, so that counting them numbers the layers.
  const auto layer = std::make_shared<std::uint64_t>(0);
  taps.stay_on_device();
  taps.intervene("blocks.*.attn.hook_z", [=, seed = seed](const Variable& z) {
    const std::int64_t windows = z.size(0), heads = z.size(2);
    const std::uint64_t of_layer = (*layer)++;
    Tensor factors = Tensor::empty({windows, 1, heads, 1});
    for (std::int64_t b = 0; b < windows; ++b)
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::uint64_t row = first_row + static_cast<std::uint64_t>(b);
        const PhiloxBlock block = random_block(
            seed, stream, (row << 32) | (of_layer << 16) | static_cast<std::uint64_t>(h));
        factors.mutable_f32()[b * heads + h] =
            uniform_from(block.words[0]) < threshold ? 0.0f : louder;
      }
    return mul(z, Variable(factors.to(z.value().device())));
  });
}

}  // namespace filigree
