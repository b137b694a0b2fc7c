#include <fmt/format.h>

#include <algorithm>

#include "filigree/error.h"
#include "filigree/interventions.h"

namespace filigree {
namespace {

std::string_view hook_of(Site site) {
  switch (site) {
    case Site::kEmbedding: return "hook_embed";
    case Site::kResidual: return "hook_resid_pre";
    case Site::kQuery: return "attn.hook_q";
    case Site::kKey: return "attn.hook_k";
    case Site::kValue: return "attn.hook_v";
    case Site::kPattern: return "attn.hook_pattern";
    case Site::kZ: return "attn.hook_z";
    case Site::kAttentionOut: return "hook_attn_out";
    case Site::kResidualMid: return "hook_resid_mid";
    case Site::kMlpOut: return "hook_mlp_out";
    case Site::kExpertOut: return "mlp.hook_expert_out";
  }
  return "";
}

struct Extent {
  std::int64_t begin, end;
};

// One index, or all `count` of them.
Extent chosen(std::int64_t index, std::int64_t count) {
  return index < 0 ? Extent{0, count} : Extent{index, index + 1};
}

}  // namespace

bool has_heads(Site site) {
  return site == Site::kQuery || site == Site::kKey || site == Site::kValue || site == Site::kZ ||
         site == Site::kPattern;
}

std::string tap_name(const PatchTarget& target) {
  if (target.site == Site::kEmbedding) return std::string(hook_of(target.site));
  return fmt::format("blocks.{}.{}", target.layer, hook_of(target.site));
}

PatchTarget target_of(const Component& component) {
  if (component.kind == ComponentKind::kHead) return {Site::kZ, component.layer, component.head};
  if (component.kind == ComponentKind::kExpert)
    return {.site = Site::kExpertOut, .layer = component.layer, .expert = component.expert};
  require(component.kind == ComponentKind::kMlp,
          "patch: the component '{}' is neither head, MLP nor expert", name_of(component));
  return {Site::kMlpOut, component.layer};
}

std::string text_of(const PatchTarget& target) {
  std::string text = target.site == Site::kEmbedding ? ""
                     : target.site == Site::kMlpOut  ? mlp_name(target.layer)
                     : target.expert >= 0            ? expert_name({target.layer, target.expert})
                     : target.head >= 0              ? head_name({target.layer, target.head})
                                                     : layer_name(target.layer);
  const bool named_whole = target.site == Site::kMlpOut ||
                           (target.site == Site::kZ && target.head >= 0) ||
                           (target.site == Site::kExpertOut && target.expert >= 0);
  if (!named_whole) text += fmt::format("{}{}", text.empty() ? "" : " ", name_of(target.site));
  if (target.position >= 0) text += fmt::format(" {}", target.position);
  if (target.key >= 0) text += fmt::format(" <- {}", target.key);
  return text;
}

void check_target(const PatchTarget& target, const ModelConfig& config, std::int64_t length,
                  const std::string& what) {
  const std::string source = what.empty() ? fmt::format("patch {}", name_of(target.site)) : what;
  const auto check = [&](const char* part, std::int64_t index, std::int64_t count) {
    require(index >= -1 && index < count, "{}: there is no {} {}; there are {}", source, part,
            index, count);
  };
  if (target.site != Site::kEmbedding)
    require(target.layer >= 0 && target.layer < config.layers,
            "{}: there is no layer {}; there are {}", source, target.layer, config.layers);
  require(target.site != Site::kResidualMid || config.residual == ResidualKind::kSequential,
          "{}: the attention and the MLP of a layer read the same stream, so that there is none "
          "between them",
          source);
  require((target.site != Site::kResidualMid && target.site != Site::kMlpOut) ||
              config.mlp != MlpKind::kNone,
          "{}: the layers of this model are attention only, without MLPs", source);
  require(target.site != Site::kExpertOut || config.mlp == MlpKind::kExperts,
          "{}: this model has no experts; its layers are no mixtures", source);
  const bool key_heads = target.site == Site::kKey || target.site == Site::kValue;
  check("head", target.head,
        !has_heads(target.site) ? 0 : (key_heads ? config.key_heads : config.heads));
  check("expert", target.expert, target.site == Site::kExpertOut ? config.experts : 0);
  check("position", target.position, length);
  check("key", target.key, target.site == Site::kPattern ? length : 0);
}

void for_ranges(const PatchTarget& target, const Shape& extents, std::int64_t row,
                std::int64_t whole_row, std::int64_t first, const RangeOfTarget& body) {
  if (target.site == Site::kPattern) {  // [B, H, Tq, Tk]
    const std::int64_t H = extents[1], Tq = extents[2], Tk = extents[3];
    const Extent heads = chosen(target.head, H), keys = chosen(target.key, Tk);
    const Extent queries = chosen(target.position, first + Tq);
    for (std::int64_t h = heads.begin; h < heads.end; ++h)
      for (std::int64_t i = std::max(queries.begin, first); i < queries.end; ++i)
        body(((row * H + h) * Tq + i - first) * Tk + keys.begin,
             ((whole_row * H + h) * (first + Tq) + i) * Tk + keys.begin, keys.end - keys.begin);
    return;
  }
  // [B, T, H, D], [B, T, E, d] or [B, T, d], which is one head.
  const bool by_head = extents.rank() == 4;
  const std::int64_t T = extents[1], H = by_head ? extents[2] : 1, D = extents[-1];
  const std::int64_t part = target.site == Site::kExpertOut ? target.expert : target.head;
  const Extent heads = chosen(part, H), positions = chosen(target.position, first + T);
  for (std::int64_t t = std::max(positions.begin, first); t < positions.end; ++t)
    body(((row * T + t - first) * H + heads.begin) * D,
         ((whole_row * (first + T) + t) * H + heads.begin) * D, (heads.end - heads.begin) * D);
}

std::vector<PatchTarget> all_heads(const ModelConfig& config) {
  std::vector<PatchTarget> targets;
  for (std::int64_t l = 0; l < config.layers; ++l)
    for (std::int64_t h = 0; h < config.heads; ++h) targets.push_back({Site::kZ, l, h});
  return targets;
}

std::vector<PatchTarget> all_mlps(const ModelConfig& config) {
  std::vector<PatchTarget> targets;
  if (config.mlp == MlpKind::kNone) return targets;
  const bool mixtures = config.mlp == MlpKind::kExperts;
  for (std::int64_t l = 0; l < config.layers; ++l) {
    if (!mixtures) targets.push_back({Site::kMlpOut, l});
    for (std::int64_t e = 0; mixtures && e < config.experts; ++e)
      targets.push_back({.site = Site::kExpertOut, .layer = l, .expert = e});
  }
  return targets;
}

}  // namespace filigree
