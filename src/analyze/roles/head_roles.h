// The roles of many heads at once, fed by capture_maps.
#pragma once

#include <span>
#include <vector>

#include "analyze/maps/capture.h"
#include "analyze/roles/head_role.h"
#include "analyze/roles/name_probe.h"
#include "analyze/roles/repeated_text.h"

namespace filigree {

class HeadRoles {
 public:
  explicit HeadRoles(std::size_t heads) : roles_(heads) {}

  // A HeadMapConsumer for ordinary text. `delimiters` says of every token of each prompt whether it
  // is one; empty: not known.
  void add(std::span<const HeadMap> heads, const std::vector<std::vector<bool>>& delimiters = {});
  // Runs the model on repeated text.
  void add_repeated(const Model& model, const RepeatedText& text, const std::vector<HeadId>& heads,
                    AppliedInterventions* interventions = nullptr);

  // Runs the model on sentences with names.
  void add_names(const Model& model, const std::vector<NameProbe>& probes,
                 const std::vector<HeadId>& heads, AppliedInterventions* interventions = nullptr);

  // By slot.
  std::vector<RoleScores> scores() const;

 private:
  std::vector<RoleAccumulator> roles_;
};

}  // namespace filigree
