// The learning rate over a run: linear warm-up, then a cosine down to a fraction of the peak; and
// the same once more for a last stage, if there is one.
#pragma once

#include <cmath>
#include <cstdint>

namespace filigree {

struct Schedule {
  float peak = 1e-3f;
  std::int64_t warmup = 0;  // steps
  std::int64_t steps = 1;   // of the whole run
  float final_fraction = 0.1f;
  std::int64_t stage = 0;  // steps of the last stage, which has as large a share of warm-up
  float stage_peak = 0.0f;

  // Of step 0, 1, ..., steps - 1.
  float at(std::int64_t step) const {
    if (stage > 0) {
      const std::int64_t before = steps - stage;
      if (step >= before)
        return Schedule{stage_peak, warmup * stage / steps, stage, final_fraction}.at(step -
                                                                                      before);
      return Schedule{peak, warmup, before, final_fraction}.at(step);
    }
    if (step < warmup) return peak * static_cast<float>(step + 1) / static_cast<float>(warmup);
    const std::int64_t span = steps - warmup;
    const double progress =
        span > 1 ? static_cast<double>(step - warmup) / static_cast<double>(span - 1) : 1.0;
    const double cosine = 0.5 * (1.0 + std::cos(std::fmin(progress, 1.0) * 3.14159265358979323846));
    const auto low = static_cast<double>(final_fraction);
    return static_cast<float>(static_cast<double>(peak) * (low + (1.0 - low) * cosine));
  }
};

}  // namespace filigree
