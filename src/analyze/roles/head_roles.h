// The roles of many heads at once, fed by capture_maps.
#pragma once

#include <span>
#include <vector>

#include "filigree/analyze/maps/capture.h"
#include "filigree/analyze/roles/head_role.h"
#include "filigree/analyze/roles/repeated_text.h"

namespace filigree {

class HeadRoles {
 public:
  explicit HeadRoles(std::size_t heads) : roles_(heads) {}

  // A HeadMapConsumer for ordinary text.
  void add(std::span<const HeadMap> heads);
  // Runs the model on repeated text.
  void add_repeated(const Model& model, const RepeatedText& text, const std::vector<HeadId>& heads,
                    AppliedInterventions* interventions = nullptr);

  // By slot.
  std::vector<RoleScores> scores() const;

 private:
  std::vector<RoleAccumulator> roles_;
};

}  // namespace filigree
