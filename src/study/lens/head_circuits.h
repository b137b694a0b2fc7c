// What the heads of a model copy, look for and read of each other, by their weights alone.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analyze/lens/head_circuits.h"
#include "analyze/maps/head_selection.h"
#include "study/evaluation/heads_alive.h"
#include "study/figures.h"
#include "study/json.h"
#include "study/tokens.h"

namespace filigree::study {

struct HeadCircuitsRequest {
  std::string heads = {};              // whose token pairs are listed: "L5H1,L6H*"; "": none
  std::vector<std::string> from = {};  // only pairs that begin with one of these tokens
  // What stands for a token where weights read it, and of kText the text; "": a sample of our own.
  TokenInput input = TokenInput::kFirstMlp;
  std::filesystem::path text = {};
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
  std::string text = {};                       // of kText
  std::optional<HeadsAlive> alive = {};        // nothing: every head was taken
  std::vector<HeadId> listed = {};             // those that ever open, layer by layer
  std::vector<HeadCircuitScores> scores = {};  // of those
  CompositionScores composition = {};          // of every head
  std::vector<PairsOfHead> pairs = {};
  ShownTokens shown = {};  // of the pairs

  // Less the score of random matrices, where that was asked for.
  double composed(Composition kind, const HeadId& earlier, const HeadId& later) const;
  // The request's `top` of all pairs of an earlier and a later head that are listed.
  std::vector<ComposedPair> strongest(Composition kind) const;
};

// Throws RequestError for tokens without heads; for callers that want to fail before long work.
void check_request(const HeadCircuitsRequest& request);

// Of the heads of a gated model only those that open an edge on the text are listed, which the
// model is run on for that; everything else is read off the weights.
HeadCircuits find_head_circuits(const HeadCircuitsRequest& request, const LoadedModel& model,
                                const Context& context);

// Pairs with their tokens as text, which must be among those shown.
Json pairs_json(const std::vector<TokenPair>& pairs, const ShownTokens& shown);

// With kEvery, the scores of all pairs of listed heads too.
enum class Matrices { kEvery, kLeftOut };
Json to_json(const HeadCircuits& found, Matrices matrices);

// A panel a kind of composition, between listed heads. Throws Error for a model of one layer, which
// has none, and where fewer than two layers have a head that opens.
figure::LabelledMaps figure_of(const HeadCircuits& found);

}  // namespace filigree::study
