// What a run minimises, and on what. The loop (trainer.h) passes the batches of a source to an
// objective and does not look into them, so that a batch may be anything: token windows for a
// language model (Batch), activations, pairs of vectors.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/variable.h"
#include "dist/communicator.h"
#include "train/batch.h"
#include "train/settings.h"

namespace filigree {

// Numbers of one step for the log and the progress bar, in order.
using Metrics = std::vector<std::pair<std::string, double>>;

// The value of a metric; throws Error when it is not there.
double metric(const Metrics& metrics, std::string_view name);

// A source or an objective as far as the loop knows it.
class RunPart {
 public:
  virtual ~RunPart() = default;

  // What of it decides the result; the same on every rank, whatever their number.
  virtual Settings settings() const = 0;

  // What a checkpoint keeps of it, so that it goes on as if nothing had happened.
  virtual nlohmann::json state() const { return nlohmann::json::object(); }
  virtual void restore(const nlohmann::json& state) { (void)state; }
};

// An endless stream of batches whose place can be stored and found again.
template <typename AnyBatch>
class SourceOf : public RunPart {
 public:
  virtual AnyBatch next() = 0;
};

class AnyObjective : public RunPart {
 public:
  // After the weights have changed; `metrics` are the means over the step's batches.
  virtual void after_step(const Metrics& metrics) { (void)metrics; }

  // A plain explanation when going on makes no sense.
  virtual std::optional<std::string> stop_reason() const { return std::nullopt; }

  // What the user should know while the run goes on, once: asked after every step.
  virtual std::optional<std::string> take_warning() { return std::nullopt; }
};

template <typename AnyBatch>
class ObjectiveOn : public AnyObjective {
 public:
  // The value to minimise on one batch, recorded on the current tape. `micro_step` counts batches
  // over the whole run, so that random numbers can be addressed by it. Where several ranks have
  // parts of a global batch, the gradients of their values add up to that of the global batch, and
  // the metrics are of the global batch, the same on every rank.
  virtual Variable loss(const AnyBatch& batch, std::int64_t micro_step, Communicator& ranks,
                        Metrics& metrics) = 0;
};

using BatchSource = SourceOf<Batch>;
using Objective = ObjectiveOn<Batch>;

}  // namespace filigree
