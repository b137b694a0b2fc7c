// The edges of a circuit over a prompt, and the lines that stand for them in a drawing: one for all
// heads of a layer between the same two tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/component.h"

namespace filigree::figure {

struct TokenEdge {
  HeadId head = {};
  std::size_t query = 0, key = 0;        // places in the tokens, the key not after the query
  double score = 0;                      // below 0: it works against the answer
  std::optional<double> attention = {};  // the head's weight on the key, where it is known
};

struct TokenLine {
  std::size_t layer = 0, query = 0, key = 0;
  std::vector<std::int64_t> heads = {};  // strongest first
  std::vector<double> attention = {};    // weights of the heads; none unless all are known
  double score = 0;                      // the sum
  double weight = 0;                     // the sum of the absolute scores
};

// The heaviest first.
std::vector<TokenLine> token_lines(const std::vector<TokenEdge>& edges);

// "L6H7"; of several heads "L6H7,9", of more than three their number.
std::string name_of(const TokenLine& line);
// With what they attend with behind it: "L6H7 0.93", "L6H7,9 0.93,0.41". The name alone where there
// are more than three heads or the weights are not known.
std::string name_with_attention(const TokenLine& line);

}  // namespace filigree::figure
