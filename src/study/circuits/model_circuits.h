// The circuits of models: what a model can do is checked once, and one search made for each kind of
// part.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "study/circuits/circuit_search.h"

namespace filigree::study {

struct ModelCircuit {
  std::string model = {}, label = {};
  LoadedTask task = {};
  TaskCheck check = {};
  SearchOptions options = {};
  // Absent when the model is not better than chance or the corruption does nothing.
  std::optional<FoundCircuit> found = {};

  // The smallest circuit at the level: parts without those that lead nowhere. Nothing where the
  // parts do not carry the task.
  std::optional<std::size_t> size() const;
  bool carried() const { return found && found->carried; }
};

// Circuits of one kind of part, one a model.
using CircuitsOfKind = std::vector<ModelCircuit>;

// How many times smaller than the first model's circuit; nothing where either has none.
std::optional<double> size_ratio(const ModelCircuit& first, const ModelCircuit& circuit);

struct CircuitRequest {
  TaskSelection task = {};
  SearchOptions search = {};
  // Keeps what is done, also when the work is stopped, so that the same request goes on there.
  // Empty: nothing is kept.
  std::filesystem::path state = {};
};

// Throws RequestError for options that do not go together and Error for a task that there is not;
// for callers that want to fail before long work.
void check_request(const CircuitRequest& request);

// The same of several methods, of which none may be named twice.
void check_methods(const CircuitRequest& request, const std::vector<Method>& methods);

// One a model. Throws Stopped between steps, having kept what was done.
CircuitsOfKind find_circuits(const CircuitRequest& request, std::span<const LoadedModel> models,
                             const Context& context);

// The same by several methods, whatever request.search.method says: what find_circuits gives, one
// for each.
std::vector<CircuitsOfKind> find_circuits_by(const std::vector<Method>& methods,
                                             const CircuitRequest& request,
                                             std::span<const LoadedModel> models,
                                             const Context& context);

// Spearman's correlation of the absolute scores of all parts: whether two methods put them in one
// order. Nothing where either has no circuit.
std::optional<double> rank_correlation(const ModelCircuit& a, const ModelCircuit& b);

// Several kinds of one model, one circuit a kind. Reports tell the kinds apart where there are
// several.
std::vector<ModelCircuit> find_model_circuits(const LoadedModel& model,
                                              const TaskSelection& selection,
                                              std::span<const SearchOptions> kinds,
                                              const Context& context);

// With kEvery, the score of every part too, and of attention edges those of every prompt that
// matter most: a prompt has a hundred thousand.
enum class Scores { kEvery, kLeftOut };
inline constexpr std::size_t kCellsOfPrompt = 10;
Json to_json(const ModelCircuit& circuit, Scores scores = Scores::kEvery,
             std::size_t cells_of_prompt = kCellsOfPrompt);
// The task, how parts were scored and chosen, and every model's circuit with its curve.
Json to_json(const CircuitsOfKind& circuits, Scores scores,
             std::size_t cells_of_prompt = kCellsOfPrompt);
// Of several methods: each as above, and the rank correlations of every pair in every model.
Json methods_json(const std::vector<CircuitsOfKind>& methods, Scores scores,
                  std::size_t cells_of_prompt = kCellsOfPrompt);

}  // namespace filigree::study
