// What a head copies, looks for and reads by its weights, and what it writes in a run.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "study/head/head_parts.h"

namespace filigree::study {
namespace {

constexpr std::size_t kPartners = 3;
constexpr std::int64_t kCopiedRanks = 5;  // a token among so many is copied, or suppressed
constexpr std::size_t kMostRead = 512;    // tokens whose copying is looked at

// Tokens of the edges, queries or keys, by their share.
std::vector<std::pair<TokenId, double>> tokens_of(const std::vector<TokenEdge>& edges,
                                                  TokenId TokenEdge::*side, std::size_t top) {
  std::vector<std::pair<TokenId, double>> tokens;
  for (const TokenEdge& edge : edges) {
    const auto found = std::find_if(tokens.begin(), tokens.end(),
                                    [&](const auto& token) { return token.first == edge.*side; });
    if (found == tokens.end())
      tokens.emplace_back(edge.*side, edge.share);
    else
      found->second += edge.share;
  }
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  tokens.resize(std::min(tokens.size(), top));
  return tokens;
}

double product(const float* a, const float* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// Logits of a vector of the stream, up to the norm's scale, less their mean.
std::vector<double> centred_logits(const Tensor& unembedding, const std::vector<float>& stream) {
  const std::int64_t V = unembedding.size(0), d = unembedding.size(1);
  std::vector<double> logits;
  for (std::int64_t v = 0; v < V; ++v)
    logits.push_back(product(unembedding.f32() + v * d, stream.data(), d));
  const double mean = std::accumulate(logits.begin(), logits.end(), 0.0) / static_cast<double>(V);
  for (double& logit : logits) logit -= mean;
  return logits;
}

std::vector<MatchedToken> matched(const Model& model, const TokenRows& inputs,
                                  const HeadMatrices& head,
                                  const std::vector<std::pair<TokenId, double>>& tokens) {
  std::vector<MatchedToken> found;
  PairOptions options = {.top = kPartners};
  for (const auto& [token, share] : tokens) {
    found.push_back({token, share, {}});
    options.from.push_back(token);
  }
  const std::vector<std::vector<TokenPair>> partners = top_keys_of(model, inputs, head, options);
  for (std::size_t i = 0; i < found.size(); ++i) found[i].partners = partners[i];
  return found;
}

// The heads that compose most with this one, on one side.
void add_compositions(const CompositionScores& scores, const HeadId& head, std::size_t top,
                      HeadFacts& facts) {
  const std::int64_t H = scores.heads, all = scores.layers * H, own = head.layer * H + head.head;
  for (std::size_t kind = 0; kind < kCompositions; ++kind) {
    for (const bool earlier : {true, false}) {
      std::vector<ComposedHead>& list = earlier ? facts.reads_heads[kind] : facts.read_by[kind];
      const std::int64_t begin = earlier ? 0 : (head.layer + 1) * H,
                         end = earlier ? head.layer * H : all;
      for (std::int64_t h = begin; h < end; ++h)
        list.push_back(
            {{h / H, h % H},
             scores.at(static_cast<Composition>(kind), earlier ? h : own, earlier ? own : h)});
      std::stable_sort(list.begin(), list.end(), [](const ComposedHead& a, const ComposedHead& b) {
        return a.score > b.score;
      });
      list.resize(std::min(list.size(), top));
    }
  }
  facts.random_composition = scores.random;
}

TokenInputs inputs_of(const Model& model, TokenInput input, std::span<const Prompt> prompts,
                      std::int64_t layer) {
  if (input != TokenInput::kText) return {model, input};
  std::vector<std::vector<TokenId>> texts;
  for (const Prompt& prompt : prompts) texts.push_back(prompt.ids);
  return TokenInputs::of_texts(model, texts, std::span(&layer, 1));
}

// Of every token that the head reads what its weights write, and how much of its attention goes to
// those that it copies or suppresses.
void add_reads(const Model& model, const TokenRows& inputs, const HeadMatrices& head,
               std::size_t top, HeadFacts& facts) {
  const auto read = tokens_of(facts.edges, &TokenEdge::key, kMostRead);
  std::vector<TokenId> tokens;
  double all = 0;
  for (const auto& [token, share] : read) tokens.push_back(token), all += share;
  const std::vector<WrittenForToken> written = written_for(model, inputs, head, tokens);
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (written[i].own_rank < kCopiedRanks) facts.copied_share += read[i].second / all;
    if (written[i].own_rank_below < kCopiedRanks) facts.suppressed_share += read[i].second / all;
    if (i < top) facts.reads.push_back({read[i].second, written[i]});
  }
}

}  // namespace

void look_at_weights(const LoadedModel& loaded, const HeadRequest& request,
                     std::span<const Prompt> prompts, const Context& context, HeadFacts& facts) {
  const Model& model = loaded.model();
  const std::size_t top = request.top;
  const auto number =
      static_cast<std::size_t>(facts.head.layer * model.config().heads + facts.head.head);
  const std::vector<HeadMatrices> heads = all_head_matrices(model);
  const HeadMatrices& head = heads[number];
  const TokenInputs all_inputs = inputs_of(model, request.input, prompts, facts.head.layer);
  const TokenRows& inputs = all_inputs.of_layer(facts.head.layer);
  facts.input = inputs.input;
  facts.circuit = head_circuit_scores(model, all_inputs, heads, {number})[0];
  context.throw_if_stopped();
  add_reads(model, inputs, head, top, facts);
  facts.raises = top_ov_pairs(model, inputs, head, {.top = top, .one_each = true});
  facts.lowers = top_ov_pairs(model, inputs, head, {.top = top, .lowest = true, .one_each = true});
  context.throw_if_stopped();
  facts.queries = matched(model, inputs, head, tokens_of(facts.edges, &TokenEdge::query, top));
  HeadMatrices turned = head;
  std::swap(turned.q, turned.k);
  facts.keys = matched(model, inputs, turned, tokens_of(facts.edges, &TokenEdge::key, top));
  add_compositions(composition_scores(model, heads), facts.head, top, facts);
}

void look_at_output(const LoadedModel& loaded, std::span<const Prompt> prompts, std::size_t top,
                    HeadFacts& facts) {
  const Model& model = loaded.model();
  const std::size_t shown = facts.example ? facts.example->prompt : 0;
  capture_maps(model, prompts.subspan(shown, 1),
               CaptureOptions::of({facts.head}, MapKind::kWeights),
               [&](std::span<const HeadMap> maps) {
                 facts.map.assign(maps[0].weights.begin(), maps[0].weights.end());
               });
  if (!facts.example) return;
  facts.direct =
      look_at_run(model, facts.head, prompts[shown].ids, facts.example->query, top, {}, {}).direct;
}

HeadInRun look_at_run(const Model& model, const HeadId& head, const std::vector<TokenId>& ids,
                      std::int64_t query, std::size_t top, const std::vector<TokenId>& tokens,
                      std::span<const double> attention, AppliedInterventions* changes) {
  const auto T = static_cast<std::int64_t>(ids.size());
  const std::string result_tap = fmt::format("blocks.{}.attn.hook_result", head.layer),
                    value_tap = fmt::format("blocks.{}.attn.hook_v", head.layer),
                    post_tap = fmt::format("blocks.{}.ln1_post.hook_scale", head.layer);
  Taps taps;
  if (changes != nullptr) changes->put_on(taps);
  for (const std::string& name : {result_tap, value_tap}) taps.observe(name);
  const bool normed = model.weights().final_norm.on();
  if (normed) taps.observe("ln_final.hook_scale");
  const LayerWeights layer = model.weights().layers[static_cast<std::size_t>(head.layer)];
  if (layer.attention_post_norm.on()) taps.observe(post_tap);
  model.forward(Tensor::from_ids({1, T}, ids), {.taps = &taps});
  // What stands between the head's output and the logits at the query.
  double scale = normed ? static_cast<double>(taps.value("ln_final.hook_scale").f32()[query]) : 1.0;
  const Tensor& written = taps.value(result_tap);  // [1, T, H, d]
  const std::int64_t H = written.size(2), d = written.size(3);
  std::vector<float> own(written.f32() + (query * H + head.head) * d,
                         written.f32() + (query * H + head.head + 1) * d);
  if (layer.attention_post_norm.on()) {  // its share of what the norm behind the attention passes
    const Tensor gain = layer.attention_post_norm.gain().value().on_host();
    for (std::size_t c = 0; c < own.size(); ++c) own[c] *= gain.f32()[c];
    scale *= static_cast<double>(taps.value(post_tap).f32()[query]);
  }
  HeadInRun found;
  const std::vector<double> logits = centred_logits(folded_unembedding(model), own);
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), TokenId{0});
  std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  for (std::size_t i = 0; i < std::min(top, order.size()); ++i)
    for (const bool up : {true, false}) {
      const TokenId token = up ? order[i] : order[order.size() - 1 - i];
      (up ? found.direct.raised : found.direct.lowered)
          .push_back({token, logits[static_cast<std::size_t>(token)] / scale});
    }
  if (tokens.empty()) return found;

  const Tensor& values = taps.value(value_tap);  // [1, T, key heads, D]
  const std::int64_t key_heads = values.size(2), D = values.size(3),
                     key_head = head.head / (H / key_heads);
  Tensor means = Tensor::zeros({static_cast<std::int64_t>(tokens.size()), D});
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    float* mean = means.mutable_f32() + static_cast<std::int64_t>(n) * D;
    double all = 0;
    for (std::int64_t t = 0; t < T; ++t)
      if (ids[static_cast<std::size_t>(t)] == tokens[n])
        all += attention[static_cast<std::size_t>(t)];
    for (std::int64_t t = 0; t < T && all > 0; ++t) {
      if (ids[static_cast<std::size_t>(t)] != tokens[n]) continue;
      const auto part = static_cast<float>(attention[static_cast<std::size_t>(t)] / all);
      for (std::int64_t i = 0; i < D; ++i)
        mean[i] += part * values.f32()[(t * key_heads + key_head) * D + i];
    }
  }
  const HeadMatrices matrices =
      head_matrices(layer.norm, *layer.attention, head.head, layer.attention_post_norm);
  found.reads = written_for_values(model, means, matrices.o, tokens);
  for (WrittenForToken& one : found.reads) one.own_effect /= scale;
  return found;
}

}  // namespace filigree::study
