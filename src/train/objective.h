// What a run minimises. The loop (trainer.h) knows only this.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "filigree/autograd/variable.h"
#include "filigree/dist/communicator.h"

namespace filigree {

struct Batch {
  Tensor ids;      // i32 [B, T]
  Tensor targets;  // i32 [B, T]: the token each position predicts
  // Several processes share a global batch by rows: which of them is this one's first.
  std::int64_t first_row = 0;
};

// Targets that count in the loss.
std::int64_t counted_targets(const Batch& batch);

// An endless stream of batches whose place can be stored and found again.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual Batch next() = 0;
  virtual nlohmann::json state() const = 0;
  virtual void restore(const nlohmann::json& state) = 0;
};

// Numbers of one step for the log and the progress bar, in order.
using Metrics = std::vector<std::pair<std::string, double>>;

class Objective {
 public:
  virtual ~Objective() = default;

  // The value to minimise on one batch, recorded on the current tape. `micro_step` counts batches
  // over the whole run, so that random numbers can be addressed by it. Where several ranks have
  // parts of a global batch, the gradients of their values add up to that of the global batch, and
  // the metrics are of the global batch, the same on every rank.
  virtual Variable loss(const Batch& batch, std::int64_t micro_step, Communicator& ranks,
                        Metrics& metrics) = 0;

  // After the weights have changed; `metrics` are the means over the step's batches.
  virtual void after_step(const Metrics& metrics) { (void)metrics; }

  // A plain explanation when going on makes no sense.
  virtual std::optional<std::string> stop_reason() const { return std::nullopt; }

  virtual nlohmann::json state() const { return nlohmann::json::object(); }
  virtual void restore(const nlohmann::json& state) { (void)state; }
};

// The value of a metric; throws Error when it is not there.
double metric(const Metrics& metrics, std::string_view name);

}  // namespace filigree
