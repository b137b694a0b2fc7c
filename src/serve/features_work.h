// Jobs about features: a trace through the transcoders of a model, and small transcoders of the
// session's own for models that have none.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/scratch_folder.h"
#include "serve/job_result.h"
#include "serve/requests.h"

namespace filigree::serve {

// Transcoders that were trained in this session, the last of each model. Any number of threads may
// ask.
class TrainedFeatures {
 public:
  struct Trained {
    std::shared_ptr<const ScratchFolder> folder = {};  // that holds them
    std::filesystem::path path = {};
  };

  explicit TrainedFeatures(std::size_t models) : trained_(models) {}

  // Of the model of that number; empty where there are none.
  Trained find(std::size_t model) const;
  void keep(std::size_t model, Trained trained);

 private:
  mutable std::mutex mutex_;
  std::vector<Trained> trained_;
};

// Whether transcoders lie beside the model, as those of the bundled pair do.
bool has_features(const study::LoadedModel& model);

// As `filigree trace --json`, of the models that have features, the session's own where there are
// some. Throws Error where none has.
JobResult trace_work(study::Models models, const TraceQuery& query, const TrainedFeatures& trained,
                     const study::Context& context);

// Trains a transcoder of each layer of a model on sentences of the tasks or on the text of the
// query, and keeps it. {"model", "features", "tokens", "steps", "held_out"}.
JobResult training_work(study::Models models, const TrainingQuery& query, TrainedFeatures& trained,
                        const study::Context& context);

}  // namespace filigree::serve
