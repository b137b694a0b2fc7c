// Interventions on the taps of runs.
//
// Whatever is changed at a tap has one form, y = x m + c, element by element: m is 1 and c is 0
// outside of the places, m is 0 for what is ablated or patched and a factor for what is scaled, and
// c holds patched values. So changed runs can be differentiated, and any command that runs a model
// with taps can have them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analyze/interventions/interventions.h"

namespace filigree {

// Throws Error where the place is at a position that a run of `length` tokens does not have.
// Positions that are named by tokens must have been resolved.
void check_positions(const TapPlace& place, std::int64_t length);
// The same, and for a patch from a text, whose ids must be there, that does not have what it takes.
void check_fit(const Change& change, std::int64_t length);

class AppliedInterventions {
 public:
  // Runs the prompts of patches, whose ids must be there, once. Throws Error for a place that the
  // model does not have.
  AppliedInterventions(const Model& model, Interventions interventions);
  AppliedInterventions(const AppliedInterventions&) = delete;
  AppliedInterventions& operator=(const AppliedInterventions&) = delete;

  // Puts the changes on the taps of runs from the embeddings on, before whatever else is asked of
  // the taps. This object must outlive the runs. A run throws Error when it has no such position,
  // or when a patch of all positions comes from a text of another length.
  void put_on(Taps& taps);

  // For texts that grow, pass by pass: the tokens before those of the next pass (in a cache), and
  // the length from which negative positions count. Positions that a pass does not have are left
  // for later ones.
  void set_pass(std::int64_t first, std::int64_t length);
  // For runs of several lengths: positions beyond either end are not there to be changed.
  void allow_shorter_runs() { shorter_runs_ = true; }

  const Interventions& interventions() const { return interventions_; }

 private:
  Variable changed(std::size_t number, const std::string& tap, const Variable& value) const;

  Interventions interventions_;
  std::vector<std::map<std::string, Tensor>>
      sources_;                                 // of each change: values by tap, [1, T, ...]
  std::vector<std::vector<std::string>> taps_;  // of each change
  std::int64_t first_ = 0;
  std::optional<std::int64_t> length_ = {};
  bool shorter_runs_ = false;
  std::int64_t total_ = 0;  // tokens up to the end of the pass at hand
};

}  // namespace filigree
