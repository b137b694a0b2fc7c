#include "nn/branch_inputs.h"

#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/linear/linear_by_head.h"

namespace filigree {
namespace {

// A head's copies, normalised; undefined when the shared stream will do.
Variable branch(const Variable& x, const char* name, std::int64_t heads, const NormWeights& ln1,
                const TapScope& block) {
  if (!block.wants(name)) return {};
  const Variable copies = block(name, repeat_for_heads(x, heads));  // [B, T, heads, width]
  return block.needs_graph(name) ? normalise(copies, ln1, TapScope()) : Variable();
}

}  // namespace

AttentionInputs attention_inputs(const Variable& x, const NormWeights& ln1,
                                 const AttentionWeights& weights, const TapScope& block) {
  AttentionInputs inputs;
  inputs.q = branch(x, "hook_q_input", weights.heads, ln1, block);
  inputs.k = branch(x, "hook_k_input", weights.key_heads, ln1, block);
  inputs.v = branch(x, "hook_v_input", weights.key_heads, ln1, block);
  const TapScope norm = block.inside("ln1");
  const bool split = inputs.q.defined() || inputs.k.defined() || inputs.v.defined();
  require(!split || !(norm.needs_graph("hook_scale") || norm.needs_graph("hook_normalized")),
          "taps: ln1 and the inputs of single heads (hook_q_input, hook_k_input, hook_v_input) of "
          "one layer cannot both be changed or differentiated; take one of them");
  if (!(inputs.q.defined() && inputs.k.defined() && inputs.v.defined()) || norm.wants_any())
    inputs.shared = normalise(x, ln1, norm);
  return inputs;
}

Variable mlp_input(const Variable& x, const TapScope& block) {
  // A variable of its own, so that the gradient there is the branch's and not the stream's.
  return block("hook_mlp_in", block.needs_graph("hook_mlp_in") ? scale(x, 1.0f) : x);
}

}  // namespace filigree
