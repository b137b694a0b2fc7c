// The roles of many heads at once, fed by capture_maps.
#pragma once

#include <span>
#include <vector>

#include "analyze/capture.h"
#include "analyze/head_role.h"
#include "analyze/repeated_text.h"

namespace filigree {

class HeadRoles {
 public:
  explicit HeadRoles(std::size_t heads) : roles_(heads) {}

  // A HeadMapConsumer for ordinary text.
  void add(std::span<const HeadMap> heads);
  // Runs the model on repeated text.
  void add_repeated(const Model& model, const RepeatedText& text, const std::vector<HeadId>& heads);

  // By slot.
  std::vector<RoleScores> scores() const;

 private:
  std::vector<RoleAccumulator> roles_;
};

}  // namespace filigree
