// Whether heads that read names move them: what the weights of a name-reader write for the names of
// the probes, with the token inputs of filigree/lens.h (embeddings through the MLP of layer 0).
#pragma once

#include <vector>

#include "filigree/model.h"
#include "filigree/names.h"
#include "filigree/roles.h"

namespace filigree {

// Of the heads whose scores make them name-readers, by place in `heads`; the others are left alone.
void find_name_copying(const Model& model, const std::vector<NameProbe>& probes,
                       const std::vector<HeadId>& heads, std::vector<RoleScores>& scores,
                       const RoleThresholds& thresholds = kRoleThresholds);

}  // namespace filigree
