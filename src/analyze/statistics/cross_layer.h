// What heads read of earlier heads on prompts, in place of what their weights could read.
//
// At position t a head reads x_t W / s_t: x_t the residual stream before its layer, W its query,
// key or value matrix with the norm's gain and centring folded in, s_t the norm's scale. The stream
// is a sum, of which an earlier head a wrote r_t. Its share of what is read is
//
//   sum_t (r_t W . x_t W) / s_t^2   over   sum_t |x_t W|^2 / s_t^2
//
// The shares of all that was written (embeddings, heads, MLPs, biases) sum to 1; one that works
// against the rest is negative. A pair of heads interacts along W when the share is at least
// kInteraction in magnitude.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "filigree/interventions.h"
#include "filigree/maps.h"
#include "filigree/model.h"
#include "filigree/names.h"

namespace filigree {

inline constexpr double kInteraction = 0.05;

// Of one head on one prompt, along q, k and v.
struct ReadsOfHeads {
  std::array<std::vector<double>, 3> shares = {};  // of the earlier heads, layer by layer

  std::array<double, 3> whole() const;  // of all earlier heads together
  std::array<double, 3> pairs() const;  // earlier heads with at least kInteraction
};

// Calls `found` for every prompt and every head of `heads`, by number; reads at most 32 positions
// of a prompt, evenly spread. Heads of layer 0 read no heads.
void find_cross_layer_reads(
    const Model& model, std::span<const Prompt> prompts, const std::vector<HeadId>& heads,
    AppliedInterventions* interventions,
    const std::function<void(std::size_t prompt, std::size_t head, const ReadsOfHeads&)>& found);

}  // namespace filigree
