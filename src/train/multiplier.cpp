#include <algorithm>
#include <cmath>

#include "filigree/error.h"
#include "filigree/sparsification.h"

namespace filigree {
namespace {

constexpr double kProgress = 0.95;  // of the gap, that counts as progress

}  // namespace

Multiplier::Multiplier(const MultiplierOptions& options) : options_(options) {
  require(options.least > 0 && options.least <= options.initial && options.initial <= options.most,
          "multiplier: the initial value {} must lie between {} and {}, all positive",
          options.initial, options.least, options.most);
  require(options.rate > 0 && options.gain > 0 && options.limit > 0 && options.every >= 1,
          "multiplier: rate {}, gain {}, limit {} and interval {} must be positive", options.rate,
          options.gain, options.limit, options.every);
  require(options.recovery_from < 0 || options.recovery_most >= options.least,
          "multiplier: the bound {} of the recovery is below the least value {}",
          options.recovery_most, options.least);
  require(options.averaging >= 0 && options.averaging < 1,
          "multiplier: averaging {} is not in [0, 1)", options.averaging);
  state_.log_lambda = std::log(options.initial);
}

double Multiplier::lambda() const { return std::exp(state_.log_lambda); }

bool Multiplier::last_bound() const {
  return options_.recovery_from < 0 || state_.observed >= options_.recovery_from;
}

bool Multiplier::alarmed() const {
  return options_.recovery_from >= 0 && state_.average_gap > options_.alarm;
}

double Multiplier::most() const {
  const bool second = alarmed() || (options_.recovery_from >= 0 && last_bound());
  return second ? options_.recovery_most : options_.most;
}

void Multiplier::observe(double gap) {
  require(std::isfinite(gap), "multiplier: the gap {} is not finite", gap);
  // The first gap starts the average, so that it is not drawn towards an arbitrary zero.
  state_.average_gap = state_.observed == 0 ? gap
                                            : options_.averaging * state_.average_gap +
                                                  (1 - options_.averaging) * gap;
  ++state_.observed;
  const double most = std::log(this->most());
  if (!last_bound() || state_.log_lambda < most || state_.average_gap <= 0) {
    state_.steps_at_most = 0;
    state_.lowest_gap = 0.0;
  } else if (state_.lowest_gap == 0.0 || state_.average_gap < kProgress * state_.lowest_gap) {
    state_.steps_at_most = 1;
    state_.lowest_gap = state_.average_gap;
  } else {
    ++state_.steps_at_most;
  }
  if (state_.observed % options_.every != 0) return;
  const double rise = alarmed() ? options_.hurry * options_.limit : options_.limit;
  const double change =
      std::clamp(options_.gain * state_.average_gap, -options_.fall * options_.limit, rise);
  state_.log_lambda =
      std::clamp(state_.log_lambda + options_.rate * change, std::log(options_.least), most);
}

}  // namespace filigree
