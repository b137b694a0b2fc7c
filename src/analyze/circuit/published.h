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
};

// Of that task and a model of GPT-2 small's shape (whose weights nobody checks); null when nothing
// was published.
const PublishedCircuit* published_circuit(std::string_view task, const ModelConfig& config);

// An order of parts against a published circuit. MLPs count where the order has them.
struct Agreement {
  std::size_t published = 0;  // parts of the published circuit that are in the order
  std::size_t found = 0;      // of these, how many are among the first `kept`
  std::size_t kept = 0;
  double precision = 0;  // found / kept
  double recall = 0;     // found / published
  // Probability that a part of the circuit comes before one outside it: 1 when all do, 0.5 for
  // chance.
  double area = 0.5;
};

// `order` has every part once, the most important first, and `scores` their importance, of which
// equal ones share their place. Throws Error when there is no part inside or outside the circuit.
Agreement agreement(const PublishedCircuit& circuit, const std::vector<PatchTarget>& order,
                    const std::vector<double>& scores, std::size_t kept);

}  // namespace filigree
