#include <fmt/format.h>

#include "filigree/training_study.h"

namespace filigree::study {
namespace {

// Of a.loss() above b.loss().
SparsifyVerdict::Difference difference_of(const Evaluation& a, const Evaluation& b) {
  return {a.loss() - b.loss(), change_error(a, b)};
}

bool fell_by_more(const SparsifyVerdict::Difference& change, double budget) {
  return -change.nats - 2.0 * change.error.value_or(0.0) > budget;
}

std::string nats_text(const SparsifyVerdict::Difference& change) {
  return change.error ? fmt::format("{:+.4f} ±{:.4f} nats", change.nats, *change.error)
                      : fmt::format("{:+.4f} nats", change.nats);
}

constexpr const char* kRemedy =
    "Train the dense model until its control stands still, or hold the budget against the control";

Json difference_json(const SparsifyVerdict::Difference& change) {
  return {{"change", change.nats}, {"error", change.error ? Json(*change.error) : Json()}};
}

}  // namespace

SparsifyVerdict judge_sparsify(BudgetReference against, double budget,
                               const SparsifyMeasurements& measured) {
  const Evaluation *control = measured.control, &dense = measured.dense, &sparse = measured.sparse;
  const bool by_control = against == BudgetReference::kControl && control != nullptr;
  SparsifyVerdict verdict{.against = against,
                          .budget = budget,
                          .gap = difference_of(sparse, by_control ? *control : dense),
                          .control = {},
                          .active_edges = sparse.connectivity().active_edges,
                          .worth_of_attention = measured.worth_of_attention,
                          .found = {}};
  if (control != nullptr) verdict.control = difference_of(*control, dense);

  if (verdict.active_edges == 0.0)
    verdict.found.push_back(
        {Finding::kNoOpenEdges,
         fmt::format("no edge of the sparse model is open on held-out text, at {} against the {}: "
                     "this loss needs no attention, so the run says nothing about which edges "
                     "matter. Start from a model that has learned to use its attention, or allow "
                     "a smaller loss budget",
                     nats_text(verdict.gap), name_of(against))});
  else if (verdict.worth_of_attention && *verdict.worth_of_attention < kLeastWorth)
    verdict.found.push_back(
        {Finding::kIdleAttention,
         fmt::format("the attention of the sparse model does nothing: closing all its gates "
                     "changes the held-out loss by {:+.4f} nats. Start from a model that has "
                     "learned to use its attention, or allow a smaller loss budget",
                     *verdict.worth_of_attention)});
  if (by_control) return verdict;
  if (verdict.control && fell_by_more(*verdict.control, budget))
    verdict.found.push_back(
        {Finding::kUnconvergedDense,
         fmt::format("the dense model had not converged: as many steps more without gates, the "
                     "control, change its held-out loss by {}, which is more than the loss budget "
                     "of {}. The sparse model's loss is {} from the control's and {} from the "
                     "dense model's. {}",
                     nats_text(*verdict.control), budget,
                     nats_text(difference_of(sparse, *control)), nats_text(verdict.gap), kRemedy)});
  else if (!verdict.control && fell_by_more(verdict.gap, budget))
    verdict.found.push_back(
        {Finding::kBelowDense,
         fmt::format(
             "the sparse model's held-out loss is {} from the dense model's, a fall of more "
             "than the loss budget of {}: the dense model had not converged, and what its "
             "edges are worth cannot be told from what the further steps brought. {}",
             nats_text(verdict.gap), budget, kRemedy)});
  return verdict;
}

Json to_json(const SparsifyVerdict& verdict) {
  Json found = Json::array();
  for (const SparsifyVerdict::Found& one : verdict.found)
    found.push_back({{"finding", name_of(one.finding)}, {"text", one.text}});
  return {{"holds", verdict.holds()},
          {"against", name_of(verdict.against)},
          {"budget", verdict.budget},
          {"gap", difference_json(verdict.gap)},
          {"control", verdict.control ? difference_json(*verdict.control) : Json()},
          {"active_edges", verdict.active_edges},
          {"worth_of_attention",
           verdict.worth_of_attention ? Json(*verdict.worth_of_attention) : Json()},
          {"found", found}};
}

}  // namespace filigree::study
