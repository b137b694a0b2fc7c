#include <fmt/format.h>

#include "filigree/train.h"

namespace filigree {

void DivergenceWatch::observe(double loss) {
  average_ = observed_ == 0 ? loss : kAveraging * average_ + (1 - kAveraging) * loss;
  ++observed_;
  if (observed_ == 1 || average_ < best_) {
    best_ = average_;
    best_step_ = observed_;
  }
  far_steps_ = average_ > best_ + kFar ? far_steps_ + 1 : 0;
}

std::optional<std::string> DivergenceWatch::reason() const {
  if (far_steps_ < kLong) return std::nullopt;
  return fmt::format(
      "training diverges: the loss, averaged over some ten steps, is {:.3g} and has been more than "
      "{:g} nat above its best ({:.3g} at step {}) for {} steps. Start again with a lower learning "
      "rate or a longer warm-up",
      average_, kFar, best_, best_step_, far_steps_);
}

nlohmann::json DivergenceWatch::state() const {
  return {{"average", average_},
          {"best", best_},
          {"observed", observed_},
          {"best_step", best_step_},
          {"far_steps", far_steps_}};
}

// Runs of older versions have no such state; the watch then begins anew.
void DivergenceWatch::restore(const nlohmann::json& state) {
  average_ = state.value("average", 0.0);
  best_ = state.value("best", 0.0);
  observed_ = state.value("observed", std::int64_t{0});
  best_step_ = state.value("best_step", std::int64_t{0});
  far_steps_ = state.value("far_steps", std::int64_t{0});
}

}  // namespace filigree
