#include <cmath>
#include <numeric>

#include "filigree/error.h"
#include "filigree/lens.h"
#include "filigree/runtime.h"

namespace filigree {
namespace {

// The elements of a linear layer, whatever way it is stored; looked up once, read many times.
class Elements {
 public:
  explicit Elements(const LinearWeight& w) {
    values_ = w.weight.value().on_host();
    const std::int64_t columns = values_.size(1);
    in_step_ = w.out_in ? 1 : columns, out_step_ = w.out_in ? columns : 1;
    data_ = values_.f32() + w.begin * out_step_;
  }
  float at(std::int64_t in, std::int64_t out) const {
    return data_[in * in_step_ + out * out_step_];
  }

 private:
  Tensor values_;  // on the CPU, wherever the model is
  const float* data_;
  std::int64_t in_step_, out_step_;
};

// A part of a layer's matrix with its adapter's: [input_count, output_count].
Tensor part_of(const LinearWeight& w, const LoraAdapter& lora, std::int64_t first_input,
               std::int64_t input_count, std::int64_t first_output, std::int64_t output_count) {
  const Elements elements(w);
  Tensor down, up;
  if (lora.on()) down = lora.down.value().on_host(), up = lora.up.value().on_host();
  Tensor result = Tensor::empty({input_count, output_count});
  float* data = result.mutable_f32();
  for (std::int64_t i = 0; i < input_count; ++i)
    for (std::int64_t j = 0; j < output_count; ++j) {
      const std::int64_t in = first_input + i, out = first_output + j;
      double sum = elements.at(in, out);
      if (lora.on()) {
        const std::int64_t rank = down.size(1);
        double added = 0;
        for (std::int64_t r = 0; r < rank; ++r)
          added += static_cast<double>(down.f32()[in * rank + r]) * up.f32()[r * up.size(1) + out];
        sum += lora.scale * added;
      }
      data[i * output_count + j] = static_cast<float>(sum);
    }
  return result;
}

// Outputs [first, first + count): [inputs, count].
Tensor outputs_of(const LinearWeight& w, const LoraAdapter& lora, std::int64_t first,
                  std::int64_t count) {
  return part_of(w, lora, 0, w.inputs(), first, count);
}

// Inputs [first, first + count): [count, outputs].
Tensor inputs_of(const LinearWeight& w, const LoraAdapter& lora, std::int64_t first,
                 std::int64_t count) {
  return part_of(w, lora, first, count, 0, w.outputs());
}

// What a norm does to the stream before `w` reads it: each row by its gain, then, where the norm
// takes the mean off the stream, every column less its mean.
void fold_norm(const NormWeights& norm, Tensor& w) {
  const std::int64_t d = w.size(0), columns = w.size(1);
  float* data = w.mutable_f32();
  if (norm.weight.defined()) {
    const Tensor gain = norm.gain().value().on_host();
    for (std::int64_t i = 0; i < d; ++i)
      for (std::int64_t j = 0; j < columns; ++j) data[i * columns + j] *= gain.f32()[i];
  }
  for (std::int64_t j = 0; norm.centres() && j < columns; ++j) {
    double mean = 0;
    for (std::int64_t i = 0; i < d; ++i) mean += data[i * columns + j];
    mean /= static_cast<double>(d);
    for (std::int64_t i = 0; i < d; ++i) data[i * columns + j] -= static_cast<float>(mean);
  }
}

// The gain of a norm behind `w`: its numbers from `first` on, one a column. A norm of these columns
// alone that takes their mean off does so of each row.
void fold_gain_behind(const NormWeights& norm, std::int64_t first, Tensor& w) {
  if (!norm.on() || !norm.has_weights()) return;
  const Tensor gain = norm.gain().value().on_host();
  const std::int64_t columns = w.size(1);
  const bool alone = norm.heads > 0 || gain.elements() == columns;
  for (std::int64_t i = 0; i < w.size(0); ++i) {
    float* row = w.mutable_f32() + i * columns;
    double mean = 0.0;
    if (norm.centres() && alone)
      mean = std::accumulate(row, row + columns, 0.0) / static_cast<double>(columns);
    for (std::int64_t j = 0; j < columns; ++j)
      row[j] = static_cast<float>(static_cast<double>(row[j]) - mean) * gain.f32()[first + j];
  }
}

}  // namespace

HeadMatrices head_matrices(const NormWeights& norm, const AttentionWeights& w, std::int64_t head,
                           const NormWeights& post_norm) {
  require(head >= 0 && head < w.heads, "head matrices: there is no head {}; there are {}", head,
          w.heads);
  const std::int64_t D = w.head_width;
  const std::int64_t key_head = head / (w.heads / w.key_heads);
  HeadMatrices m;
  m.q = outputs_of(w.q, w.lora.q, head * D, D);
  m.k = outputs_of(w.k, w.lora.k, key_head * D, D);
  m.v = outputs_of(w.v, w.lora.v, key_head * D, D);
  for (Tensor* matrix : {&m.q, &m.k, &m.v}) fold_norm(norm, *matrix);
  m.o = inputs_of(w.o, w.lora.o, head * D, D);
  const bool by_head =
      w.q_norm.heads == 0 && w.q_norm.has_weights() && w.q_norm.weight.size(0) == D;
  fold_gain_behind(w.q_norm, by_head ? 0 : head * D, m.q);
  fold_gain_behind(w.k_norm, by_head ? 0 : key_head * D, m.k);
  fold_gain_behind(post_norm, 0, m.o);
  m.scale = w.scale != 0 ? w.scale : 1.0f / std::sqrt(static_cast<float>(D));
  return m;
}

std::vector<HeadMatrices> all_head_matrices(const Model& model) {
  const ModelWeights weights = model.weights();
  const std::int64_t heads = model.config().heads;
  std::vector<HeadMatrices> all(static_cast<std::size_t>(model.config().layers * heads));
  parallel_for(static_cast<std::int64_t>(all.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const LayerWeights& layer = weights.layers[static_cast<std::size_t>(i / heads)];
      all[static_cast<std::size_t>(i)] =
          head_matrices(layer.norm, *layer.attention, i % heads, layer.attention_post_norm);
    }
  });
  return all;
}

Tensor folded_unembedding(const Model& model) {
  const ModelWeights weights = model.weights();
  const LinearWeight& output = weights.output;
  const std::int64_t V = output.outputs(), d = output.inputs();
  const Tensor gains =
      weights.final_norm.weight.defined() ? weights.final_norm.gain().value().on_host() : Tensor();
  const float* gain = gains.defined() ? gains.f32() : nullptr;
  const Elements elements(output);
  Tensor folded = Tensor::empty({V, d});
  float* data = folded.mutable_f32();
  parallel_for(V, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      float* row = data + t * d;
      double mean = 0;
      for (std::int64_t i = 0; i < d; ++i) {
        row[i] = elements.at(i, t) * (gain == nullptr ? 1.0f : gain[i]);
        mean += row[i];
      }
      if (!weights.final_norm.centres()) continue;
      mean /= static_cast<double>(d);
      for (std::int64_t i = 0; i < d; ++i) row[i] -= static_cast<float>(mean);
    }
  });
  return folded;
}

}  // namespace filigree
