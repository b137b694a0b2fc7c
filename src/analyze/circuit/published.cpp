#include <algorithm>

#include "filigree/circuit.h"
#include "filigree/error.h"

namespace filigree {
namespace {

void add(PublishedCircuit& circuit, std::string_view role,
         std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    circuit.parts.push_back({target_of(parse_component(name)), role});
}

// The circuit of the paper is of heads alone; its authors leave the MLPs as they are.
PublishedCircuit ioi() {
  PublishedCircuit circuit;
  circuit.task = "ioi";
  circuit.source = "Wang et al. 2022, arXiv 2211.00593";
  add(circuit, "name mover", {"L9H9", "L10H0", "L9H6"});
  add(circuit, "backup name mover",
      {"L10H10", "L10H6", "L10H2", "L10H1", "L11H2", "L9H7", "L9H0", "L11H9"});
  add(circuit, "negative name mover", {"L10H7", "L11H10"});
  add(circuit, "s-inhibition", {"L7H3", "L7H9", "L8H6", "L8H10"});
  add(circuit, "induction", {"L5H5", "L5H8", "L5H9", "L6H9"});
  add(circuit, "duplicate token", {"L0H1", "L0H10", "L3H0"});
  add(circuit, "previous token", {"L2H2", "L4H11"});
  return circuit;
}

// The heads that look at the first year and the late MLPs that turn it into later years. The
// authors' drawing of the circuit also has the early MLPs 0 to 3, through which the input reaches
// these heads; they belong to how the year is read, not to the comparison, and are not counted
// here.
PublishedCircuit greater_than() {
  PublishedCircuit circuit;
  circuit.task = "greater-than";
  circuit.source = "Hanna et al. 2023, arXiv 2305.00586";
  add(circuit, "looks at the year",
      {"L5H1", "L5H5", "L6H1", "L6H9", "L7H10", "L8H8", "L8H11", "L9H1"});
  add(circuit, "computes greater-than", {"L8 MLP", "L9 MLP", "L10 MLP", "L11 MLP"});
  return circuit;
}

}  // namespace

const PublishedPart* PublishedCircuit::find(const PatchTarget& target) const {
  for (const PublishedPart& part : parts)
    if (part.target == target) return &part;
  return nullptr;
}

bool PublishedCircuit::speaks_of(Site site) const {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const PublishedPart& part) { return part.target.site == site; });
}

const PublishedCircuit* published_circuit(std::string_view task, const ModelConfig& config) {
  if (config.family != "gpt2" || config.layers != 12 || config.heads != 12 || config.width != 768 ||
      config.vocabulary != 50257)
    return nullptr;
  static const PublishedCircuit circuits[] = {ioi(), greater_than()};
  for (const PublishedCircuit& circuit : circuits)
    if (circuit.task == task) return &circuit;
  return nullptr;
}

Agreement agreement(const PublishedCircuit& circuit, const std::vector<PatchTarget>& parts,
                    const std::vector<double>& scores, const std::vector<PatchTarget>& kept) {
  require(parts.size() == scores.size(), "agreement: {} scores for {} parts", scores.size(),
          parts.size());
  std::vector<double> inside, outside;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (circuit.speaks_of(parts[i].site))
      (circuit.find(parts[i]) != nullptr ? inside : outside).push_back(scores[i]);
  require(!inside.empty() && !outside.empty(),
          "agreement: {} parts are in the published circuit and {} outside it; there must be some "
          "of both",
          inside.size(), outside.size());
  Agreement result;
  result.published = inside.size();
  for (const PatchTarget& target : kept) {
    if (!circuit.speaks_of(target.site)) continue;
    ++result.kept;
    if (circuit.find(target) != nullptr) ++result.common;
  }
  const auto common = static_cast<double>(result.common);
  result.precision = result.kept == 0 ? 0 : common / static_cast<double>(result.kept);
  result.recall = common / static_cast<double>(result.published);
  double before = 0;
  for (const double in : inside)
    for (const double out : outside) before += in > out ? 1.0 : (in == out ? 0.5 : 0.0);
  result.area = before / (static_cast<double>(inside.size()) * static_cast<double>(outside.size()));
  return result;
}

}  // namespace filigree
