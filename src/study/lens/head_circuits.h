// What the heads of a model copy, look for and read of each other, by their weights alone.
#pragma once

#include <string>
#include <vector>

#include "filigree/analyze/lens/head_circuits.h"
#include "filigree/analyze/maps/head_selection.h"
#include "filigree/study/figures.h"
#include "filigree/study/json.h"
#include "filigree/study/tokens.h"

namespace filigree::study {

struct HeadCircuitsRequest {
  std::string heads = {};              // whose token pairs are listed: "L5H1,L6H*"; "": none
  std::vector<std::string> from = {};  // only pairs that begin with one of these tokens
  bool less_random = false;  // take the expected score of random matrices off compositions
  std::size_t top = 10;      // of each list
};

struct ComposedPair {
  HeadId earlier = {}, later = {};
  double score = 0;
};

struct PairsOfHead {
  HeadId head = {};
  std::vector<TokenPair> ov = {}, qk = {};
};

struct HeadCircuits {
  HeadCircuitsRequest request = {};
  std::string model = {}, label = {};
  std::int64_t layers = 0, heads = 0;          // heads of a layer
  std::vector<HeadCircuitScores> scores = {};  // of every head, layer by layer
  CompositionScores composition = {};
  std::vector<PairsOfHead> pairs = {};
  ShownTokens shown = {};  // of the pairs

  HeadId head(std::size_t index) const;
  // Less the score of random matrices, where that was asked for; heads numbered through.
  double composed(Composition kind, std::int64_t earlier, std::int64_t later) const;
  // The request's `top` of all pairs of an earlier and a later head.
  std::vector<ComposedPair> strongest(Composition kind) const;
};

// Throws RequestError for tokens without heads; for callers that want to fail before long work.
void check_request(const HeadCircuitsRequest& request);

// Reads the model's weights where they lie on the CPU; nothing is run.
HeadCircuits find_head_circuits(const HeadCircuitsRequest& request, const LoadedModel& model,
                                const Context& context);

// Pairs with their tokens as text, which must be among those shown.
Json pairs_json(const std::vector<TokenPair>& pairs, const ShownTokens& shown);

// With kEvery, the scores of all pairs of heads too.
enum class Matrices { kEvery, kLeftOut };
Json to_json(const HeadCircuits& found, Matrices matrices);

// A panel a kind of composition. Throws Error for a model of one layer, which has none.
figure::LabelledMaps figure_of(const HeadCircuits& found);

}  // namespace filigree::study
