// Changes made to a running model.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/names.h"
#include "filigree/taps.h"
#include "filigree/tokenizer.h"

namespace filigree {

class Model;
struct ModelConfig;

// -------------------------------------------------------------------------------------------------
// What an intervention replaces: a place in the model, whole or by layer, head and position.

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
  kExpertOut,     // mlp.hook_expert_out [B, T, E, d]: what each expert of a mixture adds
};

template <>
inline constexpr auto kNames<Site> = std::to_array<Named<Site>>({{Site::kResidual, "resid"},
                                                                 {Site::kResidualMid, "resid-mid"},
                                                                 {Site::kAttentionOut, "attn-out"},
                                                                 {Site::kMlpOut, "mlp-out"},
                                                                 {Site::kExpertOut, "expert-out"},
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
  std::int64_t expert = -1;    // of kExpertOut only

  friend bool operator==(const PatchTarget&, const PatchTarget&) = default;
};

// What a head, an MLP or an expert writes, as a whole; throws Error for other components.
PatchTarget target_of(const Component& component);

// Everything that one run replaces.
using PatchSet = std::vector<PatchTarget>;

std::string tap_name(const PatchTarget& target);
std::string text_of(const PatchTarget& target);  // "L3H7", "L3 MLP", "L3E5", "L3H7 pattern 5 <- 2"

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

// Every head's z, layer by layer; every MLP's output, or of mixtures what each expert adds.
// Patching one expert takes a run in which all of its layer are computed.
std::vector<PatchTarget> all_heads(const ModelConfig& config);
std::vector<PatchTarget> all_mlps(const ModelConfig& config);

// -------------------------------------------------------------------------------------------------
// What is changed in a run, as users write it: parsed here, and nowhere else.
//
//   ablate   L6H11,L7MLP              set to zero
//   scale    L6H11=0.5,L7MLP=2        multiplied
//   patch    L6H11@-1=Another text    takes the value that it has in the run on another text
//
// A place is a part of the model and, if need be, what of it and where in the text:
//
//   L6H11  what head 11 of layer 6 writes (its z)     L7MLP  "L7 MLP"  what that MLP writes
//   L6H*  L6  all heads of a layer                    L*H3  L*MLP      in every layer
//   L3E5  what expert 5 of layer 3 adds               L3E*             each expert of a layer
//   L6H11.q  its queries; likewise k, v, z and pattern
//   L6.resid  the stream before layer 6; likewise resid-mid, attn-out, mlp-out and expert-out
//   embedding  what the tokens are embedded as
//   blocks.6.mlp.hook_post  any tap by its name
//   ...@3  only at position 3, the first being 0; ...@-1  only at the last
//   ...@START  ...@END  at the first and the last; ...@' John'  ...@John  at this token
//   L6H11.pattern@5<-2  only the weight of query 5 on key 2
//
// Heads of k and v are key heads, where several heads share them.

struct TapPlace {
  std::string text = {};          // as it was written
  std::string tap = {};           // one tap's name, or with '*' for the layer that of every layer
  std::optional<Site> site = {};  // unless it was written as a tap
  std::optional<std::int64_t> layer = {}, head = {}, expert = {};  // none: all of them
  std::optional<std::int64_t> position = {}, key = {};  // none: all; negative: from the end
  // Positions that were named by their tokens, until resolve_positions() has seen the text.
  std::string position_token = {}, key_token = {};

  bool at_position() const { return position || !position_token.empty(); }

  friend bool operator==(const TapPlace&, const TapPlace&) = default;
};

enum class ChangeKind { kPatch, kScale, kAblate };

template <>
inline constexpr auto kNames<ChangeKind> =
    std::to_array<Named<ChangeKind>>({{ChangeKind::kPatch, "patch"},
                                      {ChangeKind::kScale, "scale"},
                                      {ChangeKind::kAblate, "ablate"}});

struct Change {
  ChangeKind kind = ChangeKind::kAblate;
  TapPlace place = {};
  double factor = 0;              // of kScale; an ablated part is multiplied by 0
  std::string prompt = {};        // of kPatch
  std::vector<TokenId> ids = {};  // of the prompt, once a tokenizer has seen it

  friend bool operator==(const Change&, const Change&) = default;
};

// In the order in which a run makes them: patches, then factors, then ablations, so that what is
// ablated is zero whatever else happens to it.
struct Interventions {
  std::vector<Change> changes = {};

  bool empty() const { return changes.empty(); }
  // Those that mean the same for any text: no patches, and nothing at a position.
  Interventions for_any_text() const;
  // Numbers in the place of tokens, of the text with these. Throws Error, with the choices, for a
  // token that the text does not have or has several times.
  void resolve_positions(std::span<const std::string> tokens);
  // Each takes what is written after the option of its name, and throws Error for what it cannot
  // read. Whether the model has the place shows when it is run.
  void add_ablations(std::string_view text);  // with commas
  void add_scales(std::string_view text);     // with commas
  void add_patch(std::string_view text);      // one: a prompt may hold commas

  friend bool operator==(const Interventions&, const Interventions&) = default;

 private:
  void add(Change change);
};

TapPlace parse_tap_place(std::string_view text);

// "L6H11 ablated", "L7MLP x 2", "L6H11@-1 from 'Another text'".
std::string text_of(const Change& change);
// All of them with commas; "" when there are none.
std::string text_of(const Interventions& interventions);

// Throws Error for a place that the model does not have, with the nearest names of a tap.
void check_tap_place(const TapPlace& place, const Model& model);
// Throws Error: the model has no tap of this name, and the nearest ones.
[[noreturn]] void fail_no_tap(std::string_view name, const Model& model);

// Whether the values of a tap are [B, H, queries, keys].
bool is_over_keys(std::string_view tap);

// -------------------------------------------------------------------------------------------------
// Interventions on the taps of runs.
//
// Whatever is changed at a tap has one form, y = x m + c, element by element: m is 1 and c is 0
// outside of the places, m is 0 for what is ablated or patched and a factor for what is scaled, and
// c holds patched values. So changed runs can be differentiated, and any command that runs a model
// with taps can have them.

// Throws Error where the place is at a position that a run of `length` tokens does not have.
// Positions that are named by tokens must have been resolved.
void check_positions(const TapPlace& place, std::int64_t length);
// The same, and for a patch from a text, whose ids must be there, that does not have what it takes.
void check_fit(const Change& change, std::int64_t length);

class AppliedInterventions {
 public:
  // Runs the prompts of patches, whose ids must be there, once. Throws Error for a place that the
  // model does not have.
  AppliedInterventions(const Model& model, Interventions interventions);
  AppliedInterventions(const AppliedInterventions&) = delete;
  AppliedInterventions& operator=(const AppliedInterventions&) = delete;

  // Puts the changes on the taps of runs from the embeddings on, before whatever else is asked of
  // the taps. This object must outlive the runs. A run throws Error when it has no such position,
  // or when a patch of all positions comes from a text of another length.
  void put_on(Taps& taps);

  // For texts that grow, pass by pass: the tokens before those of the next pass (in a cache), and
  // the length from which negative positions count. Positions that a pass does not have are left
  // for later ones.
  void set_pass(std::int64_t first, std::int64_t length);
  // For runs of several lengths: positions beyond either end are not there to be changed.
  void allow_shorter_runs() { shorter_runs_ = true; }

  const Interventions& interventions() const { return interventions_; }

 private:
  Variable changed(std::size_t number, const std::string& tap, const Variable& value) const;

  Interventions interventions_;
  std::vector<std::map<std::string, Tensor>>
      sources_;                                 // of each change: values by tap, [1, T, ...]
  std::vector<std::vector<std::string>> taps_;  // of each change
  std::int64_t first_ = 0;
  std::optional<std::int64_t> length_ = {};
  bool shorter_runs_ = false;
  std::int64_t total_ = 0;  // tokens up to the end of the pass at hand
};

}  // namespace filigree
