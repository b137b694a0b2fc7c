#include "filigree/analyze/circuit/published.h"

#include <algorithm>

#include "filigree/base/error.h"

namespace filigree {
namespace {

PublishedPart head(std::int64_t layer, std::int64_t index, std::string_view role) {
  return {{Site::kZ, layer, index}, role};
}

PublishedPart mlp(std::int64_t layer, std::string_view role) {
  return {{Site::kMlpOut, layer}, role};
}

// The circuit of the paper is of heads alone; its authors leave the MLPs as they are.
PublishedCircuit ioi() {
  PublishedCircuit circuit;
  circuit.task = "ioi";
  circuit.source = "Wang et al. 2022, arXiv 2211.00593";
  const auto add = [&](std::string_view role,
                       std::initializer_list<std::pair<std::int64_t, std::int64_t>> heads) {
    for (const auto& [layer, index] : heads) circuit.parts.push_back(head(layer, index, role));
  };
  add("name mover", {{9, 9}, {10, 0}, {9, 6}});
  add("backup name mover", {{10, 10}, {10, 6}, {10, 2}, {10, 1}, {11, 2}, {9, 7}, {9, 0}, {11, 9}});
  add("negative name mover", {{10, 7}, {11, 10}});
  add("s-inhibition", {{7, 3}, {7, 9}, {8, 6}, {8, 10}});
  add("induction", {{5, 5}, {5, 8}, {5, 9}, {6, 9}});
  add("duplicate token", {{0, 1}, {0, 10}, {3, 0}});
  add("previous token", {{2, 2}, {4, 11}});
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
  const std::pair<std::int64_t, std::int64_t> heads[] = {{5, 1},  {5, 5}, {6, 1},  {6, 9},
                                                         {7, 10}, {8, 8}, {8, 11}, {9, 1}};
  for (const auto& [layer, index] : heads)
    circuit.parts.push_back(head(layer, index, "looks at the year"));
  for (const std::int64_t layer : {8, 9, 10, 11})
    circuit.parts.push_back(mlp(layer, "computes greater-than"));
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
