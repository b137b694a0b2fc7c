// Whether the numbers of a sparse run can be taken at their word.
//
// A gap against a dense model that had not converged says nothing: the sparse model trains on and
// its loss falls, whatever its gates cost. And a run may keep the loss because it closed
// everything: then the text was too easy for the model, or the model too poor, to need attention at
// all. Both are findings; a run that has one did not show what it was asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/names.h"
#include "study/evaluation/evaluation.h"
#include "study/json.h"

namespace filigree::study {

// The model whose loss a budget is counted from.
enum class BudgetReference { kDense, kControl };

enum class Finding {
  kNoOpenEdges,       // all gates are closed on held-out text
  kIdleAttention,     // closing them all costs nothing
  kUnconvergedDense,  // the control's loss falls by more than the budget
  kBelowDense,        // the sparse model's does, and there is no control
};

struct SparsifyVerdict {
  struct Found {
    Finding finding = {};
    std::string text;  // in words, with the numbers and what to do
  };
  struct Difference {
    double nats = 0.0;
    std::optional<double> error;  // standard; nothing where it is not known
  };

  BudgetReference against = {};
  double budget = 0.0;
  Difference gap;                            // the sparse model's loss above the reference's
  std::optional<Difference> control;         // the control's loss above the dense model's
  double active_edges = 0.0;                 // share, on held-out text
  std::optional<double> worth_of_attention;  // nats that closing all gates costs
  std::vector<Found> found;

  bool holds() const { return found.empty(); }
};

// What was measured on held-out text, all models on the same windows.
struct SparsifyMeasurements {
  const Evaluation& dense;
  const Evaluation& sparse;
  const Evaluation* control = nullptr;
  std::optional<double> worth_of_attention = {};
};

// Closing all gates costs less than this: attention does nothing.
inline constexpr double kLeastWorth = 1e-3;

// A loss counts as having fallen by more than the budget where it has by two standard errors more.
SparsifyVerdict judge_sparsify(BudgetReference against, double budget,
                               const SparsifyMeasurements& measured);

Json to_json(const SparsifyVerdict& verdict);

}  // namespace filigree::study

namespace filigree {

template <>
inline constexpr auto kNames<study::BudgetReference> = std::to_array<Named<study::BudgetReference>>(
    {{study::BudgetReference::kDense, "dense"}, {study::BudgetReference::kControl, "control"}});

template <>
inline constexpr auto kNames<study::Finding> =
    std::to_array<Named<study::Finding>>({{study::Finding::kNoOpenEdges, "no-open-edges"},
                                          {study::Finding::kIdleAttention, "idle-attention"},
                                          {study::Finding::kUnconvergedDense, "unconverged-dense"},
                                          {study::Finding::kBelowDense, "below-dense"}});

}  // namespace filigree
