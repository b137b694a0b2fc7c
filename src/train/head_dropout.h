// Heads that fall silent at random while a dense model is trained.
//
// A model that must do without any of its heads learns each thing in several of them, as models
// trained with dropout do; what sparse training then takes apart is as tangled as it is there.
#pragma once

#include <cstdint>

#include "nn/taps.h"
#include "train/batch.h"

namespace filigree {

struct HeadDropout {
  double share = 0.0;  // of heads that are silent, each by itself in each window; below 1
  std::uint64_t seed = 0;
  // The share falls from here to nothing at `fade_to`, both counted in batches: a model that ends
  // with all of its heads keeps what it learnt in several of them, and has nothing left to gain
  // from training without silent ones. Equal: it falls there at once; both 0: never.
  std::int64_t fade_from = 0, fade_to = 0;

  bool on() const { return share > 0.0; }
  // Of the batch of this number.
  double share_at(std::int64_t micro_step) const;
  // Throws Error for a share that is none.
  void check() const;
  // Silences heads of all layers, and makes the others louder by as much as is missing on average.
  // Which ones depends on the seed, the batch's place in the run and the window's place in the
  // batch, not on the number of ranks.
  void apply(Taps& taps, const Batch& batch, std::int64_t micro_step) const;
};

}  // namespace filigree
