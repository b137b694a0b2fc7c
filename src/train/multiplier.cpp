#include <algorithm>
#include <cmath>

#include "filigree/error.h"
#include "filigree/sparsification.h"

namespace filigree {
namespace {

constexpr double kProgress = 0.95;  // of the gap, that counts as progress

}  // namespace

Multiplier::Multiplier(const MultiplierOptions& options) : options_(options) {
  require(options.min > 0 && options.min <= options.initial && options.initial <= options.max,
          "multiplier: the initial value {} must lie between {} and {}, all positive",
          options.initial, options.min, options.max);
  require(options.rate > 0 && options.gain > 0 && options.limit > 0 && options.every >= 1,
          "multiplier: rate {}, gain {}, limit {} and interval {} must be positive", options.rate,
          options.gain, options.limit, options.every);
  require(options.recovery_from < 0 || options.recovery_max >= options.min,
          "multiplier: the bound {} of the recovery is below the least value {}",
          options.recovery_max, options.min);
  require(options.averaging >= 0 && options.averaging < 1,
          "multiplier: averaging {} is not in [0, 1)", options.averaging);
  state_.log_lambda = std::log(options.initial);
}

double Multiplier::lambda() const { return std::exp(state_.log_lambda); }

bool Multiplier::last_bound() const {
  return options_.recovery_from < 0 || state_.observed >= options_.recovery_from;
}

bool Multiplier::rescues() const {
  return options_.recovery_from >= 0 && state_.average_gap > options_.rescue_gap;
}

double Multiplier::max() const {
  const bool second = rescues() || (options_.recovery_from >= 0 && last_bound());
  return second ? options_.recovery_max : options_.max;
}

void Multiplier::observe(double gap) {
  require(std::isfinite(gap), "multiplier: the gap {} is not finite", gap);
  // The first gap starts the average, so that it is not drawn towards an arbitrary zero.
  state_.average_gap = state_.observed == 0 ? gap
                                            : options_.averaging * state_.average_gap +
                                                  (1 - options_.averaging) * gap;
  ++state_.observed;
  const double bound = std::log(max());
  if (!last_bound() || state_.log_lambda < bound || state_.average_gap <= 0) {
    state_.steps_at_max = 0;
    state_.lowest_gap = 0.0;
  } else if (state_.lowest_gap == 0.0 || state_.average_gap < kProgress * state_.lowest_gap) {
    state_.steps_at_max = 1;
    state_.lowest_gap = state_.average_gap;
  } else {
    ++state_.steps_at_max;
  }
  if (state_.observed % options_.every != 0) return;
  const double rise = rescues() ? options_.rescue_speed * options_.limit : options_.limit;
  const double change =
      std::clamp(options_.gain * state_.average_gap, -options_.fall * options_.limit, rise);
  state_.log_lambda =
      std::clamp(state_.log_lambda + options_.rate * change, std::log(options_.min), bound);
}

}  // namespace filigree
