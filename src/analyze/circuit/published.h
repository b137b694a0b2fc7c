// Circuits of GPT-2 small as published, and how well an importance agrees with them.
//
//   ioi           Wang et al. 2022, "Interpretability in the Wild: a Circuit for Indirect Object
//                 Identification in GPT-2 small", arXiv 2211.00593: 26 heads by class
//   greater-than  Hanna et al. 2023, "How does GPT-2 compute greater-than?", arXiv 2305.00586:
//                 8 heads and the MLPs 8 to 11
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/circuit/patch.h"

namespace filigree {

struct PublishedPart {
  PatchTarget target;
  std::string_view role;  // "name mover"
};

struct PublishedCircuit {
  std::string_view task;
  std::string_view source;
  std::vector<PublishedPart> parts;

  const PublishedPart* find(const PatchTarget& target) const;
  bool speaks_of(Site site) const;
};

// Of that task and a model of GPT-2 small's shape (whose weights nobody checks); null when nothing
// was published.
const PublishedCircuit* published_circuit(std::string_view task, const ModelConfig& config);

// Scores of parts against a published circuit. Parts of a kind that the circuit does not speak of
// (MLPs in that of ioi) do not count.
struct Agreement {
  std::size_t published = 0;  // parts of the published circuit that have a score
  std::size_t kept = 0;       // parts of the circuit that was found
  std::size_t common = 0;
  double precision = 0;  // common / kept
  double recall = 0;     // common / published
  // Probability that a part of the published circuit has a higher score than one outside it: 1 when
  // all have, 0.5 for chance. The area under the receiver operating characteristic.
  double area = 0.5;
};

// `parts` and their scores (the higher the more important), each once, and those that were kept.
// Throws Error when there is no part inside or outside the published circuit.
Agreement agreement(const PublishedCircuit& circuit, const std::vector<PatchTarget>& parts,
                    const std::vector<double>& scores, const std::vector<PatchTarget>& kept);

}  // namespace filigree
