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
//   L6H11.q  its queries; likewise k, v, z and pattern
//   L6.resid  the stream before layer 6; likewise resid-mid, attn-out and mlp-out
//   embedding  what the tokens are embedded as
//   blocks.6.mlp.hook_post  any tap by its name
//   ...@3  only at position 3, the first being 0; ...@-1  only at the last
//   ...@START  ...@END  at the first and the last; ...@' John'  ...@John  at this token
//   L6H11.pattern@5<-2  only the weight of query 5 on key 2
//
// Heads of k and v are key heads, where several heads share them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/circuit/patch.h"
#include "text/token_id.h"

namespace filigree {

struct TapPlace {
  std::string text = {};          // as it was written
  std::string tap = {};           // one tap's name, or with '*' for the layer that of every layer
  std::optional<Site> site = {};  // unless it was written as a tap
  std::optional<std::int64_t> layer = {}, head = {};    // none: all of them
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

}  // namespace filigree
