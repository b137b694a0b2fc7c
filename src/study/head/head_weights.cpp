// What a head copies, looks for and reads by its weights, and what it writes in a run.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "filigree/study/head/head_parts.h"

namespace filigree::study {
namespace {

constexpr std::size_t kPartners = 3;

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

// x V O of one row.
std::vector<float> through_ov(const HeadMatrices& head, const float* x) {
  const std::int64_t d = head.v.size(0), D = head.v.size(1);
  std::vector<double> z(static_cast<std::size_t>(D), 0.0), out(static_cast<std::size_t>(d), 0.0);
  for (std::int64_t i = 0; i < d; ++i)
    for (std::int64_t j = 0; j < D; ++j)
      z[static_cast<std::size_t>(j)] += static_cast<double>(x[i]) * head.v.f32()[i * D + j];
  for (std::int64_t j = 0; j < D; ++j)
    for (std::int64_t i = 0; i < d; ++i)
      out[static_cast<std::size_t>(i)] += z[static_cast<std::size_t>(j)] * head.o.f32()[j * d + i];
  return {out.begin(), out.end()};
}

ReadToken read_token(const Tensor& embeddings, const Tensor& unembedding, const HeadMatrices& head,
                     TokenId token, double share) {
  const std::int64_t d = embeddings.size(1);
  const std::vector<double> logits =
      centred_logits(unembedding, through_ov(head, embeddings.f32() + token * d));
  ReadToken read = {token, share, logits[static_cast<std::size_t>(token)]};
  read.own_rank =
      std::count_if(logits.begin(), logits.end(), [&](double x) { return x > read.own_effect; });
  read.raised =
      static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  read.lowered =
      static_cast<TokenId>(std::min_element(logits.begin(), logits.end()) - logits.begin());
  return read;
}

std::vector<MatchedToken> matched(const Model& model, const HeadMatrices& head,
                                  const std::vector<std::pair<TokenId, double>>& tokens) {
  std::vector<MatchedToken> found;
  PairOptions options = {.top = kPartners};
  for (const auto& [token, share] : tokens) {
    found.push_back({token, share, {}});
    options.from.push_back(token);
  }
  const std::vector<std::vector<TokenPair>> partners = top_keys_of(model, head, options);
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

}  // namespace

void look_at_weights(const LoadedModel& loaded, std::size_t top, const Context& context,
                     HeadFacts& facts) {
  const Model& model = loaded.model();
  const auto number =
      static_cast<std::size_t>(facts.head.layer * model.config().heads + facts.head.head);
  const std::vector<HeadMatrices> heads = all_head_matrices(model);
  const HeadMatrices& head = heads[number];
  facts.circuit = head_circuit_scores(model, heads)[number];
  context.throw_if_stopped();
  facts.reads = read_tokens(model, facts.head, tokens_of(facts.edges, &TokenEdge::key, top));
  facts.raises = top_ov_pairs(model, head, {.top = top, .one_each = true});
  facts.lowers = top_ov_pairs(model, head, {.top = top, .lowest = true, .one_each = true});
  context.throw_if_stopped();
  facts.queries = matched(model, head, tokens_of(facts.edges, &TokenEdge::query, top));
  HeadMatrices turned = head;
  std::swap(turned.q, turned.k);
  facts.keys = matched(model, turned, tokens_of(facts.edges, &TokenEdge::key, top));
  add_compositions(composition_scores(model, heads), facts.head, top, facts);
}

std::vector<ReadToken> read_tokens(const Model& model, const HeadId& head,
                                   std::span<const std::pair<TokenId, double>> tokens) {
  const LayerWeights layer = model.weights().layers[static_cast<std::size_t>(head.layer)];
  const HeadMatrices matrices = head_matrices(layer.norm, *layer.attention, head.head);
  const Tensor embeddings = normalised_embeddings(model), unembedding = folded_unembedding(model);
  std::vector<ReadToken> reads;
  for (const auto& [token, share] : tokens)
    reads.push_back(read_token(embeddings, unembedding, matrices, token, share));
  return reads;
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
  facts.direct = direct_effect(model, facts.head, prompts[shown].ids, facts.example->query, top);
}

DirectEffect direct_effect(const Model& model, const HeadId& head, const std::vector<TokenId>& ids,
                           std::int64_t query, std::size_t top, AppliedInterventions* changes) {
  const auto T = static_cast<std::int64_t>(ids.size());
  const std::string result_tap = fmt::format("blocks.{}.attn.hook_result", head.layer);
  Taps taps;
  if (changes != nullptr) changes->put_on(taps);
  taps.observe(result_tap);
  taps.observe("ln_final.hook_scale");
  const NormWeights post =
      model.weights().layers[static_cast<std::size_t>(head.layer)].attention_post_norm;
  const std::string post_tap = fmt::format("blocks.{}.ln1_post.hook_scale", head.layer);
  if (post.on()) taps.observe(post_tap);
  model.forward(Tensor::from_ids({1, T}, ids), {.taps = &taps});
  const Tensor& written = taps.value(result_tap);  // [1, T, H, d]
  const std::int64_t H = written.size(2), d = written.size(3);
  std::vector<float> own(written.f32() + (query * H + head.head) * d,
                         written.f32() + (query * H + head.head + 1) * d);
  if (post.on()) {  // its share of what the norm behind the attention lets through
    const Tensor gain = post.gain().value().on_host();
    const float through = 1.0f / taps.value(post_tap).f32()[query];
    for (std::size_t c = 0; c < own.size(); ++c) own[c] *= gain.f32()[c] * through;
  }
  const float scale = taps.value("ln_final.hook_scale").f32()[query];
  const std::vector<double> logits = centred_logits(folded_unembedding(model), own);
  DirectEffect direct;
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), TokenId{0});
  std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  for (std::size_t i = 0; i < std::min(top, order.size()); ++i)
    for (const bool up : {true, false}) {
      const TokenId token = up ? order[i] : order[order.size() - 1 - i];
      (up ? direct.raised : direct.lowered)
          .push_back({token, logits[static_cast<std::size_t>(token)] / static_cast<double>(scale)});
    }
  return direct;
}

}  // namespace filigree::study
