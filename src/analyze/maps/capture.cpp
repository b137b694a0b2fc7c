#include <algorithm>
#include <cmath>

#include "filigree/error.h"
#include "filigree/maps.h"
#include "filigree/runtime.h"

namespace filigree {
namespace {

// |v_j| of every key: [B, T, G, D] -> [B, G, T].
Tensor value_norms(const Tensor& v) {
  const std::int64_t B = v.size(0), T = v.size(1), G = v.size(2), D = v.size(3);
  Tensor norms = Tensor::empty({B, G, T});
  float* out = norms.mutable_f32();
  const float* values = v.f32();
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t t = 0; t < T; ++t)
      for (std::int64_t g = 0; g < G; ++g) {
        const float* x = values + ((b * T + t) * G + g) * D;
        double sum = 0.0;
        for (std::int64_t d = 0; d < D; ++d) sum += static_cast<double>(x[d]) * x[d];
        out[(b * G + g) * T + t] = static_cast<float>(std::sqrt(sum));
      }
  return norms;
}

// Collects the taps of a layer and hands them on when the last of them, the pattern, has passed.
class Capture {
 public:
  Capture(const Model& model, const CaptureOptions& options, const HeadMapConsumer& consumer)
      : model_(model), options_(options), consumer_(consumer) {
    for (std::size_t s = 0; s < options.heads.size(); ++s) {
      const HeadId& head = options.heads[s];
      const ModelConfig& config = model.config();
      require(head.layer >= 0 && head.layer < config.layers && head.head >= 0 &&
                  head.head < config.heads,
              "attention maps: the model has no {}; it has {} layers of {} heads", head_name(head),
              config.layers, config.heads);
      if (layers_.empty() || layers_.back().layer != head.layer)
        layers_.push_back({head.layer, {}});
      layers_.back().slots.push_back(s);
    }
    if (options.interventions != nullptr) options.interventions->put_on(taps_);
    for (const Layer& layer : layers_) watch(layer);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Prompts [first, first + count), all of one length.
  void run(std::span<const Prompt> prompts, std::size_t first, std::size_t count) {
    const auto T = static_cast<std::int64_t>(prompts[first].ids.size());
    Tensor ids = Tensor::empty({static_cast<std::int64_t>(count), T}, DType::kI32);
    for (std::size_t b = 0; b < count; ++b)
      std::copy_n(prompts[first + b].ids.begin(), T,
                  ids.mutable_i32() + static_cast<std::int64_t>(b) * T);
    first_ = first;
    // Where only the maps are wanted: the logits of one position are cheap, those of all are not.
    const Variable logits =
        model_.forward(ids, {.taps = &taps_, .last_position_only = !options_.logits});
    if (options_.logits) options_.logits(logits.value());
  }

 private:
  struct Layer {
    std::int64_t layer;
    std::vector<std::size_t> slots;
  };

  void watch(const Layer& layer) {
    const std::string prefix = fmt::format("blocks.{}.attn.", layer.layer);
    if (options_.value_norms)
      taps_.watch(prefix + "hook_v",
                  [this](std::string_view, const Tensor& v) { norms_ = value_norms(v); });
    if (options_.scores)
      taps_.watch(prefix + "hook_attn_scores",
                  [this](std::string_view, const Tensor& scores) { scores_ = scores; });
    if (options_.gate && model_.config().gate.on())
      taps_.watch(prefix + "hook_gate",
                  [this](std::string_view, const Tensor& gate) { gate_ = gate; });
    taps_.watch(prefix + "hook_pattern", [this, &layer](std::string_view, const Tensor& pattern) {
      deliver(layer, pattern);
    });
  }

  void deliver(const Layer& layer, const Tensor& pattern) {
    const std::int64_t B = pattern.size(0), H = pattern.size(1), T = pattern.size(2);
    const std::int64_t group = H / model_.config().key_heads;
    const auto map_of = [&](const Tensor& maps, std::int64_t row) {
      return maps.defined() ? maps.values().subspan(static_cast<std::size_t>(row * T * T),
                                                    static_cast<std::size_t>(T * T))
                            : std::span<const float>();
    };
    for (std::int64_t b = 0; b < B; ++b) {
      heads_.clear();
      for (const std::size_t slot : layer.slots) {
        HeadMap map;
        map.prompt = first_ + static_cast<std::size_t>(b);
        map.slot = slot;
        map.head = options_.heads[slot];
        map.length = T;
        map.window = model_.config().window(map.head.layer);
        const std::int64_t row = b * H + map.head.head;
        map.weights = map_of(pattern, row);
        map.scores = map_of(scores_, row);
        map.gate = map_of(gate_, row);
        if (norms_.defined())
          map.value_norms = norms_.values().subspan(
              static_cast<std::size_t>((b * (H / group) + map.head.head / group) * T),
              static_cast<std::size_t>(T));
        heads_.push_back(map);
      }
      consumer_(heads_);
    }
    scores_ = gate_ = norms_ = Tensor();
  }

  const Model& model_;
  const CaptureOptions& options_;
  const HeadMapConsumer& consumer_;
  std::vector<Layer> layers_;
  Taps taps_;
  std::size_t first_ = 0;
  Tensor scores_, gate_, norms_;
  std::vector<HeadMap> heads_;
};

}  // namespace

CaptureOptions CaptureOptions::of(std::vector<HeadId> heads, MapKind kind) {
  CaptureOptions options;
  options.heads = std::move(heads);
  options.scores = kind == MapKind::kScores;
  options.gate = kind == MapKind::kGate;
  options.value_norms = kind == MapKind::kValueWeighted;
  return options;
}

void check_prompts(std::span<const Prompt> prompts, const ModelConfig& config) {
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    const auto length = static_cast<std::int64_t>(prompts[p].ids.size());
    require(length > 0, "prompt {} is empty; attention needs at least one token", p + 1);
    require(length <= config.context,
            "prompt {} has {} tokens, more than the model's context of {}; shorten it", p + 1,
            length, config.context);
    for (const TokenId id : prompts[p].ids)
      if (id < 0 || id >= config.vocabulary)
        fail("prompt {} has token id {}, but the model has {} tokens", p + 1, id,
             config.vocabulary);
  }
}

