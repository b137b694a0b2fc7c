// What models would predict after each of their layers, for one prompt, side by side.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyze/lens/logit_lens.h"
#include "study/figures.h"
#include "study/interventions.h"
#include "study/json.h"
#include "study/tokens.h"

namespace filigree::study {

struct LensRequest {
  std::string prompt = {};
  std::string token = {};  // ranked everywhere; "": each next token of the prompt
  std::int64_t top = 5;    // likeliest tokens kept; one at least
  bool middle = false;     // also between attention and MLP
  Interventions interventions = {};
};

struct LensOfModel {
  std::string model = {}, label = {};
  std::vector<TokenId> ids = {};
  std::optional<TokenId> token = {};
  LogitLens lens = {};
  ShownTokens shown = {};  // of the prompt, the token and all cells

  std::vector<std::string> tokens() const;  // of the prompt
};

struct LensResult {
  LensRequest request = {};
  std::vector<LensOfModel> models = {};
};

LensResult run_logit_lens(const LensRequest& request, std::span<const LoadedModel> models,
                          const Context& context);

Json to_json(const LensResult& result);

// In each cell the likeliest token, coloured by its probability or that of the token asked about.
figure::LabelledMaps figure_of(const LensResult& result);

}  // namespace filigree::study
