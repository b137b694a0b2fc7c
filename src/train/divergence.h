// Whether a loss that should fall runs away: far above its best for long.
//
// A rate that is too high need not end in a loss that is not finite: it may stay at ten times the
// start for as long as one lets it run. The loss is averaged over some ten steps, so that neither a
// hard batch nor a spike counts.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"

namespace filigree {

// A run that diverged; the message says how and what to do.
class Diverged : public Error {
 public:
  using Error::Error;
};

class DivergenceWatch {
 public:
  static constexpr double kFar = 1.0;        // nats above the best average
  static constexpr std::int64_t kLong = 50;  // steps in a row
  static constexpr double kAveraging = 0.9;  // weight of the old average

  void observe(double loss);
  // A plain explanation once the loss has been far above its best for long.
  std::optional<std::string> reason() const;

  nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  double average_ = 0.0, best_ = 0.0;
  std::int64_t observed_ = 0, best_step_ = 0, far_steps_ = 0;
};

}  // namespace filigree
