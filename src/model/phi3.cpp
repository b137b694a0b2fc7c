// Phi 3 and the dense models of Phi 4: Llama's block with its matrices fused, heads that are turned
// in part, and positions scaled pair by pair (longrope).
#include "model/llama_layout.h"

namespace filigree {
namespace {

ModelConfig read_phi3(const JsonObject& json) {
  ModelConfig config =
      read_llama_config(json, "phi3",
                        {.norm_epsilon = 1e-5,
                         .rotary = {.share = "partial_rotary_factor", .longrope_context = 4096.0}});
  const std::int64_t window = json.integer_or("sliding_window", 0, 1, kMostExtent);
  for (std::int64_t l = 0; l < config.layers && window > 0; ++l) config.windows.push_back(window);
  return config;
}

LlamaLayout phi3_layout(const ModelConfig&) { return {.fused = true}; }

}  // namespace

const Family kPhi3Family = llama_family<phi3_layout>("phi3", read_phi3);

}  // namespace filigree
