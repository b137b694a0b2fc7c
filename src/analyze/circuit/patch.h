// What an intervention replaces: a place in the model, whole or by layer, head and position.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/component.h"
#include "base/names.h"
#include "model/model.h"

namespace filigree {

enum class Site {
  kEmbedding,     // hook_embed [B, T, d]
  kResidual,      // hook_resid_pre [B, T, d]
  kQuery,         // hook_q [B, T, H, D]
  kKey,           // hook_k [B, T, G, D]; the head is a key head
  kValue,         // hook_v, likewise
  kPattern,       // hook_pattern [B, H, T, T]
  kZ,             // hook_z [B, T, H, D]: what a head read
  kAttentionOut,  // hook_attn_out [B, T, d]
  kResidualMid,   // hook_resid_mid [B, T, d]
  kMlpOut,        // hook_mlp_out [B, T, d]
};

template <>
inline constexpr auto kNames<Site> = std::to_array<Named<Site>>({{Site::kResidual, "resid"},
                                                                 {Site::kResidualMid, "resid-mid"},
                                                                 {Site::kAttentionOut, "attn-out"},
                                                                 {Site::kMlpOut, "mlp-out"},
                                                                 {Site::kZ, "z"},
                                                                 {Site::kQuery, "q"},
                                                                 {Site::kKey, "k"},
                                                                 {Site::kValue, "v"},
                                                                 {Site::kPattern, "pattern"},
                                                                 {Site::kEmbedding, "embedding"}});

// Whether it is made of heads.
bool has_heads(Site site);

// -1 stands for all of them.
struct PatchTarget {
  Site site = Site::kZ;
  std::int64_t layer = 0;  // not read for kEmbedding
  std::int64_t head = -1;
  std::int64_t position = -1;  // of kPattern: the query
  std::int64_t key = -1;       // of kPattern only

  friend bool operator==(const PatchTarget&, const PatchTarget&) = default;
};

// What a head or an MLP writes, as a whole; throws Error for other components.
PatchTarget target_of(const Component& component);

// Everything that one run replaces.
using PatchSet = std::vector<PatchTarget>;

std::string tap_name(const PatchTarget& target);
std::string text_of(const PatchTarget& target);  // "L3H7", "L3 MLP", "L3H7 pattern 5 <- 2"

// Throws Error naming what the model or a prompt of `length` tokens does not have.
void check_target(const PatchTarget& target, const ModelConfig& config, std::int64_t length,
                  const std::string& what = {});

// The elements of one row of the batch that a target covers, as ranges: calls body(offset, whole,
// count) for `count` neighbours at `offset` of a tensor that holds the positions from `first` on
// and at `whole` of one that holds all `length` of them. `extents` is the shape of the former.
using RangeOfTarget =
    std::function<void(std::int64_t offset, std::int64_t whole, std::int64_t count)>;
void for_ranges(const PatchTarget& target, const Shape& extents, std::int64_t row,
                std::int64_t whole_row, std::int64_t first, const RangeOfTarget& body);

// Every head's z, layer by layer; every MLP's output.
std::vector<PatchTarget> all_heads(const ModelConfig& config);
std::vector<PatchTarget> all_mlps(const ModelConfig& config);

}  // namespace filigree
