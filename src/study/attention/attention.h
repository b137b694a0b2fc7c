// The attention maps of a model or two on prompts, and what they show.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyze/statistics/comparison.h"
#include "study/attention/attention_figures.h"
#include "study/attention/model_analysis.h"
#include "study/figures.h"

namespace filigree::study {

struct AttentionRequest {
  PromptRequest prompts = {};
  std::string heads = "*";  // as analyze/maps/head_selection.h reads it
  bool roles = false, statistics = false, pairs = false;
  // Each by its ending: .npz, .safetensors or .json with the maps, a figure of them, or .csv with
  // the statistics, which are then made.
  std::vector<std::filesystem::path> files = {};
  MapKind kind = MapKind::kWeights;  // of the maps in files
  bool average = false;              // maps of the mean over the prompts, which are of one length
  Interventions interventions = {};  // in the runs of every model
  FigureStyle style = {};
  GridLayout grid = {};  // of figures
};

struct AttentionResult {
  std::vector<Prompt> prompts = {};
  std::vector<HeadId> heads = {};
  std::vector<AnalysedModel> models = {};
  // Of two models with statistics.
  std::optional<std::vector<ComparedStatistic>> comparison = {};
  std::vector<KeptConnections> connections = {};  // of such a comparison
  MapKind kind = MapKind::kWeights;
  Interventions interventions = {};
  std::vector<std::filesystem::path> files = {};  // as they were asked for
};

// Throws RequestError for what does not go together whatever the models are; for callers that want
// to know before they load them.
void check_request(const AttentionRequest& request);

// Of one model or two. Throws Error for heads that one of them does not have, and all that
// read_prompts throws.
AttentionResult run_attention(const AttentionRequest& request, std::span<const LoadedModel> models,
                              const Context& context);

Json to_json(const AttentionResult& result);

}  // namespace filigree::study