void capture_maps(const Model& model, std::span<const Prompt> prompts,
                  const CaptureOptions& options, const HeadMapConsumer& consumer) {
  check_prompts(prompts, model.config());
  require(!options.heads.empty(), "attention maps: no heads were chosen");
  Capture capture(model, options, consumer);
  for (std::size_t first = 0; first < prompts.size();) {
    const std::size_t length = prompts[first].ids.size();
    const std::size_t most =
        std::max<std::size_t>(1, static_cast<std::size_t>(options.batch_tokens) / length);
    std::size_t count = 1;
    while (count < most && first + count < prompts.size() &&
           prompts[first + count].ids.size() == length)
      ++count;
    capture.run(prompts, first, count);
    first += count;
  }
}

void fill_map(const HeadMap& head, MapKind kind, std::span<float> out) {
  const auto T = static_cast<std::size_t>(head.length);
  require(out.size() == T * T, "attention maps: room for {} cells, the map has {}", out.size(),
          T * T);
  if (kind == MapKind::kWeights) {
    std::copy(head.weights.begin(), head.weights.end(), out.begin());
  } else if (kind == MapKind::kScores) {
    require(!head.scores.empty(), "attention maps: scores were not captured");
    std::copy(head.scores.begin(), head.scores.end(), out.begin());
  } else if (kind == MapKind::kGate) {
    if (!head.gate.empty()) {
      std::copy(head.gate.begin(), head.gate.end(), out.begin());
      return;
    }
    for (std::size_t i = 0; i < T; ++i)
      for (std::size_t j = 0; j < T; ++j) out[i * T + j] = j <= i ? 1.0f : 0.0f;
  } else {
    require(!head.value_norms.empty(), "attention maps: values were not captured");
    const float largest = *std::max_element(head.value_norms.begin(), head.value_norms.end());
    const float scale = largest > 0.0f ? 1.0f / largest : 0.0f;
    for (std::size_t i = 0; i < T; ++i)
      for (std::size_t j = 0; j < T; ++j)
        out[i * T + j] = head.weights[i * T + j] * head.value_norms[j] * scale;
  }
}

}  // namespace filigree
